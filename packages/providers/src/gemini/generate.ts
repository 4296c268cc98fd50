import { judge } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
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
import * as FACTS from '../facts/gemini.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { Bounded, CallFacts, ModelFacts, Unbounded } from '../spend.ts';
import { geminiErrors } from './errors.ts';
import { geminiContent, geminiGeneration, geminiTools } from './fields.ts';
import { namedTwice, protoName, withField, withProtoNames } from './proto-names.ts';
import { readGeminiAnswer, readGeminiStream } from './usage.ts';

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
    atStandardPrice,
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

/** Omitted, the tier is the standard one (`@google/genai` 3.3, ServiceTier). */
function atStandardPrice(body: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => protoName(name) !== 'serviceTier'));
}

const GENERATE_FIELDS = compileGroup(FACTS.GENERATE_FIELDS, {
  content: apart(geminiContent),
  sameModel: apart(sameModel),
  standardPrice: apart(atStandardPrice),
  tools: apart(geminiTools),
  generation: geminiGeneration,
});

const EMBED_FIELDS = compileGroup(FACTS.EMBED_FIELDS, {
  content: apart(geminiContent),
  sameModel: apart(sameModel),
});

/** Deeper than any request needs. A body is walked by recursion. */
const DEEPEST = 100;
const { most: FIXED } = FACTS.MARKERS;

function boundGenerate(given: JsonObject, { path, bytes, facts }: CallFacts): Bounded {
  const body = readBody(given);
  if ('unbounded' in body) return body;
  const { contents, systemInstruction, tools, generationConfig } = body.fields;
  const generation = isJsonObject(generationConfig) ? generationConfig : {};
  const schemas = [generation.responseSchema, generation.responseJsonSchema, generation._responseJsonSchema];
  const declares = [tools, ...schemas].some((each) => each !== undefined);
  const share = together([
    { effect: judge(GENERATE_FIELDS, body.fields), extra: declares ? FACTS.DECLARED.most : 0 },
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
 * `maxOutputTokens` covers thoughts: with a bound of 1,024 tokens Gemini 3 used 906 for thoughts and was cut short
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

/** The price is that of the model in the path. The body may repeat this model, but may not name another. */
function sameModel(named: unknown, path: string): Share {
  return named === undefined || named === `models/${modelIn(path)}` || named === modelIn(path)
    ? NOTHING
    : unboundedShare("is not the path's model");
}

/** `maxOutputTokens` bounds text only. */
const answersInText = (path: string, { responseModalities }: JsonObject): Share =>
  (Array.isArray(responseModalities) && responseModalities.length > 0) ||
  !FACTS.OTHER_MODALITY.matching.test(modelIn(path) ?? '')
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
