import {
  type Bound,
  type JsonObject,
  type ModelFacts,
  type Spend,
  spendOf as spendOn,
} from '../../src/index.ts';
import { known } from '../apply.ts';
import { streamed } from './native-call.ts';

/** Where each provider that follows OpenAI has its chat completions. */
export const CHAT: readonly (readonly [provider: string, path: string])[] = [
  ['openai', '/v1/chat/completions'],
  ['azure-openai', '/openai/v1/chat/completions'],
  ['azure-openai', '/openai/deployments/mine/chat/completions'],
  ['groq', '/openai/v1/chat/completions'],
  ['mistral', '/v1/chat/completions'],
  ['deepseek', '/chat/completions'],
  ['xai', '/v1/chat/completions'],
  ['together', '/v1/chat/completions'],
  ['fireworks', '/inference/v1/chat/completions'],
  ['openrouter', '/api/v1/chat/completions'],
  ['perplexity', '/chat/completions'],
  ['google', '/v1beta/openai/chat/completions'],
];

export const FACTS: ModelFacts = { contextWindow: 128_000, maxOutput: 16_384, reasoning: false };

/** The spending rules of a path. The path must have some. */
export function spendOf(provider: string, path: string): Spend {
  const spend = spendOn(known(provider), path);
  if (spend === undefined) throw new Error(`nothing may be spent on ${provider} ${path}`);
  return spend;
}

/** A call's bound, as the gateway asks for it: at the standard price. */
export function judged(provider: string, path: string, sent: JsonObject, facts: ModelFacts = FACTS) {
  const spend = spendOf(provider, path);
  const body = spend.atStandardPrice?.(sent) ?? sent;
  return spend.bound(body, { path, bytes: Buffer.byteLength(JSON.stringify(body)), facts });
}

/** The bound of a call that must have one. */
export function boundOf(provider: string, path: string, body: JsonObject, facts?: ModelFacts): Bound {
  const result = judged(provider, path, body, facts);
  if ('unbounded' in result) throw new Error(JSON.stringify(result.unbounded));
  return result.bound;
}

/** The part of a call that has no bound, as the caller wrote it; undefined if every part has one. */
export function refusedIn(
  provider: string,
  path: string,
  body: JsonObject,
  facts?: ModelFacts,
): string | undefined {
  const result = judged(provider, path, body, facts);
  return 'unbounded' in result ? result.unbounded.param : undefined;
}

/** The usage of a stream, given its events' data. */
export const readEvents = (provider: string, path: string, events: readonly unknown[]) =>
  streamed({ spend: spendOf(provider, path) }, events);

export const chatBody = (more: JsonObject = {}): JsonObject => ({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});
