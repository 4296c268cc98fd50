import type { Group, Matching, Most, Names } from './fact.ts';

/** Fields of Converse. */
export const CONVERSE_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, ConverseRequest',
  date: '2026-11-27',
  entries: {
    messages: { effect: 'judged', by: 'messages' },
    system: { effect: 'judged', by: 'content' },
    toolConfig: { effect: 'judged', by: 'tools' },
    additionalModelResponseFieldPaths: { effect: 'harmless' },
    requestMetadata: { effect: 'harmless' },
    additionalModelRequestFields: { effect: 'judged', by: 'modelFields' },
    guardrailConfig: { effect: 'refused', reason: 'guardrails have a price of their own' },
    inferenceConfig: { effect: 'judged', by: 'inferenceConfig' },
    outputConfig: { effect: 'judged', by: 'outputConfig' },
  },
} as const satisfies Group;

export const INFERENCE_CONFIG = {
  at: 'inferenceConfig',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, InferenceConfiguration',
  date: '2026-11-27',
  entries: {
    maxTokens: { effect: 'judged', by: 'output' },
    temperature: { effect: 'harmless' },
    topP: { effect: 'harmless' },
    stopSequences: { effect: 'harmless' },
  },
} as const satisfies Group;

export const OUTPUT_CONFIG = {
  at: 'outputConfig',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, OutputConfig',
  date: '2026-11-27',
  entries: {
    textFormat: { effect: 'judged', by: 'format' },
    effort: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of Claude. */
export const MODEL_FIELDS = {
  at: 'additionalModelRequestFields',
  of: 'fields',
  source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html',
  date: '2026-11-27',
  entries: {
    top_k: { effect: 'harmless' },
    thinking: { effect: 'judged', by: 'thinking' },
    // Each of its values is judged (`bounds/betas.ts`).
    anthropic_beta: { effect: 'harmless' },
  },
} as const satisfies Group;

export const MESSAGE = {
  at: 'messages[]',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, Message',
  date: '2026-11-27',
  entries: {
    role: { effect: 'harmless' },
    content: { effect: 'judged', by: 'content' },
  },
} as const satisfies Group;

/** Each block has one of these fields. The text of a harmless one bounds its cost. */
export const BLOCKS = {
  at: 'messages[].content[]',
  of: 'fields',
  source:
    '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, ContentBlock, SystemContentBlock and ToolResultContentBlock',
  date: '2026-11-27',
  entries: {
    text: { effect: 'harmless' },
    json: { effect: 'judged', by: 'rewritten' },
    reasoningContent: { effect: 'harmless' },
    citationsContent: { effect: 'harmless' },
    searchResult: { effect: 'harmless' },
    toolUse: { effect: 'judged', by: 'rewritten' },
    toolResult: { effect: 'judged', by: 'toolResult' },
    image: { effect: 'judged', by: 'image' },
    document: { effect: 'whole window' },
    video: { effect: 'whole window' },
    audio: { effect: 'whole window' },
    cachePoint: { effect: 'judged', by: 'cachePoint' },
  },
} as const satisfies Group;

export const TOOL_RESULT = {
  at: 'messages[].content[].toolResult',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, ToolResultBlock',
  date: '2026-11-27',
  entries: {
    toolUseId: { effect: 'harmless' },
    content: { effect: 'judged', by: 'content' },
    status: { effect: 'harmless' },
    type: { effect: 'harmless' },
  },
} as const satisfies Group;

export const CACHE_POINT = {
  at: 'messages[].content[].cachePoint',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, CachePointBlock',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    ttl: {
      effect: 'harmless',
      values: ['5m'],
      reason: 'the price list has no rate for tokens that are cached for an hour',
    },
  },
} as const satisfies Group;

export const TOOL_CONFIG = {
  at: 'toolConfig',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, ToolConfiguration',
  date: '2026-11-27',
  entries: {
    tools: { effect: 'judged', by: 'tools' },
    toolChoice: { effect: 'harmless' },
  },
} as const satisfies Group;

export const TOOLS = {
  at: 'toolConfig.tools[]',
  of: 'fields',
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, models_0, Tool',
  date: '2026-11-27',
  entries: {
    toolSpec: { effect: 'judged', by: 'rewritten' },
    cachePoint: { effect: 'judged', by: 'cachePoint' },
    systemTool: { effect: 'refused', reason: 'the cost of this tool has no stated maximum' },
  },
} as const satisfies Group;

/** Headers of InvokeModel that change the price: optimized latency, another tier, a guardrail. */
export const PRICED_HEADERS: Names = {
  source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html',
  date: '2026-11-22',
  names: [
    'x-amzn-bedrock-guardrailidentifier',
    'x-amzn-bedrock-guardrailversion',
    'x-amzn-bedrock-performanceconfig-latency',
    'x-amzn-bedrock-service-tier',
  ],
};

/**
 * Claude 4.5 and later, and the names of their inference profiles. They have one price for the global endpoint and one, a tenth higher, for
 * every other. Other models have a price for each region, or for extended access, which the list does not tell apart. Each name is
 * written out, because the list matches names by their beginning.
 */
export const LISTED: Matching = {
  source:
    'https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock, Global vs regional endpoints',
  date: '2026-11-26',
  matching:
    /^(?:(?:global|us|eu|apac|au|jp)\.)?anthropic\.claude-(?:haiku-4-5-20251001|sonnet-4-5-20250929|opus-4-5-20251101|(?:opus-4-[678]|sonnet-4-6|sonnet-5|opus-5|opus-5-5|fable-5|fable-5-1))(?:-v\d(?::\d)?)?$/,
};

/**
 * Inference profiles. A model without one has the price of the global endpoint in LiteLLM's list (`anthropic.claude-sonnet-4-6`), but runs in the
 * region of its key, which costs more.
 */
export const LISTED_BY_LITE_LLM: Matching = {
  source: 'the list of litellm 1.109.1',
  date: '2026-11-26',
  matching: /^(?:global|us|eu|apac|au|jp)\./,
};

/** Paths whose model has a slash: an inference profile or a provisioned model may be named by its ARN. */
export const SLASHED_IDS: Names = {
  source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, modelId',
  date: '2026-11-26',
  names: [
    '/model/*/converse',
    '/model/*/converse-stream',
    '/model/*/invoke',
    '/model/*/invoke-with-response-stream',
    '/model/*/count-tokens',
  ],
};

/** Headers of its answers that pass. Those of InvokeModel state tokens and guardrails. */
export const ANSWER_HEADERS: Names = {
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, which reads the request id and the type of an error',
  date: '2026-11-26',
  names: ['x-amzn-*', 'x-amz-*', 'amazon-bedrock-*'],
};

/** Claude: a model's id, or that of an inference profile. */
export const CLAUDE: Matching = {
  source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html',
  date: '2026-11-22',
  matching: /^(?:[a-z]+\.)?anthropic\.claude-/,
};

/** Markers around turns. The names and braces of the JSON outweigh them. */
export const MARKERS: Most = {
  source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html',
  date: '2026-11-22',
  most: 64,
};

/** Fields of AWS's errors. An intermediary's page is not JSON, or has other fields. */
export const ERROR_FIELDS: Names = {
  source:
    '`@aws-sdk/client-bedrock-runtime` 3.1164, models/errors, and the headers and bodies that `@smithy/core` reads',
  date: '2026-11-22',
  names: ['message', 'Message', '__type', 'originalMessage', 'originalStatusCode', 'resourceName'],
};
