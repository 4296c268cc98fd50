import { countOf, isJsonObject, type JsonObject, readObject } from '../json.ts';
import { countsRead, type EventReader, type Usage } from '../spend.ts';
import { hasItems, hasText } from '../usage/content.ts';
import { GEMINI_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Content, Statement } from '../usage/record.ts';
import { groundingIn } from './grounding.ts';

/** The statement of a whole answer. */
export function readGeminiAnswer(answer: unknown): Statement | undefined {
  if (!isJsonObject(answer) || answer.error !== undefined || answer.usageMetadata === undefined)
    return undefined;
  const { unknown = [], ...statement } = stated(answer, answer.usageMetadata);
  const parts = partsOf(answer, new Set());
  return { ...statement, ...parts, unknown: [...unknown, ...(parts.unknown ?? [])] };
}

/**
 * Each event reports the usage so far. A candidate ends with its `finishReason`, a blocked prompt with `blockReason`.
 * https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
 */
export function readGeminiStream(): EventReader {
  let usage: JsonObject = {};
  let hasUsage = false;
  let failed = false;
  const begun = new Set<unknown>();
  const finished = new Set<unknown>();
  const queries = new Set<string>();
  return {
    event: (data) => {
      const event = readObject(data);
      if (event === undefined) return undefined;
      failed ||= event.error !== undefined;
      for (const candidate of candidatesOf(event)) {
        begun.add(candidate.index ?? 0);
        if (typeof candidate.finishReason === 'string') finished.add(candidate.index ?? 0);
      }
      if (isJsonObject(event.promptFeedback) && event.promptFeedback.blockReason !== undefined)
        finished.add('prompt');
      const parts = partsOf(event, queries);
      if (event.usageMetadata === undefined) return parts;
      // Usage that came before the end is not complete. A count that an event leaves out stays as it was.
      hasUsage = finished.size > 0;
      usage = { ...usage, ...(isJsonObject(event.usageMetadata) ? event.usageMetadata : {}) };
      const { unknown = [], ...statement } = stated(event, usage);
      return { ...statement, ...parts, unknown: [...unknown, ...(parts.unknown ?? [])] };
    },
    isWhole: () => !failed && hasUsage && finished.size > 0 && finished.size >= begun.size,
  };
}

const candidatesOf = ({ candidates }: JsonObject): readonly JsonObject[] =>
  Array.isArray(candidates) ? candidates.filter(isJsonObject) : [];

function stated({ modelVersion: model }: JsonObject, usage: unknown): Statement {
  const counts = countsOf(usage);
  return {
    model: typeof model === 'string' ? model : undefined,
    usage: counts ? countsRead(counts) : 'unreadable',
    parts: partsIn(usage),
    unknown: unknownCounts(usage, GEMINI_COUNTS),
  };
}

/** The text of the model, or the vectors of an embedding. Also the searches that grounded the text. */
function partsOf(answer: JsonObject, queries: Set<string>): Statement {
  const candidates = candidatesOf(answer);
  const isWritten = candidates.some(({ content }) => isJsonObject(content) && hasText(content.parts));
  const isResult = hasItems(answer.embeddings) || hasItems(answer.embedding);
  const content: Content | undefined = isWritten ? 'written' : isResult ? 'result' : undefined;
  return { content, ...groundingIn(candidates, queries) };
}

/** Thoughts are output, and results of tools are input (GenerateContentResponseUsageMetadata). */
function countsOf(reported: unknown): Usage | undefined {
  if (!isJsonObject(reported)) return undefined;
  const { promptTokenCount, totalTokenCount, serviceTier, trafficType } = reported;
  if (promptTokenCount === undefined && totalTokenCount === undefined) return undefined;
  // Another tier has another price.
  if (![undefined, null, 'standard', 'unspecified'].includes(lowered(serviceTier))) return undefined;
  if (![undefined, null, 'on_demand', 'traffic_type_unspecified'].includes(lowered(trafficType)))
    return undefined;
  const thoughts = countOf(reported, 'thoughtsTokenCount');
  return {
    input_tokens: countOf(reported, 'promptTokenCount') + countOf(reported, 'toolUsePromptTokenCount'),
    cache_read_tokens: countOf(reported, 'cachedContentTokenCount'),
    output_tokens: countOf(reported, 'candidatesTokenCount') + thoughts,
    output_reasoning_tokens: thoughts,
    total_tokens: countOf(reported, 'totalTokenCount'),
    ...modalities('input', reported.promptTokensDetails, reported.toolUsePromptTokensDetails),
    ...modalities('cache', reported.cacheTokensDetails),
    ...modalities('output', reported.candidatesTokensDetails),
  };
}

/** The sums of the modalities of the counts. */
function partsIn(reported: unknown): Usage {
  if (!isJsonObject(reported)) return {};
  const larger = (count: string, details: string) =>
    Math.max(
      countOf(reported, count),
      detailsIn(reported[details]).reduce((sum, each) => sum + countOf(each, 'tokenCount'), 0),
    );
  return {
    input_tokens:
      larger('promptTokenCount', 'promptTokensDetails') +
      larger('toolUsePromptTokenCount', 'toolUsePromptTokensDetails'),
    output_tokens:
      larger('candidatesTokenCount', 'candidatesTokensDetails') + countOf(reported, 'thoughtsTokenCount'),
  };
}

const detailsIn = (list: unknown): readonly JsonObject[] =>
  Array.isArray(list) ? list.filter(isJsonObject) : [];

const lowered = (value: unknown) =>
  (typeof value === 'string' ? value.toLowerCase() : value) as string | null;

/** Modalities that have separate prices, by Google's names. Pages of documents have the price of images. */
const PRICED: ReadonlyMap<unknown, string> = new Map([
  ['AUDIO', 'audio'],
  ['IMAGE', 'image'],
  ['DOCUMENT', 'image'],
  ['VIDEO', 'video'],
]);

function modalities(kind: 'input' | 'cache' | 'output', ...lists: readonly unknown[]): Usage {
  const details = lists.flatMap(detailsIn);
  const usage = new Map<string, number>();
  for (const detail of details) {
    if (detail.modality === 'TEXT') continue;
    // Another name, or a number (`$alt=json;enum-encoding=int`), may be of any price.
    const modality = PRICED.get(detail.modality) ?? 'unknown';
    if (modality === 'unknown' && countOf(detail, 'tokenCount') > 0) return { [modality]: Number.NaN };
    const unit = kind === 'cache' ? `cache_${modality}_read_tokens` : `${kind}_${modality}_tokens`;
    usage.set(unit, (usage.get(unit) ?? 0) + countOf(detail, 'tokenCount'));
  }
  return Object.fromEntries(usage);
}
