import { allow } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { OPENAI_FIELDS, OPENAI_PARTS } from '../facts/openai/chat.ts';
import type { ModelPrice } from '../facts/rates.ts';
import * as FACTS from '../facts/vendors/openai.ts';
import { textOf } from '../json.ts';
import { undated } from '../model-names.ts';
import { openaiChat } from '../openai/chat.ts';
import { AS_OPENAI, openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { CACHE_AND_RECORDS } from '../openai/fields.ts';
import { openaiImages } from '../openai/images.ts';
import { openaiRealtime } from '../openai/realtime.ts';
import { openaiResponses } from '../openai/responses.ts';
import { serverToolsOf } from '../openai/responses-fields.ts';
import { OPENAI_ADDED, OPENAI_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { openaiSpeech } from '../openai/speech.ts';
import { BEARER, type ModelRows, type Provider, ratesFor, rowsOf } from '../provider.ts';
import type { VendorRules } from '../vendor-rules.ts';

/** Of OpenAI, and of deployments on Azure. */
export const OPENAI_MODELS: ModelRows = rowsOf(FACTS.MODELS);

const { models: IMAGE_TOKENS } = FACTS.IMAGE_TOKENS;

/** Most tokens of one image. Undefined if the model's maximum is not published. */
const imageTokens = (model: unknown): number | undefined => imageTokensOf(undated(textOf(model)));

const imageTokensOf = (name: string): number | undefined =>
  Object.hasOwn(IMAGE_TOKENS, name) ? IMAGE_TOKENS[name] : undefined;

const SERVER_TOOLS = serverToolsOf(FACTS.SERVER_TOOLS);

/** Rules about money that OpenAI and its models on Azure share. Search and deep research models have fees of their own. */
export const OPENAI_VENDOR_RULES: VendorRules = {
  addedInput: OPENAI_ADDED,
  refusedModels: FACTS.REFUSED_MODELS.matching,
};

/** Its rules where it follows OpenAI. */
export const OPENAI_RULES: OpenaiRules = { ...FACTS.USAGE, input: { ...OPENAI_INPUT, imageTokens } };

/** Fields and content that chat completions have at OpenAI and on Azure. */
export const OPENAI_CHAT = {
  fields: allow(CACHE_AND_RECORDS, compileGroup(OPENAI_FIELDS)),
  parts: compileGroup(OPENAI_PARTS),
};

export const RESPONSES_MINIMUM = FACTS.LEAST_OUTPUT.least;

const SOUND: ReadonlyMap<string, ModelPrice> = new Map(Object.entries(FACTS.SOUND.models));

function publishedRates(model: string): ModelPrice {
  return {
    ...ratesFor(model, [FACTS.FEES, FACTS.FEES_OF_REASONING]),
    ...(SOUND.get(model) ?? SOUND.get(undated(model))),
  };
}

/** https://platform.openai.com/docs/api-reference; the `openai` SDK's client.ts and resources/. */
export const openai: Provider = {
  id: 'openai',
  priceList: 'openai',
  liteLlm: ['openai', 'text-completion-openai'],
  baseUrl: 'https://api.openai.com',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: openaiChat('openai-chat', OPENAI_RULES, OPENAI_CHAT) },
    {
      path: '/v1/responses',
      dialect: openaiResponses('openai-responses', OPENAI_RULES, {
        serverTools: SERVER_TOOLS,
        minimum: RESPONSES_MINIMUM,
      }),
      // https://developers.openai.com/api/docs/guides/websocket-mode (2026-11-29)
      socket: 'responses',
    },
    {
      path: '/v1/completions',
      // Completions have no tiers.
      dialect: openaiCompletions(
        'openai-completions',
        { ...OPENAI_RULES, standardTier: undefined },
        AS_OPENAI,
      ),
    },
    {
      path: '/v1/realtime',
      dialect: openaiRealtime('openai-realtime', OPENAI_RULES),
      // https://developers.openai.com/api/docs/guides/realtime-websocket (2026-11-29)
      socket: 'realtime',
    },
    { path: '/v1/embeddings', dialect: openaiEmbeddings('openai-embeddings', OPENAI_RULES) },
    { path: '/v1/images/generations', dialect: openaiImages('openai-images', OPENAI_RULES) },
    { path: '/v1/audio/speech', dialect: openaiSpeech('openai-speech', OPENAI_RULES) },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  slashedIds: FACTS.SLASHED_IDS.names,
  rules: OPENAI_VENDOR_RULES,
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  modelFields: FACTS.MODEL_FIELDS.names,
  models: OPENAI_MODELS,
  encodings: new Map(Object.entries(FACTS.ENCODINGS.models)),
  unitPrices: new Map(Object.entries(FACTS.UNIT_PRICES.models)),
  publishedRates,
  mediaAsWhole: new Set(FACTS.MEDIA_AS_WHOLE.names),
  makerNames: ['openai'],
};
