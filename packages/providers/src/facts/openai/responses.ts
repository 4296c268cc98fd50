import type { Group, Matching, Names } from '../fact.ts';

/** Fields of a response that may pass. */
export const RESPONSES_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseCreateParams',
  date: '2026-11-27',
  entries: {
    model: { effect: 'harmless' },
    instructions: { effect: 'harmless' },
    temperature: { effect: 'harmless' },
    top_p: { effect: 'harmless' },
    top_logprobs: { effect: 'harmless' },
    user: { effect: 'harmless' },
    text: { effect: 'harmless' },
    include: { effect: 'harmless' },
    tool_choice: { effect: 'harmless' },
    parallel_tool_calls: { effect: 'harmless' },
    truncation: { effect: 'harmless' },
    max_output_tokens: { effect: 'judged', by: 'outputBound' },
    max_tokens: { effect: 'judged', by: 'outputBound' },
    max_completion_tokens: { effect: 'judged', by: 'outputBound' },
    input: { effect: 'judged', by: 'input' },
    tools: { effect: 'judged', by: 'tools' },
    max_tool_calls: { effect: 'judged', by: 'callsUpTo' },
    reasoning: { effect: 'judged', by: 'reasoning' },
    stream: { effect: 'harmless', values: [true, false], reason: 'is neither true nor false' },
    stream_options: { effect: 'judged', by: 'streamOptions' },
    background: { effect: 'harmless', values: [false], reason: 'the answer would not carry the usage' },
    client_metadata: {
      effect: 'judged',
      by: 'texts',
      source:
        'https://github.com/openai/codex, codex-rs/codex-api/src/common.rs: texts of Codex about itself',
    },
    previous_response_id: { effect: 'whole window' },
    conversation: { effect: 'whole window' },
    // A stored prompt may bring tools and another model.
    prompt: { effect: 'refused', reason: 'the contents of a stored prompt are not known' },
    context_management: { effect: 'refused', reason: 'compaction adds work that has no bound' },
    service_tier: { effect: 'judged', by: 'standardTier' },
  },
} as const satisfies Group;

export const RESPONSE_STREAM_OPTIONS = {
  at: 'stream_options',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseCreateParams',
  date: '2026-11-27',
  entries: {
    include_obfuscation: { effect: 'harmless' },
  },
} as const satisfies Group;

/** `pro` writes an answer in several runs, and their number is not documented. */
export const RESPONSE_REASONING = {
  at: 'reasoning',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseCreateParams',
  date: '2026-11-27',
  entries: {
    effort: { effect: 'harmless' },
    summary: { effect: 'harmless' },
    generate_summary: { effect: 'harmless' },
    context: { effect: 'harmless' },
    enabled: { effect: 'harmless', source: 'https://openrouter.ai/docs/use-cases/reasoning-tokens' },
    exclude: { effect: 'harmless', source: 'https://openrouter.ai/docs/use-cases/reasoning-tokens' },
    mode: { effect: 'harmless', values: ['standard'], reason: 'costs more than the standard mode' },
  },
} as const satisfies Group;

/** Kinds of tools. Those of the whole window are run by the caller and described to the model by the provider. */
export const RESPONSE_TOOLS = {
  at: 'tools[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/responses, Tool',
  date: '2026-11-27',
  entries: {
    function: { effect: 'harmless' },
    custom: { effect: 'harmless' },
    namespace: { effect: 'judged', by: 'namespace' },
    tool_search: { effect: 'judged', by: 'toolSearch' },
    local_shell: { effect: 'whole window' },
    apply_patch: { effect: 'whole window' },
    computer: { effect: 'whole window' },
    computer_use_preview: { effect: 'whole window' },
  },
} as const satisfies Group;

/** Tools that a provider runs, in chat completions, too. Where their calls have no bound, their fees and rounds have none. */
export const UNBOUNDED_TOOLS: Matching = {
  source:
    '`openai` 7.59, resources/responses, Tool; https://docs.mistral.ai/agents/connectors; https://console.groq.com/docs/built-in-tools',
  date: '2026-11-28',
  matching:
    /^(?:browser_search|code_interpreter|document_library|file_search|image_generation|mcp$|programmatic_tool_calling|shell$|web_search)/,
};

