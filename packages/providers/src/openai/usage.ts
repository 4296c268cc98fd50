import { STANDARD_TIERS } from '../facts/counts.ts';
import { countOf, isJsonObject, isTokens, type JsonObject, objectIn, textOf } from '../json.ts';
import type { Usage } from '../spend.ts';
import type { Statement } from '../usage/record.ts';
import type { OpenaiRules } from './rules.ts';

/**
 * Usage as chat completions, completions and embeddings report it (`openai` SDK, CompletionUsage), with what
 * others add: DeepSeek's `prompt_cache_hit_tokens`, Perplexity's `citation_tokens` and `num_search_queries`.
 */
export function readChatUsage(held: unknown, rules: OpenaiRules, output = true): Usage | undefined {
  if (!isJsonObject(held)) return undefined;
  const input = objectIn(held, 'prompt_tokens_details');
  const outputDetails = objectIn(held, 'completion_tokens_details');
  return fromCounts(rules.reasoningApart === true, {
    input: held.prompt_tokens,
    cacheRead: input.cached_tokens ?? held.prompt_cache_hit_tokens,
    cacheWrite: input.cache_write_tokens,
    inputAudio: input.audio_tokens,
    output: output ? held.completion_tokens : 0,
    reasoning: outputDetails.reasoning_tokens ?? held.reasoning_tokens,
    outputAudio: outputDetails.audio_tokens,
    citations: held.citation_tokens,
    webSearches: held.num_search_queries,
    total: output ? held.total_tokens : undefined,
  });
}

/**
 * The sums of the parts of the counts. Tokens that were predicted and rejected are within the completion, too
 * (`openai` SDK, CompletionUsage).
 */
export function chatParts(held: unknown, { reasoningApart }: OpenaiRules): Usage {
  if (!isJsonObject(held)) return {};
  const output = objectIn(held, 'completion_tokens_details');
  const predicted = sumIn(output, 'accepted_prediction_tokens', 'rejected_prediction_tokens');
  return {
    input_tokens: Math.max(
      sumIn(objectIn(held, 'prompt_tokens_details'), ...KINDS),
      sumIn(held, 'prompt_cache_hit_tokens', 'prompt_cache_miss_tokens'),
    ),
    output_tokens: Math.max(sumIn(output, ...KINDS), reasoningApart ? 0 : predicted),
  };
}

/** The same for Responses, and for pictures. */
export function apiParts(held: unknown): Usage {
  if (!isJsonObject(held)) return {};
  const sideOf = (side: string) => sumIn(objectIn(held, `${side}_tokens_details`), ...KINDS);
  return { input_tokens: sideOf('input'), output_tokens: sideOf('output') };
}

const KINDS = ['text_tokens', 'audio_tokens', 'image_tokens'];

function sumIn(held: JsonObject, ...names: readonly string[]): number {
  let sum = 0;
  for (const name of names) sum += countOf(held, name);
  return sum;
}

/** Usage as Responses reports it (`openai` SDK, ResponseUsage): reasoning is within the output everywhere. */
export function readResponsesUsage(held: unknown): Usage | undefined {
  if (!isJsonObject(held)) return undefined;
  const input = objectIn(held, 'input_tokens_details');
  return fromCounts(false, {
    input: held.input_tokens,
    cacheRead: input.cached_tokens,
    cacheWrite: input.cache_write_tokens,
    output: held.output_tokens,
    reasoning: objectIn(held, 'output_tokens_details').reasoning_tokens,
    total: held.total_tokens,
  });
}

/**
 * Usage of a response of a Realtime session (`openai` SDK, RealtimeResponseUsage). Tokens that were read from a cache cost as their kind
 * does. If the kind of any of them is not stated, all of them cost as uncached tokens.
 */
