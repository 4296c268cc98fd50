import type { Group } from '../fact.ts';

/** Fields that chat completions and completions share at every provider that follows OpenAI. */
export const SHARED_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts',
  date: '2026-11-27',
  entries: {
    model: { effect: 'harmless' },
    max_tokens: { effect: 'judged', by: 'outputBound' },
    max_completion_tokens: { effect: 'judged', by: 'outputBound' },
    max_output_tokens: {
      effect: 'judged',
      by: 'outputBound',
      source:
        '`openai` 7.59, resources/responses/responses.d.ts: holders send the name of Responses here, too',
    },
    temperature: { effect: 'harmless' },
    top_p: { effect: 'harmless' },
    stop: { effect: 'harmless' },
    seed: { effect: 'harmless' },
    user: { effect: 'harmless' },
    frequency_penalty: { effect: 'harmless' },
    presence_penalty: { effect: 'harmless' },
    logit_bias: { effect: 'harmless' },
    logprobs: { effect: 'harmless' },
    top_logprobs: { effect: 'harmless' },
    n: { effect: 'judged', by: 'choices' },
    response_format: { effect: 'harmless' },
    stream: { effect: 'harmless', values: [true, false], reason: 'is neither true nor false' },
    stream_options: { effect: 'judged', by: 'streamOptions' },
    service_tier: { effect: 'judged', by: 'standardTier' },
  },
} as const satisfies Group;

