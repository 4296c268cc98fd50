import { asUnbounded, judge, judgeEach, judgeObject } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { countIn } from '../bounds/output-bound.ts';
import { type Dialect, NAMES, NO_OUTPUT } from '../dialect.ts';
import * as IMAGEN from '../facts/gemini.ts';
import * as FACTS from '../facts/vendors/google.ts';
import { geminiErrors } from '../gemini/errors.ts';
import {
  geminiCountTokens,
  geminiEmbed,
  geminiGenerate,
  isOwnError,
  modelIn,
  modelInPath,
} from '../gemini/generate.ts';
import { isJsonObject, objectIn } from '../json.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiErrors } from '../openai/errors.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, ratesFor, rowsOf } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const OPENAI: OpenaiRules = {
  ...FACTS.OPENAI_USAGE,
  input: { ...OPEN_WEIGHTS_INPUT, perCall: OPEN_WEIGHTS_ADDED },
};

/**
 * The API reads protocol-buffer JSON, and so camelCase names, too. Under a cost limit they are unknown fields. https://ai.google.dev/api/compatibility
 */
const chat = {
  ...openaiChat('gemini-openai-chat', OPENAI),
  protoJson: { callersOwn: ['responseFormat', 'metadata'] },
};

/** Imagen: each image has a price (`images`). */
const geminiPredict: Dialect = {
  id: 'gemini-predict',
  errors: geminiErrors,
  modelInPath: modelInPath(),
  settings: [
    { at: ['parameters', 'sampleCount'], names: NAMES.count },
    ...NO_OUTPUT.filter(({ names }) => names !== NAMES.count),
  ],
  spend: {
    model: (_body, path) => modelIn(path),
    streams: () => false,
    boundBody: (body) => {
      const effect = judge(FIELDS, body);
      if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
      const images = objectIn(body, 'parameters').sampleCount ?? MOST_IMAGES;
      return { bound: { inputTokens: 0, fees: { images: Number(images) }, output: undefined } };
    },
    readAnswer: (answer) => {
      const { predictions } = isJsonObject(answer) ? answer : {};
      if (!Array.isArray(predictions) || predictions.length === 0) return undefined;
      return { usage: { images: predictions.length }, content: 'written' };
    },
    isOwnError,
  },
};

const { most: MOST_IMAGES } = FACTS.IMAGES_OF_CALL;

const PARAMETERS = compileGroup(IMAGEN.PREDICT_PARAMETERS, {
  samples: (_, parameters) =>
    countIn(parameters, 'sampleCount', MOST_IMAGES) === undefined
      ? { unbounded: `is not a whole number from 1 to ${MOST_IMAGES}` }
      : 'harmless',
});

const INSTANCE = compileGroup(IMAGEN.PREDICT_INSTANCE);

const FIELDS = compileGroup(IMAGEN.PREDICT_FIELDS, {
  parameters: judgeObject(PARAMETERS),
  instances: (value) =>
    Array.isArray(value) && value.length === 1
      ? judgeEach(value, (each) => judge(INSTANCE, each))
      : { unbounded: 'is not a list of one prompt' },
});

/**
 * https://ai.google.dev/api; the `@google/genai` SDK's api client (base URL, header, `{model}:method` paths).
 * The first segment is the API's version: v1, v1beta or v1alpha.
 * The endpoints that follow OpenAI are documented with a bearer key: https://ai.google.dev/gemini-api/docs/openai
 */
export const google: Provider = {
  id: 'google',
  traceName: 'gcp.gemini',
  priceList: 'google',
  liteLlm: ['gemini'],
  baseUrl: 'https://generativelanguage.googleapis.com',
  credential: { header: 'x-goog-api-key' },
  routes: [
    { path: '/*/models/*:generateContent', dialect: geminiGenerate },
    { path: '/*/models/*:streamGenerateContent', dialect: geminiGenerate },
    { path: '/*/tunedModels/*:generateContent', dialect: geminiGenerate },
    { path: '/*/tunedModels/*:streamGenerateContent', dialect: geminiGenerate },
    { path: '/*/models/*:countTokens', dialect: geminiCountTokens },
    { path: '/*/models/*:embedContent', dialect: geminiEmbed },
    { path: '/*/models/*:batchEmbedContents', dialect: geminiEmbed },
    { path: '/*/models/*:predict', dialect: geminiPredict },
    { path: '/*/openai/chat/completions', dialect: chat, credential: BEARER },
    {
      path: '/*/openai/embeddings',
      dialect: openaiEmbeddings('gemini-openai-embeddings', OPENAI),
      credential: BEARER,
    },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  // The Gemini dialect is Google's own, so it counts all tokens that Google adds.
  rules: { addedInput: 0 },
  errors: (path) => (/^\/[^/]+\/openai\//.test(path) ? openaiErrors : geminiErrors),
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  // https://ai.google.dev/gemini-api/docs/billing: a request that fails with a 400 or 500 error is not charged.
  refusals: FACTS.REFUSALS.errors,
  models: rowsOf(FACTS.MODELS),
  unitPrices: new Map(Object.entries(FACTS.UNIT_PRICES.models)),
  // Daily free prompts are not known here, so each prompt costs.
  publishedRates: (model) => ratesFor(model, [FACTS.FEES_BY_PROMPT, FACTS.FEES_BY_QUERY]),
  mediaAsWhole: new Set(FACTS.MEDIA_AS_WHOLE.names),
  makerNames: ['google'],
};
