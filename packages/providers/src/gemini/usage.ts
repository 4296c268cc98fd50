import { countOf, isJsonObject, type JsonObject, readObject } from '../json.ts';
import { type Reported, type StreamReader, type Usage, usageOf } from '../spend.ts';

/** Usage of a whole answer. */
export function readGeminiAnswer(answer: unknown): Reported | undefined {
  if (!isJsonObject(answer) || answer.error !== undefined || answer.usageMetadata === undefined)
    return undefined;
  const usage = countsOf(answer.usageMetadata);
  const model = answer.modelVersion;
  return usage && { model: typeof model === 'string' ? model : undefined, usage };
}

/**
 * Each event tells the usage so far; the last word is a candidate's `finishReason`, or why the prompt was blocked.
 * https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
 */
export function readGeminiStream(): StreamReader {
  let last: JsonObject | undefined;
  let failed = false;
  const begun = new Set<unknown>();
  const finished = new Set<unknown>();
  return {
    event: (data) => {
      const event = readObject(data);
      if (event === undefined) return;
      failed ||= event.error !== undefined;
      for (const candidate of Array.isArray(event.candidates) ? event.candidates.filter(isJsonObject) : []) {
        begun.add(candidate.index ?? 0);
        if (typeof candidate.finishReason === 'string') finished.add(candidate.index ?? 0);
      }
      if (isJsonObject(event.promptFeedback) && event.promptFeedback.blockReason !== undefined)
        finished.add('prompt');
      // What was said before the end is not all.
      if (event.usageMetadata !== undefined) last = finished.size > 0 ? event : undefined;
    },
    end: () =>
      !failed && finished.size > 0 && finished.size >= begun.size
        ? last && readGeminiAnswer(last)
        : undefined,
  };
}

/**
 * Thoughts are output, what tools found is input (GenerateContentResponseUsageMetadata). Tokens that are in the
 * total alone are taken for output, the dearest.
 */
function countsOf(reported: unknown): Usage | undefined {
  if (!isJsonObject(reported)) return undefined;
  const { promptTokenCount, totalTokenCount, serviceTier, trafficType } = reported;
  if (promptTokenCount === undefined && totalTokenCount === undefined) return undefined;
  // Another tier has another price.
  if (![undefined, null, 'standard', 'unspecified'].includes(lowered(serviceTier))) return undefined;
  if (![undefined, null, 'on_demand', 'traffic_type_unspecified'].includes(lowered(trafficType)))
    return undefined;
  const input = countOf(reported, 'promptTokenCount') + countOf(reported, 'toolUsePromptTokenCount');
  const thoughts = countOf(reported, 'thoughtsTokenCount');
  const said = countOf(reported, 'candidatesTokenCount') + thoughts;
  return usageOf({
    input_tokens: input,
    cache_read_tokens: countOf(reported, 'cachedContentTokenCount'),
    output_tokens: Math.max(said, countOf(reported, 'totalTokenCount') - input),
    output_reasoning_tokens: thoughts,
    ...modalities('input', reported.promptTokensDetails, reported.toolUsePromptTokensDetails),
    ...modalities('cache', reported.cacheTokensDetails),
    ...modalities('output', reported.candidatesTokensDetails),
  });
}

const lowered = (value: unknown) =>
  (typeof value === 'string' ? value.toLowerCase() : value) as string | null;

/** Modalities with prices of their own, by Google's names. Pages of documents are paid for as images. */
const PRICED: ReadonlyMap<unknown, string> = new Map([
  ['AUDIO', 'audio'],
  ['IMAGE', 'image'],
  ['DOCUMENT', 'image'],
  ['VIDEO', 'video'],
]);

function modalities(kind: 'input' | 'cache' | 'output', ...lists: readonly unknown[]): Usage {
  const details = lists.flatMap((list) => (Array.isArray(list) ? list.filter(isJsonObject) : []));
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
