import { anthropicInCloud } from '../../anthropic/in-cloud.ts';
import { claudeWrites } from '../../anthropic/messages.ts';
import { awsErrors, BEDROCK_MODEL, bedrockModel, isClaude } from '../../bedrock/call.ts';
import { bedrockConverse } from '../../bedrock/converse.ts';
import type { Dialect } from '../../dialect.ts';
import * as FACTS from '../../facts/bedrock.ts';
import { readObject } from '../../json.ts';
import { OPEN_WEIGHTS_ADDED } from '../../openai/rules.ts';
import type { Provider } from '../../provider.ts';
import { statesTwice } from '../../usage/twice.ts';
import { anthropic } from '../anthropic.ts';

const messages = anthropicInCloud('bedrock-anthropic', {
  modelInPath: BEDROCK_MODEL,
  model: bedrockModel,
  streamPath: /\/invoke-with-response-stream\/?$/i,
  // PayloadPart: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_PayloadPart.html
  unwrap: (data) => {
    const { bytes } = readObject(data) ?? {};
    const text = typeof bytes === 'string' ? Buffer.from(bytes, 'base64').toString() : undefined;
    // The reader of the stream sees the wrapping alone.
    return text === undefined || statesTwice(text) ? '{"type":"error"}' : text;
  },
});

/** InvokeModel takes each maker's own body. Only Claude's is known here. */
const invoke: Dialect = {
  ...messages,
  errors: awsErrors,
  ...(messages.spend && {
    spend: {
      ...messages.spend,
      pricedHeaders: [...(messages.spend.pricedHeaders ?? []), ...FACTS.PRICED_HEADERS.names],
    },
  }),
};

/**
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html; addresses:
 * https://docs.aws.amazon.com/general/latest/gr/bedrock.html
 */
export const bedrock: Provider = {
  id: 'bedrock',
  traceName: 'aws.bedrock',
  priceList: 'aws',
  listedModels: FACTS.LISTED.matching,
  liteLlm: ['bedrock', 'bedrock_converse'],
  liteLlmModels: FACTS.LISTED_BY_LITE_LLM.matching,
  baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com',
  originIn: ({ region }) => region && `https://bedrock-runtime.${region}.amazonaws.com`,
  credential: { header: 'authorization', scheme: 'AWS4-HMAC-SHA256', service: 'bedrock' },
  routes: [
    { path: '/model/*/converse', dialect: bedrockConverse },
    { path: '/model/*/converse-stream', dialect: bedrockConverse },
    { path: '/model/anthropic.claude-*/invoke', dialect: invoke },
    { path: '/model/anthropic.claude-*/invoke-with-response-stream', dialect: invoke },
    { path: '/model/*.anthropic.claude-*/invoke', dialect: invoke },
    { path: '/model/*.anthropic.claude-*/invoke-with-response-stream', dialect: invoke },
  ],
  slashedIds: FACTS.SLASHED_IDS.names,
  // Anthropic's dialect counts all tokens that are added for Claude.
  rules: { addedInput: (model) => (isClaude(model) ? 0 : OPEN_WEIGHTS_ADDED) },
  errors: () => awsErrors,
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  cacheWrites: claudeWrites,
  models: anthropic.models ?? {},
  // `us.anthropic.claude-haiku-4-5-20251001-v1:0` is `claude-haiku-4-5-20251001`.
  modelRow: (model) => model.replace(/^(?:[a-z]+\.)?anthropic\./, '').replace(/-v\d(?::\d)?$/, ''),
};