export const NAMESPACE_TOOLS = {
  at: 'tools[].tools[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/responses, NamespaceTool',
  date: '2026-11-27',
  entries: {
    function: { effect: 'harmless' },
    custom: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Kinds of input. Items of the whole window refer to more than their text: stored, encrypted or made by the tools of a provider. They start no work. */
export const ITEMS = {
  at: 'input[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/responses, ResponseInputItem',
  date: '2026-11-27',
  entries: {
    message: { effect: 'judged', by: 'content' },
    function_call: { effect: 'judged', by: 'content' },
    function_call_output: { effect: 'judged', by: 'output' },
    custom_tool_call: { effect: 'judged', by: 'content' },
    custom_tool_call_output: { effect: 'judged', by: 'output' },
    // Items that define tools in the midst of the input.
    additional_tools: {
      effect: 'judged',
      by: 'toolItem',
      source: 'Codex 0.171, which sends all of its tools so',
    },
    tool_search_output: { effect: 'judged', by: 'toolItem' },
    tool_search_call: { effect: 'judged', by: 'toolSearchCall' },
    reasoning: { effect: 'whole window' },
    item_reference: { effect: 'whole window' },
    compaction: { effect: 'whole window' },
    web_search_call: { effect: 'whole window' },
    file_search_call: { effect: 'whole window' },
    code_interpreter_call: { effect: 'whole window' },
    image_generation_call: { effect: 'whole window' },
    computer_call: { effect: 'whole window' },
    computer_call_output: { effect: 'whole window' },
    local_shell_call: { effect: 'whole window' },
    local_shell_call_output: { effect: 'whole window' },
    shell_call: { effect: 'whole window' },
    shell_call_output: { effect: 'whole window' },
    apply_patch_call: { effect: 'whole window' },
    apply_patch_call_output: { effect: 'whole window' },
    mcp_list_tools: { effect: 'whole window' },
    mcp_call: { effect: 'whole window' },
  },
} as const satisfies Group;

/** Fields of an item whose text is in the body, next to its content or output. */
export const ITEM = {
  at: 'input[]',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseInputItem',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    id: { effect: 'harmless' },
    role: { effect: 'harmless' },
    status: { effect: 'harmless' },
    phase: { effect: 'harmless' },
    call_id: { effect: 'harmless' },
    name: { effect: 'harmless' },
    namespace: { effect: 'harmless' },
    arguments: { effect: 'harmless' },
    input: { effect: 'harmless' },
    caller: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of an item that brings tools. */
export const TOOL_ITEM = {
  at: 'input[]',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseInputItem',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    id: { effect: 'harmless' },
    role: { effect: 'harmless' },
    call_id: { effect: 'harmless' },
    status: { effect: 'harmless' },
    execution: { effect: 'harmless' },
    tools: { effect: 'judged', by: 'tools' },
  },
} as const satisfies Group;

/** Fields of a search in the tools of the caller. */
export const SEARCH_CALL = {
  at: 'input[]',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseInputItem',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    id: { effect: 'harmless' },
    call_id: { effect: 'harmless' },
    execution: { effect: 'harmless' },
    status: { effect: 'harmless' },
    arguments: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Kinds of content. Text and images of the pages of a file are together at most the whole window. */
export const RESPONSE_PARTS = {
  at: 'input[].content[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/responses, ResponseInputContent',
  date: '2026-11-27',
  entries: {
    input_text: { effect: 'judged', by: 'text' },
    output_text: { effect: 'judged', by: 'text' },
    refusal: { effect: 'judged', by: 'refusal' },
    input_image: { effect: 'judged', by: 'image' },
    input_file: { effect: 'judged', by: 'file' },
    input_audio: {
      effect: 'refused',
      reason: 'audio has rates of its own, which the price list lacks for some models',
    },
  },
} as const satisfies Group;

export const INPUT_IMAGE = {
  at: 'input[].content[]',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseInputImage',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    image_url: { effect: 'harmless' },
    detail: { effect: 'harmless' },
    file_id: { effect: 'harmless' },
    prompt_cache_breakpoint: { effect: 'harmless' },
  },
} as const satisfies Group;

export const FILE_PART = {
  at: 'input[].content[]',
  of: 'fields',
  source: '`openai` 7.59, resources/responses, ResponseInputFile',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    file_data: { effect: 'harmless' },
    file_id: { effect: 'harmless' },
    file_url: { effect: 'harmless' },
    filename: { effect: 'harmless' },
    detail: { effect: 'harmless' },
    prompt_cache_breakpoint: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Calls in an answer that cost their tokens alone, or are counted by their fee. */
export const ANSWERED_CALLS: Names = {
  source: '`openai` 7.57, ResponseOutputItem',
  date: '2026-11-27',
  names: [
    'function_call',
    'custom_tool_call',
    'tool_search_call',
    'mcp_call',
    'computer_call',
    'local_shell_call',
    'apply_patch_call',
    'web_search_call',
    'file_search_call',
  ],
};

/** The tools of searches that have a fee of their own, `preview_searches`. */
export const PREVIEW_SEARCHES: Matching = {
  source: 'https://developers.openai.com/api/docs/pricing#tools',
  date: '2026-11-27',
  matching: /^web_search_preview/,
};

/** Actions of a search that have no fee. */
export const FREE_ACTIONS: Names = {
  source: 'https://platform.openai.com/docs/pricing#built-in-tools',
  date: '2026-11-26',
  names: ['open_page', 'find_in_page'],
};

/** Fields of `response.create` on a socket that no body has. */
export const SOCKET_FIELDS = {
  source: '`openai` 7.59, resources/responses, ResponsesClientEvent',
  date: '2026-11-29',
  names: ['type', 'stream_id', 'generate'],
} as const satisfies Names;
