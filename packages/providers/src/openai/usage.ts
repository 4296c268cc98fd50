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

const sumIn = (held: JsonObject, ...names: readonly string[]): number =>
  names.reduce((sum, name) => sum + countOf(held, name), 0);

/** Usage as Responses reports it (`openai` SDK, ResponseUsage): reasoning is within the output everywhere. */
export function readResponsesUsage(held: unknown): Usage | undefined {
  if (!isJsonObject(held)) return undefined;
  const input = objectIn(held, 'input_tokens_details');
  return fromCounts(false, {
    input: held.input_tokens,
    cacheRead: input.cached_tokens,
    cacheWrite: input.cache_write_tokens,
    inputAudio: undefined,
    output: held.output_tokens,
    reasoning: objectIn(held, 'output_tokens_details').reasoning_tokens,
    outputAudio: undefined,
    citations: undefined,
    webSearches: undefined,
    total: held.total_tokens,
  });
}

/** The statement of an answer or a stream's chunk. Its usage is unreadable at another price than the standard tier's. */
export function stated(answer: JsonObject, usage: Usage | undefined): Statement {
  const model = typeof answer.model === 'string' ? answer.model : undefined;
  const tier = answer.service_tier ?? objectIn(answer, 'usage').service_tier ?? 'default';
  const isStandard = STANDARD_TIERS.names.includes(textOf(tier));
  return { model, usage: usage !== undefined && isStandard ? usage : 'unreadable' };
}

type Count = 'input' | 'cacheRead' | 'cacheWrite' | 'inputAudio' | 'output' | 'reasoning' | 'outputAudio';
type Counts = Readonly<Record<Count | 'citations' | 'webSearches' | 'total', unknown>>;

function fromCounts(reasoningApart: boolean, counts: Counts): Usage | undefined {
  const values = Object.values(counts).filter((value) => value !== undefined && value !== null);
  if (!values.every(isTokens) || !isTokens(counts.input) || !isTokens(counts.output)) return undefined;
  const { cacheRead, cacheWrite, reasoning, citations } = counts;
  // Some vendors report cached tokens separately from the input, so they can exceed it.
  const cached = number(cacheRead) + number(cacheWrite);
  const input = counts.input >= cached ? counts.input : counts.input + cached;
  const apart = (reasoningApart ? number(reasoning) : 0) + number(citations);
  return {
    input_tokens: input,
    ...named('cache_read_tokens', cacheRead),
    ...named('cache_write_tokens', cacheWrite),
    ...named('input_audio_tokens', counts.inputAudio),
    output_tokens: Math.max(counts.output + apart, number(reasoning)),
    ...named('output_reasoning_tokens', reasoning),
    ...named('output_audio_tokens', counts.outputAudio),
    ...named('output_citation_tokens', citations),
    ...named('web_searches', counts.webSearches),
    ...named('total_tokens', counts.total),
  };
}

const number = (value: unknown): number => (typeof value === 'number' ? value : 0);

const named = (unit: string, value: unknown): Usage => (typeof value === 'number' ? { [unit]: value } : {});
