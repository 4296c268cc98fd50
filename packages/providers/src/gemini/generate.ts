import { judge } from '../bounds/allow-list.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import {
  boundInput,
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  together,
  unboundedShare,
} from '../bounds/input-share.ts';
import { isCount, readOutputBound } from '../bounds/output-bound.ts';
import { type Dialect, type ModelInPath, NAMES, NO_OUTPUT, type Setting } from '../dialect.ts';
import { countOf, isJsonObject, type JsonObject, readObject } from '../json.ts';
import {
  type Bounded,
  type CallFacts,
  type ModelFacts,
  type Reported,
  type StreamReader,
  type Unbounded,
  type Usage,
  usageOf,
} from '../spend.ts';
import { geminiErrors } from './errors.ts';
import { EMBED_FIELDS, GENERATE_FIELDS, geminiContent, geminiTools } from './fields.ts';
import { namedTwice, protoName, withField, withProtoNames } from './proto-names.ts';

const shared = {
  model: (_body: JsonObject, path: string) => modelIn(path),
  readAnswer: readGeminiAnswer,
  isOwnError,
};

const protoJson = { callersOwn: ['responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'labels'] };

export const modelInPath = (...repeatedAt: string[][]): ModelInPath => ({
  collections: ['models', 'tunedModels'],
  repeatedAt,
  withMethod: true,
});

const generation = (name: string, names: readonly string[]): Setting => ({
  at: ['generationConfig', name],
  names,
});

/**
 * generateContent and streamGenerateContent: the settings that shape output are in `generationConfig`.
 * https://ai.google.dev/api/generate-content#generationconfig
 */
export const geminiGenerate: Dialect = {
  id: 'gemini-generate',
  errors: geminiErrors,
  protoJson,
  modelInPath: modelInPath(['model']),
  settings: [
    generation('maxOutputTokens', NAMES.outputBound),
    generation('temperature', NAMES.temperature),
    generation('topP', NAMES.topP),
    generation('topK', NAMES.topK),
    { ...generation('stopSequences', NAMES.stop), list: true },
    generation('candidateCount', NAMES.count),
    generation('seed', NAMES.seed),
    generation('presencePenalty', NAMES.presencePenalty),
    generation('frequencyPenalty', NAMES.frequencyPenalty),
  ],
  spend: {
    ...shared,
    streams: (_body, path) => /:streamGenerateContent$/i.test(path),
    boundBody: boundGenerate,
    withOutputBound: (body, tokens) => withField(body, ['generationConfig', 'maxOutputTokens'], tokens),
    // Omitted, it is the standard tier (`@google/genai` 3.1, ServiceTier).
    atStandardPrice: (body) =>
      Object.fromEntries(Object.entries(body).filter(([name]) => protoName(name) !== 'serviceTier')),
    readStream: readGeminiStream,
  },
};

/**
 * countTokens, which may hold a whole generateContent request.
 * https://ai.google.dev/api/tokens
 */
export const geminiCountTokens: Dialect = {
  id: 'gemini-count-tokens',
  errors: geminiErrors,
  protoJson,
  modelInPath: modelInPath(['model'], ['generateContentRequest', 'model']),
  settings: NO_OUTPUT,
};

/**
 * embedContent and batchEmbedContents: each request of a batch repeats the model.
 * https://ai.google.dev/api/embeddings
 */
export const geminiEmbed: Dialect = {
  id: 'gemini-embed',
  errors: geminiErrors,
  protoJson,
  modelInPath: modelInPath(['model'], ['requests', '[]', 'model']),
  settings: NO_OUTPUT,
  spend: { ...shared, streams: () => false, boundBody: boundEmbed },
};

/** Deeper than any request needs. A body is walked by recursion. */
const DEEPEST = 100;
/** Covers the tokens that Google adds around turns. The names and braces of the JSON outweigh them. */
const FIXED = 64;
/** Covers the instructions that Google adds for tools or a format. */
const DECLARED = 1_024;
/** Models that answer in images, sound or video unless the call asks for text. */
const OTHER_MODALITY = /image|tts|audio|live|omni|lyria|veo/;

function boundGenerate(given: JsonObject, { path, bytes, facts }: CallFacts): Bounded {
  const body = readBody(given);
  if ('unbounded' in body) return body;
  const { contents, systemInstruction, tools, generationConfig } = body.fields;
  const generation = isJsonObject(generationConfig) ? generationConfig : {};
  const schemas = [generation.responseSchema, generation.responseJsonSchema, generation._responseJsonSchema];
  const declares = [tools, ...schemas].some((each) => each !== undefined);
  const share = together([
    { effect: judge(GENERATE_FIELDS, body.fields), extra: declares ? DECLARED : 0 },
    shareBelow('model', sameModel(body.fields.model, path)),
    shareBelow('model', answersInText(path, generation)),
    shareBelow('tools', geminiTools(tools)),
    shareBelow('systemInstruction', geminiContent(systemInstruction)),
    shareBelow('contents', geminiContent(contents)),
    ...schemas.map(rewrittenShare),
  ]);
  const input = boundInput(share, { bytes, facts }, { fixed: FIXED });
  if ('unbounded' in input) return input;
  const output = outputOf(generation, facts);
  return 'unbounded' in output ? output : { bound: { inputTokens: input.tokens, fees: {}, output } };
}

/**
 * `maxOutputTokens` covers thoughts: with 1,024 Gemini 3 thought 906 and was cut short
 * (https://github.com/googleapis/python-genai/issues/2062), as 2.5 does. `thinkingBudget` is no limit.
 */
function outputOf(generation: JsonObject, facts: ModelFacts) {
  const { maxOutputTokens, candidateCount, thinkingConfig } = generation;
  const thinkingBudget = isJsonObject(thinkingConfig) ? thinkingConfig.thinkingBudget : undefined;
  const budget = isCount(thinkingBudget) ? thinkingBudget : 0;
  const read = readOutputBound({ max_output_tokens: maxOutputTokens }, facts, { minimum: budget + 1 });
  if ('unbounded' in read) return read;
  return { ...read, times: isCount(candidateCount) ? candidateCount : 1, coversReasoning: true };
}

function boundEmbed(given: JsonObject, { path, bytes, facts }: CallFacts): Bounded {
  const body = readBody(given);
  if ('unbounded' in body) return body;
  const { requests, ...single } = body.fields;
  const list = Array.isArray(requests) ? requests : [requests];
  const share = together([
    requestShare(single, path),
    requests === undefined
      ? NOTHING
      : shareBelow(
          'requests',
          shareOfEach(list, (each) => requestShare(each, path)),
        ),
  ]);
  const input = boundInput(share, { bytes, facts });
  if ('unbounded' in input) return input;
  // Media fill the model's whole window, once for each request.
  const passes = share.effect === 'whole window' ? list.length : 1;
  return { bound: { inputTokens: input.tokens * passes, fees: {}, output: undefined } };
}

function requestShare(request: unknown, path: string): Share {
  if (!isJsonObject(request)) return unboundedShare('is not an object');
  return together([
    { effect: judge(EMBED_FIELDS, request), extra: 0 },
    shareBelow('model', sameModel(request.model, path)),
    shareBelow('content', geminiContent(request.content)),
  ]);
}

function readBody(body: JsonObject): { readonly fields: JsonObject } | { readonly unbounded: Unbounded } {
  if (!nestedWithin(body, DEEPEST)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const twice = namedTwice(body);
  if (twice !== undefined) return { unbounded: { param: twice, reason: 'is given under two names' } };
  return { fields: withProtoNames(body) as JsonObject };
}

/** The path's model is priced, so the body may repeat it but name no other. */
const sameModel = (named: unknown, path: string): Share =>
  named === undefined || named === `models/${modelIn(path)}` || named === modelIn(path)
    ? NOTHING
    : unboundedShare("is not the path's model");

/** `maxOutputTokens` bounds text only. */
const answersInText = (path: string, { responseModalities }: JsonObject): Share =>
  (Array.isArray(responseModalities) && responseModalities.length > 0) ||
  !OTHER_MODALITY.test(modelIn(path) ?? '')
    ? NOTHING
    : unboundedShare('answers in more than text, unless generationConfig.responseModalities is ["TEXT"]');

/** `gemini-x` of `/v1beta/models/gemini-x:generateContent`. The path of a tuned model does not name its base model. */
export function modelIn(path: string): string | undefined {
  return /\/models\/([\w.-]+):\w+$/i.exec(path)?.[1];
}

/** `{"error": {"code", "message", "status"}}`, in a list if the call asked for a stream. */
export function isOwnError(answer: unknown): boolean {
  const inner = Array.isArray(answer) ? answer[0] : answer;
  const error = isJsonObject(inner) ? inner.error : undefined;
  return isJsonObject(error) && typeof error.code === 'number' && typeof error.message === 'string';
}

/** Usage of a whole answer. */
function readGeminiAnswer(answer: unknown): Reported | undefined {
  if (!isJsonObject(answer) || answer.error !== undefined || answer.usageMetadata === undefined)
    return undefined;
  const usage = countsOf(answer.usageMetadata);
  const model = answer.modelVersion;
  return usage && { model: typeof model === 'string' ? model : undefined, usage };
}

/**
 * Each event reports the usage so far. A candidate ends with its `finishReason`, a blocked prompt with `blockReason`.
 * https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
 */
function readGeminiStream(): StreamReader {
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
      // Usage that came before the end is not complete.
      if (event.usageMetadata !== undefined) last = finished.size > 0 ? event : undefined;
    },
    end: () =>
      !failed && finished.size > 0 && finished.size >= begun.size
        ? last && readGeminiAnswer(last)
        : undefined,
  };
}

/**
 * Thoughts are output, and results of tools are input (GenerateContentResponseUsageMetadata). Tokens that only the total
 * contains count as output, which is the dearest kind.
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
  const written = countOf(reported, 'candidatesTokenCount') + thoughts;
  return usageOf({
    input_tokens: input,
    cache_read_tokens: countOf(reported, 'cachedContentTokenCount'),
    output_tokens: Math.max(written, countOf(reported, 'totalTokenCount') - input),
    output_reasoning_tokens: thoughts,
    ...modalities('input', reported.promptTokensDetails, reported.toolUsePromptTokensDetails),
    ...modalities('cache', reported.cacheTokensDetails),
    ...modalities('output', reported.candidatesTokensDetails),
  });
}

const lowered = (value: unknown) =>
  (typeof value === 'string' ? value.toLowerCase() : value) as string | null;

/** Modalities with prices of their own, by Google's names. Pages of documents have the price of images. */
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