export const STREAM_OPTIONS = {
  at: 'stream_options',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionStreamOptions',
  date: '2026-11-27',
  entries: {
    include_usage: { effect: 'harmless' },
    include_obfuscation: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of chat completions beyond the shared ones. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts',
  date: '2026-11-27',
  entries: {
    messages: { effect: 'judged', by: 'messages' },
    tools: { effect: 'judged', by: 'tools' },
    functions: { effect: 'harmless' },
    function_call: { effect: 'harmless' },
    tool_choice: { effect: 'harmless' },
    parallel_tool_calls: { effect: 'harmless' },
    reasoning_effort: { effect: 'judged', by: 'thinkingBudget' },
    audio: {
      effect: 'refused',
      reason: 'audio has rates of its own, which the price list lacks for some models',
    },
    modalities: { effect: 'judged', by: 'textOnly' },
    prediction: {
      effect: 'refused',
      reason: 'rejected predictions are billed beyond the bound of the output',
      source:
        'https://platform.openai.com/docs/guides/predicted-outputs, Limitations: predictions cannot be combined with the bound of the output',
    },
    web_search_options: { effect: 'refused', reason: 'searches have a fee, and their number has no bound' },
  },
} as const satisfies Group;

/** Fields by which OpenAI stores, caches and moderates. They cost nothing beyond the input. */
export const CACHE_AND_RECORDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts',
  date: '2026-11-27',
  entries: {
    metadata: { effect: 'harmless' },
    store: { effect: 'harmless' },
    safety_identifier: { effect: 'harmless' },
    prompt_cache_key: { effect: 'harmless' },
    prompt_cache_options: { effect: 'harmless' },
    prompt_cache_retention: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of chat completions at OpenAI and on Azure. */
export const OPENAI_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts',
  date: '2026-11-27',
  entries: {
    verbosity: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Sampling that hosts of open models offer. */
export const SAMPLING = {
  at: '',
  of: 'fields',
  source: '`together-ai` 0.52, resources/chat/completions.d.ts',
  date: '2026-11-27',
  entries: {
    top_k: { effect: 'harmless' },
    min_p: { effect: 'harmless' },
    typical_p: {
      effect: 'harmless',
      source: '`fireworks-ai` 1.2.30, types/chat/completion_create_params.py',
    },
    repetition_penalty: { effect: 'harmless' },
    ignore_eos: {
      effect: 'harmless',
      source: '`fireworks-ai` 1.2.30, types/chat/completion_create_params.py',
    },
    mirostat_lr: {
      effect: 'harmless',
      source: '`fireworks-ai` 1.2.30, types/chat/completion_create_params.py',
    },
    mirostat_target: {
      effect: 'harmless',
      source: '`fireworks-ai` 1.2.30, types/chat/completion_create_params.py',
    },
  },
} as const satisfies Group;

/** Thinking that is asked for with a budget, in the spellings of hosts of open models. */
export const THINKING_FIELDS = {
  at: '',
  of: 'fields',
  source:
    'https://openrouter.ai/docs/use-cases/reasoning-tokens, https://api-docs.deepseek.com/guides/thinking_mode',
  date: '2026-11-27',
  entries: {
    thinking: { effect: 'judged', by: 'thinking' },
    reasoning: { effect: 'judged', by: 'reasoning' },
  },
} as const satisfies Group;

export const THINKING = {
  at: 'thinking',
  of: 'fields',
  source: '`fireworks-ai` 1.2.30, types/chat/completion_create_params.py',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    budget_tokens: { effect: 'judged', by: 'thinkingBudget' },
  },
} as const satisfies Group;

export const REASONING = {
  at: 'reasoning',
  of: 'fields',
  source: 'https://openrouter.ai/docs/use-cases/reasoning-tokens',
  date: '2026-11-27',
  entries: {
    enabled: { effect: 'harmless' },
    effort: { effect: 'harmless' },
    max_tokens: { effect: 'judged', by: 'thinkingBudget' },
    exclude: { effect: 'harmless' },
    summary: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of a message. Routers send reasoning that may be encrypted or compressed, and images that a model wrote. */
export const MESSAGE = {
  at: 'messages[]',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts',
  date: '2026-11-27',
  entries: {
    role: { effect: 'harmless' },
    content: { effect: 'judged', by: 'content' },
    name: { effect: 'harmless' },
    tool_call_id: { effect: 'harmless' },
    function_call: { effect: 'harmless' },
    refusal: { effect: 'harmless' },
    annotations: { effect: 'harmless' },
    prefix: { effect: 'harmless', source: '`@mistralai/mistralai` 2.7, models/components/assistantmessage' },
    parsed: { effect: 'harmless', source: '`openai` 7.59, lib/ChatCompletionStream.d.ts' },
    reasoning: { effect: 'harmless', source: '`together-ai` 0.52, resources/chat/completions.d.ts' },
    reasoning_content: { effect: 'harmless', source: '`together-ai` 0.52, resources/chat/completions.d.ts' },
    tool_calls: { effect: 'judged', by: 'toolCalls' },
    audio: {
      effect: 'refused',
      reason: 'audio has rates of its own, which the price list lacks for some models',
    },
    reasoning_details: {
      effect: 'whole window',
      source: '`@openrouter/sdk` 1.3.19, models/chatassistantmessage',
    },
    images: { effect: 'whole window', source: '`@openrouter/sdk` 1.3.19, models/chatassistantmessage' },
    extra_content: {
      effect: 'whole window',
      source: 'https://ai.google.dev/gemini-api/docs/thought-signatures',
    },
  },
} as const satisfies Group;

/** A thought signature of Gemini (`extra_content`) refers to thoughts that are not in the body. */
export const TOOL_CALL = {
  at: 'messages[].tool_calls[]',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionMessageToolCall',
  date: '2026-11-27',
  entries: {
    id: { effect: 'harmless' },
    type: { effect: 'harmless' },
    index: { effect: 'harmless' },
    function: { effect: 'harmless' },
    custom: { effect: 'harmless' },
    extra_content: {
      effect: 'whole window',
      source: 'https://ai.google.dev/gemini-api/docs/thought-signatures',
    },
  },
} as const satisfies Group;

/** Kinds of content. An image counts as its published maximum, or as the whole window if none is published. */
export const PARTS = {
  at: 'messages[].content[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionContentPart',
  date: '2026-11-27',
  entries: {
    text: { effect: 'judged', by: 'text' },
    refusal: { effect: 'judged', by: 'refusal' },
    image_url: { effect: 'judged', by: 'image' },
    input_audio: {
      effect: 'refused',
      reason: 'audio has rates of its own, which the price list lacks for some models',
    },
  },
} as const satisfies Group;

/** A cache breakpoint is harmless: all input is held at its dearest rate. */
export const TEXT_PART = {
  at: 'messages[].content[]',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionContentPartText',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    text: { effect: 'harmless' },
    prompt_cache_breakpoint: { effect: 'harmless' },
    annotations: {
      effect: 'harmless',
      source: '`openai` 7.59, resources/responses, ResponseOutputText: holders send parts of answers back',
    },
    logprobs: {
      effect: 'harmless',
      source: '`openai` 7.59, resources/responses, ResponseOutputText: holders send parts of answers back',
    },
  },
} as const satisfies Group;

export const REFUSAL_PART = {
  at: 'messages[].content[]',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionContentPartRefusal',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    refusal: { effect: 'harmless' },
    prompt_cache_breakpoint: { effect: 'harmless' },
    annotations: {
      effect: 'harmless',
      source: '`openai` 7.59, resources/responses, ResponseOutputText: holders send parts of answers back',
    },
    logprobs: {
      effect: 'harmless',
      source: '`openai` 7.59, resources/responses, ResponseOutputText: holders send parts of answers back',
    },
  },
} as const satisfies Group;

export const IMAGE_PART = {
  at: 'messages[].content[]',
  of: 'fields',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionContentPartImage',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    image_url: { effect: 'harmless' },
    prompt_cache_breakpoint: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Files are text and pictures: at most the whole window. */
export const OPENAI_PARTS = {
  at: 'messages[].content[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionContentPart',
  date: '2026-11-27',
  entries: {
    file: { effect: 'whole window' },
  },
} as const satisfies Group;

/** Tools that the caller runs cost their text only. Tools that a provider runs have a fee. */
export const TOOLS = {
  at: 'tools[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/chat/completions/completions.d.ts, ChatCompletionTool',
  date: '2026-11-27',
  entries: {
    function: { effect: 'harmless' },
    custom: { effect: 'harmless' },
  },
} as const satisfies Group;
