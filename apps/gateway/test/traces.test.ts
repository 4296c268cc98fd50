import { BUILT_IN_PROVIDERS } from '@presign/providers';
import { expect, test } from 'vitest';
import { llmOperation } from '../src/traces.ts';

test.each([
  ['openai', 'openai'],
  ['anthropic', 'anthropic'],
  ['google', 'gcp.gemini'],
  ['vertex', 'gcp.vertex_ai'],
  ['azure-openai', 'azure.ai.openai'],
  ['bedrock', 'aws.bedrock'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
])('a span names the provider %s as %s, as the conventions of OpenTelemetry do', (id, name) => {
  const provider = BUILT_IN_PROVIDERS.get(id);
  if (!provider) throw new Error('no such provider');
  const { attributes } = llmOperation('/v1/chat/completions', provider, 'm');
  expect(attributes['gen_ai.provider.name']).toBe(name);
});
