import { anthropicInCloud } from '../../anthropic/in-cloud.ts';
import { claudeWrites } from '../../anthropic/messages.ts';
import { awsErrors, BEDROCK_MODEL, bedrockModel, isClaude } from '../../bedrock/call.ts';
import { bedrockConverse } from '../../bedrock/converse.ts';
import type { Dialect } from '../../dialect.ts';
import { PRICED_HEADERS } from '../../facts/bedrock.ts';
import { readObject } from '../../json.ts';
import { OPEN_WEIGHTS_ADDED } from '../../openai/rules.ts';
import type { Provider } from '../../provider.ts';
import { anthropic } from '../anthropic.ts';

const messages = anthropicInCloud('bedrock-anthropic', {
  modelInPath: BEDROCK_MODEL,
  model: bedrockModel,
  streamPath: /\/invoke-with-response-stream\/?$/i,
  // PayloadPart: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_PayloadPart.html
  unwrap: (data) => {
    const { bytes } = readObject(data) ?? {};
    return typeof bytes === 'string' ? Buffer.from(bytes, 'base64').toString() : '{"type":"error"}';
  },
});

/** InvokeModel takes each maker's own body. Only Claude's is known here. */
const invoke: Dialect = {
  ...messages,
  errors: awsErrors,
  ...(messages.spend && {
    spend: {
      ...messages.spend,
      pricedHeaders: [...(messages.spend.pricedHeaders ?? []), ...PRICED_HEADERS.names],
    },
  }),
};

/**
 * Claude 4.5 and later, and the names of their inference profiles. They have one price for the global endpoint and one,
 * a tenth higher, for every other (https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock,
 * Global vs regional endpoints). Other models have a price for each region, or for extended access, which the list of
 * 2026-09 does not tell apart. Each name is written out, because the list matches names by their beginning.
 */
const LISTED =
  /^(?:(?:global|us|eu|apac|au|jp)\.)?anthropic\.claude-(?:haiku-4-5-20251001|sonnet-4-5-20250929|opus-4-5-20251101|(?:opus-4-[678]|sonnet-4-6|sonnet-5|opus-5|opus-5-5|fable-5|fable-5-1))(?:-v\d(?::\d)?)?$/;

/**
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html; addresses:
 * https://docs.aws.amazon.com/general/latest/gr/bedrock.html
 */
export const bedrock: Provider = {
  id: 'bedrock',
  traceName: 'aws.bedrock',
  priceList: 'aws',
  listedModels: LISTED,
  liteLlm: ['bedrock', 'bedrock_converse'],
  // LiteLLM prices an inference profile as it is. A model without one has the price of the global endpoint there (1.109.1:
  // `anthropic.claude-sonnet-4-6`), but runs in the region of its key, which costs more.
  liteLlmModels: /^(?:global|us|eu|apac|au|jp)\./,
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
  // An inference profile or a provisioned model may be named by its ARN, which has a slash
  // (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, modelId).
  slashedIds: ['converse', 'converse-stream', 'invoke', 'invoke-with-response-stream', 'count-tokens'].map(
    (action) => `/model/*/${action}`,
  ),
  // Anthropic's dialect counts all tokens that are added for Claude.
  rules: { addedInput: (model) => (isClaude(model) ? 0 : OPEN_WEIGHTS_ADDED) },
  errors: () => awsErrors,
  // The AWS SDKs read the request id and the type of an error. InvokeModel's answers state tokens and guardrails.
  answerHeaders: ['x-amzn-*', 'x-amz-*', 'amazon-bedrock-*'],
  refusals: 'undocumented',
  cacheWrites: claudeWrites,
  models: anthropic.models ?? {},
  // `us.anthropic.claude-haiku-4-5-20251001-v1:0` is `claude-haiku-4-5-20251001`.
  modelRow: (model) => model.replace(/^(?:[a-z]+\.)?anthropic\./, '').replace(/-v\d(?::\d)?$/, ''),
};
