import { describe, expect, it } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  checkCallPath,
  compilePaths,
  configMatchesPaths,
  costsNothing,
  dialectOf,
  slashedIdsOf,
} from '../src/index.ts';
import { apply, known } from './apply.ts';

const ARN = 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123';
const SPELLED = encodeURIComponent(ARN);
const problemOf = (provider: string, path: string) => checkCallPath(path, slashedIdsOf(known(provider)));

describe('an encoded slash', () => {
  it.each([
    ['bedrock', `/model/${SPELLED}/converse`],
    ['bedrock', `/model/${SPELLED}/converse-stream`],
    ['bedrock', `/model/${SPELLED.replaceAll('%2F', '%2f')}/invoke`],
    ['groq', '/openai/v1/models/openai%2Fgpt-oss-120b'],
    ['fireworks', '/inference/v1/models/accounts%2Ffireworks%2Fmodels%2Fx'],
    ['nebius', '/v1/models/meta-llama%2Fx'],
    ['openrouter', '/api/v1/models/openai%2Fgpt-4o'],
    ['openai', '/v1/models/Qwen%2FQwen3-8B'],
  ])('may be part of an id at %s: %s', (provider, path) => {
    expect(problemOf(provider, path)).toBeUndefined();
    expect(compilePaths([path])(path)).toBe(true);
  });

  it.each([
    // Other providers, and other places than an id.
    ['openai', '/v1/responses/resp%2F1'],
    ['openai', '/v1/models/x%2F..%2F..%2Fchat%2Fcompletions'],
    ['anthropic', '/v1/models/anthropic%2Fx'],
    ['google', '/v1beta/models%2Fx:generateContent'],
    ['groq', '/openai/v1/chat%2Fcompletions'],
    ['groq', '/openai%2Fv1/models/x'],
    ['bedrock', '/model/x%2Fconverse'],
    ['bedrock', '/model%2Fx/converse'],
    ['bedrock', '/model/x/converse%2Fy'],
    // A server may decode these into something else than an id.
    ['groq', '/openai/v1/models/..%2Fchat'],
    ['groq', '/openai/v1/models/x%2F..%2Fchat%2Fcompletions'],
    ['groq', '/openai/v1/models/x%2F.%2Fy'],
    ['groq', '/openai/v1/models/x%2F%2e%2e%2Fy'],
    ['groq', '/openai/v1/models/x%2F%2E%2E'],
    ['groq', '/openai/v1/models/x%2F%2Fy'],
    ['groq', '/openai/v1/models/%2Fx'],
    ['groq', '/openai/v1/models/x%2F'],
    ['groq', '/openai/v1/models/%2F'],
    ['bedrock', '/model/x%2F/converse'],
    ['bedrock', '/model/%2Fx/converse'],
    // Double encoding, other separators.
    ['bedrock', '/model/x%252Fy/converse'],
    ['bedrock', '/model/x%25252Fy/converse'],
    ['bedrock', '/model/x%5Cy/converse'],
    ['bedrock', '/model/x%2Fy%5Cz/converse'],
    ['bedrock', '/model/x%2Fy%3Fz/converse'],
    ['bedrock', '/model/x%2Fy%00/converse'],
    ['bedrock', '/model/x%c0%afy/converse'],
  ])('is refused at %s in %s', (provider, path) => {
    expect(problemOf(provider, path)).toMatch(/^(must|contains)/);
  });

  it('never makes a path that a server may decode into another endpoint', () => {
    for (const provider of BUILT_IN_PROVIDERS.values())
      for (const pattern of provider.slashedIds ?? [])
        for (const { path } of [...provider.routes, ...(provider.free ?? [])]) {
          const [before = '', after = ''] = pattern.split('*');
          const inner = path.replaceAll('*', 'x');
          if (!inner.startsWith(before) || !inner.endsWith(after)) continue;
          const id = inner.slice(before.length, inner.length - after.length).replaceAll('/', '%2F');
          if (!id.includes('%2F')) continue;
          expect(checkCallPath(`${before}${id}${after}`, slashedIdsOf(provider))).toBeDefined();
        }
  });

  it('leaves a call its dialect, and a free call its price', () => {
    expect(dialectOf(known('bedrock'), `/model/${SPELLED}/converse`)?.id).toBe('bedrock-converse');
    expect(costsNothing(known('groq'), 'GET', '/openai/v1/models/openai%2Fgpt-oss-120b')).toBe(true);
    expect(costsNothing(known('groq'), 'POST', '/openai/v1/models/openai%2Fgpt-oss-120b')).toBe(false);
    expect(costsNothing(known('anthropic'), 'GET', '/v1/models/anthropic%2Fx')).toBe(false);
  });

  it('is in the model that a path names, and in a path that a config writes', () => {
    const bedrock = known('bedrock');
    const path = `/model/${SPELLED}/converse`;
    expect(dialectOf(bedrock, path)?.spend?.model({}, path)).toBe(ARN);
    expect(apply('bedrock', '/model/x/converse', { model: ARN }, {}).path).toBe(path);
    expect(configMatchesPaths(bedrock, { model: ARN }, [path])).toBe(true);
    expect(configMatchesPaths(bedrock, { model: ARN }, ['/model/*/converse'])).toBe(true);
  });
});

describe('matching', () => {
  it.each([
    ['/model/*/converse', `/model/${SPELLED}/converse`, true],
    [`/model/${SPELLED}/converse`, `/model/${SPELLED.toLowerCase()}/converse`, true],
    [`/model/${SPELLED}/converse`, `/model/${ARN.replace('/', '%2F')}/converse`, true],
    [`/model/${ARN.replace('/', '%2F')}/converse`, `/model/${SPELLED}/converse`, true],
    [`/model/${SPELLED}/converse`, `/model/${ARN}/converse`, false],
    ['/model/arn*/abc123/converse', `/model/${SPELLED}/converse`, false],
    ['/model/*%2Fabc123/converse', `/model/${SPELLED}/converse`, true],
    ['/model/*', `/model/${SPELLED}/converse`, false],
    ['/model/%2A/converse', '/model/x/converse', false],
    ['/model/%2A/converse', '/model/*/converse', true],
  ])('compares decoded segments: %s and %s', (pattern, path, isMatch) => {
    expect(compilePaths([pattern])(path)).toBe(isMatch);
  });
});