export function readRealtimeUsage(held: unknown): Usage | undefined {
  if (!isJsonObject(held)) return undefined;
  const input = objectIn(held, 'input_token_details');
  const output = objectIn(held, 'output_token_details');
  const cached = objectIn(input, 'cached_tokens_details');
  const isSplit = sumIn(cached, ...KINDS) === countOf(input, 'cached_tokens');
  return fromCounts(false, {
    input: held.input_tokens,
    inputAudio: input.audio_tokens,
    inputImage: input.image_tokens,
    ...(isSplit && {
      cacheRead: input.cached_tokens,
      cacheAudio: cached.audio_tokens,
      cacheImage: cached.image_tokens,
    }),
    output: held.output_tokens,
    reasoning: output.reasoning_tokens,
    outputAudio: output.audio_tokens,
    total: held.total_tokens,
  });
}

/** The sums of the parts of its counts. */
export function realtimeParts(held: unknown): Usage {
  if (!isJsonObject(held)) return {};
  const sideOf = (side: string) => sumIn(objectIn(held, `${side}_token_details`), ...KINDS);
  return { input_tokens: sideOf('input'), output_tokens: sideOf('output') };
}

type Stated = Required<Pick<Statement, 'model' | 'usage'>>;

/** The statement of an answer or a stream's chunk. Its usage is unreadable at another price than the standard tier's. */
export function stated(answer: JsonObject, usage: Usage | undefined): Stated {
  const model = typeof answer.model === 'string' ? answer.model : undefined;
  const tier = answer.service_tier ?? objectIn(answer, 'usage').service_tier ?? 'default';
  const isStandard = STANDARD_TIERS.names.includes(textOf(tier));
  return { model, usage: usage !== undefined && isStandard ? usage : 'unreadable' };
}

/** Counts as an answer states them: absent ones are undefined or null. */
type Counts = {
  readonly input: unknown;
  readonly cacheRead?: unknown;
  readonly cacheWrite?: unknown;
  readonly inputAudio?: unknown;
  readonly inputImage?: unknown;
  readonly cacheAudio?: unknown;
  readonly cacheImage?: unknown;
  readonly output: unknown;
  readonly reasoning?: unknown;
  readonly outputAudio?: unknown;
  readonly citations?: unknown;
  readonly webSearches?: unknown;
  readonly total?: unknown;
};

/** The usage of counts. Undefined if one of them cannot be read. */
function fromCounts(reasoningApart: boolean, counts: Counts): Usage | undefined {
  const { input, output, cacheRead, cacheWrite, reasoning, citations } = counts;
  if (!isTokens(input) || !isTokens(output)) return undefined;
  const apart = (reasoningApart ? number(reasoning) : 0) + number(citations);
  // Some vendors report cached tokens separately from the input, so they can exceed it.
  const cached = number(cacheRead) + number(cacheWrite);
  const usage: Record<string, number> = {
    input_tokens: input >= cached ? input : input + cached,
    output_tokens: Math.max(output + apart, number(reasoning)),
  };
  const areRead =
    addTo(usage, 'cache_read_tokens', cacheRead) &&
    addTo(usage, 'cache_write_tokens', cacheWrite) &&
    addTo(usage, 'input_audio_tokens', counts.inputAudio) &&
    addTo(usage, 'input_image_tokens', counts.inputImage) &&
    addTo(usage, 'cache_audio_read_tokens', counts.cacheAudio) &&
    addTo(usage, 'cache_image_read_tokens', counts.cacheImage) &&
    addTo(usage, 'output_reasoning_tokens', reasoning) &&
    addTo(usage, 'output_audio_tokens', counts.outputAudio) &&
    addTo(usage, 'output_citation_tokens', citations) &&
    addTo(usage, 'web_searches', counts.webSearches) &&
    addTo(usage, 'total_tokens', counts.total);
  return areRead ? usage : undefined;
}

/** Adds a count that is stated. Returns false if it is no count. */
function addTo(usage: Record<string, number>, unit: string, value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (!isTokens(value)) return false;
  usage[unit] = value;
  return true;
}

const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
