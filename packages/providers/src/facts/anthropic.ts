import type { Group, Matching, Most, Names, Writes } from './fact.ts';

/** Fields of a message request. The input rate of a hold covers cache writes, and those for an hour if a part of the body asks for them (`isShortCache`). */
export const MESSAGES_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages',
  date: '2026-11-27',
  entries: {
    cache_control: { effect: 'harmless' },
    diagnostics: { effect: 'harmless' },
    messages: { effect: 'judged', by: 'messages' },
    metadata: { effect: 'harmless' },
    model: { effect: 'harmless' },
    max_tokens: { effect: 'judged', by: 'output' },
    service_tier: { effect: 'judged', by: 'standardPrice' },
    speed: { effect: 'judged', by: 'standardPrice' },
    stop_sequences: { effect: 'harmless' },
    stream: { effect: 'harmless' },
    system: { effect: 'judged', by: 'content' },
    temperature: { effect: 'harmless' },
    tool_choice: { effect: 'harmless' },
    tools: { effect: 'judged', by: 'tools' },
    top_k: { effect: 'harmless' },
    top_p: { effect: 'harmless' },
    container: { effect: 'refused', reason: 'code is billed by the hour' },
    context_management: { effect: 'judged', by: 'editing' },
    fallbacks: { effect: 'refused', reason: 'the models that it names have other prices' },
    inference_geo: {
      effect: 'harmless',
      values: ['global'],
      reason: 'inference in one region costs 1.1 times the listed price',
    },
    mcp_servers: { effect: 'refused', reason: 'the answers of the servers have no stated maximum' },
    output_config: { effect: 'judged', by: 'outputConfig' },
    output_format: { effect: 'judged', by: 'format' },
    thinking: { effect: 'judged', by: 'thinking' },
    thread: { effect: 'judged', by: 'thread' },
  },
} as const satisfies Group;

export const OUTPUT_CONFIG = {
  at: 'output_config',
  of: 'fields',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaOutputConfig',
  date: '2026-11-27',
  entries: {
    effort: { effect: 'harmless' },
    format: { effect: 'judged', by: 'format' },
  },
} as const satisfies Group;

export const THINKING = {
  at: 'thinking',
  of: 'fields',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaThinkingConfigParam',
  date: '2026-11-27',
  entries: {
    display: { effect: 'harmless' },
    type: {
      effect: 'harmless',
      values: ['enabled', 'disabled', 'adaptive', 'between_tools'],
      reason: 'is no known kind of thinking',
    },
    budget_tokens: { effect: 'judged', by: 'budget' },
  },
} as const satisfies Group;

/** A thread keeps the conversation at the provider. Its turns are in the account of the key, which other URLs share, so only its first turn passes, which has all of its input. The SDKs then send the whole conversation (`anthropicErrors`). */
export const THREAD = {
  at: 'thread',
  of: 'fields',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless', values: ['create'], reason: 'reads a conversation that is not in the body' },
  },
} as const satisfies Group;

/** Clearing only shortens the input. Compaction is a call of its own, whose usage is reported apart. */
export const EDITS = {
  at: 'context_management.edits[]',
  of: 'kinds',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaContextManagementConfig',
  date: '2026-11-27',
  entries: {
    clear_tool_uses_20250919: { effect: 'harmless' },
    clear_thinking_20251015: { effect: 'harmless' },
  },
} as const satisfies Group;

/** `clear_at` leaves a system message out of later turns. */
export const MESSAGE = {
  at: 'messages[]',
  of: 'fields',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaMessageParam',
  date: '2026-11-27',
  entries: {
    role: { effect: 'harmless' },
    content: { effect: 'judged', by: 'content' },
    clear_at: { effect: 'harmless' },
    output_config: { effect: 'judged', by: 'turnConfig' },
  },
} as const satisfies Group;

/** It sets the effort of one turn. */
export const TURN_CONFIG = {
  at: 'messages[].output_config',
  of: 'fields',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaMessageParam',
  date: '2026-11-27',
  entries: {
    effort: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Kinds of blocks. The text of a harmless block bounds its cost. Those of the whole window are encrypted or stored with the provider. */
export const BLOCKS = {
  at: 'messages[].content[]',
  of: 'kinds',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaContentBlockParam',
  date: '2026-11-27',
  entries: {
    text: { effect: 'harmless' },
    thinking: { effect: 'harmless' },
    redacted_thinking: { effect: 'harmless' },
    search_result: { effect: 'harmless' },
    tool_reference: { effect: 'judged', by: 'reference' },
    tool_addition: { effect: 'judged', by: 'toolChange' },
    tool_removal: { effect: 'judged', by: 'toolChange' },
    tool_search_tool_result: { effect: 'harmless' },
    tool_use: { effect: 'judged', by: 'rewritten' },
    server_tool_use: { effect: 'judged', by: 'rewritten' },
    tool_result: { effect: 'judged', by: 'result' },
    image: { effect: 'judged', by: 'image' },
    document: { effect: 'judged', by: 'document' },
    web_search_tool_result: { effect: 'whole window' },
    web_fetch_tool_result: { effect: 'whole window' },
    code_execution_tool_result: { effect: 'whole window' },
    bash_code_execution_tool_result: { effect: 'whole window' },
    text_editor_code_execution_tool_result: { effect: 'whole window' },
  },
} as const satisfies Group;

/** Kinds of sources of a document. The gateway cannot count the pages of a PDF, and their text has no stated maximum. */
export const SOURCES = {
  at: 'messages[].content[].source',
  of: 'kinds',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaRequestDocumentBlock',
  date: '2026-11-27',
  entries: {
    text: { effect: 'judged', by: 'text' },
    content: { effect: 'judged', by: 'content' },
    base64: { effect: 'whole window' },
    url: { effect: 'whole window' },
    file: { effect: 'whole window' },
  },
} as const satisfies Group;

/** Kinds of tools, which the caller runs. The length of the schemas of those of the whole window is not published. */
export const TOOLS = {
  at: 'tools[]',
  of: 'kinds',
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages, BetaToolUnion',
  date: '2026-11-27',
  entries: {
    custom: { effect: 'judged', by: 'ownTool' },
  },
} as const satisfies Group;

/** Kinds of tools whose name ends with the date of a version, by the name without it. The provider knows the schemas of bash, which adds 245 tokens (325 since Opus 4.7), of the text editor (700) and of computer use (up to 499 and 735). */
export const DATED_TOOLS = {
  at: 'tools[]',
  of: 'kinds',
  source:
    'https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing, and the page of each tool',
  date: '2026-11-27',
  entries: {
    bash: { effect: 'judged', by: 'ownSchema' },
    text_editor: { effect: 'judged', by: 'ownSchema' },
    computer: { effect: 'judged', by: 'ownSchema' },
    memory: { effect: 'whole window' },
    computer_toolset: { effect: 'whole window' },
    browser_toolset: { effect: 'whole window' },
    web_search: { effect: 'judged', by: 'serverTool', unit: 'web_searches' },
    web_fetch: { effect: 'judged', by: 'serverTool' },
  },
} as const satisfies Group;

/** Tools, without their dates, that the provider runs without a stated maximum: code, servers, other models. */
export const UNBOUNDED_TOOLS: Names = {
  source:
    '`@anthropic-ai/sdk` 1.11, BetaToolUnion; https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing',
  date: '2026-11-28',
  names: [...['code_execution', 'mcp_toolset', 'advisor', 'tool_search_tool_bm25', 'tool_search_tool_regex']],
};

/** The first versions of these tools. Later ones may run code between uses, unless only direct calls are allowed. */
export const ALWAYS_DIRECT = {
  source: '`@anthropic-ai/sdk` 1.14, BetaWebSearchTool20250305 and BetaWebFetchTool20250910',
  date: '2026-11-27',
  names: ['web_search_20250305', 'web_fetch_20250910'],
} as const satisfies Names;

/** Values of `anthropic-beta` that change no price by themselves: each field that they allow is judged. */
export const HARMLESS_BETAS = {
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/beta and the values that its client sends',
  date: '2026-11-27',
  names: [
    'cache-diagnosis-2026-04-07',
    'computer-use-2024-10-22',
    'computer-use-2025-01-24',
    'computer-use-2025-11-24',
    'context-management-2025-06-27',
    'extended-cache-ttl-2025-04-11',
    'files-api-2025-04-14',
    'inline-tools-2026-09-15',
    'interleaved-thinking-2025-05-14',
    'message-threads-2026-08-12',
    'mid-conversation-output-config-2026-07-01',
    'mid-conversation-system-clear-at-2026-08-21',
    'mid-conversation-tool-changes-2026-07-01',
    'model-context-window-exceeded-2025-08-26',
    'output-128k-2025-02-19',
    'pdfs-2024-09-25',
    'prompt-caching-2024-07-31',
    'structured-outputs-2025-11-13',
    'thinking-display-updates-2026-08-18',
    'thinking-token-count-2026-05-13',
    'token-counting-2024-11-01',
    'token-efficient-tools-2025-02-19',
  ],
} as const satisfies Names;

/** Values that the SDK has no name for. */
export const HARMLESS_BETAS_OF_CLAUDE_CODE = {
  source: 'Claude Code up to 2.1.332, the values that it sends',
  date: '2026-11-27',
  names: [
    'advanced-tool-use-2025-11-20',
    'claude-code-20250219',
    'effort-2025-11-24',
    'fine-grained-tool-streaming-2025-05-14',
    'per-turn-control-2026-07-01',
  ],
} as const satisfies Names;

/**
 * Harmless `anthropic-beta` values that clients other than Claude Code send. The tools and fields that they allow are judged; two concern how a
 * key or a thought is shown.
 */
export const HARMLESS_BETAS_OF_CLIENTS = {
  source:
    '`@ai-sdk/anthropic` 4.0; `litellm` 1.110.2, anthropic_beta_headers_config; `pydantic-ai-slim` 2.68; https://github.com/anthropics/claude-code/issues/21767',
  date: '2026-11-28',
  names: [
    'message-batches-2024-09-24',
    'mid-conversation-system-2026-04-07',
    'oauth-2025-04-20',
    'prompt-caching-scope-2026-01-05',
    'redact-thinking-2026-02-12',
    'structured-outputs-2025-12-15',
    'tool-examples-2025-10-29',
    'tool-search-tool-2025-10-19',
    'tool-search-tool-2025-11-19',
    'web-fetch-2025-09-10',
    'web-search-2025-03-05',
  ],
} as const satisfies Names;

/** A patch of 28 × 28 pixels is one token, larger images are scaled down (to 1,568 before Opus 4.7). */
export const IMAGE_TOKENS: Most = {
  source: 'https://platform.claude.com/docs/en/build-with-claude/vision#evaluate-image-size',
  date: '2026-11-27',
  most: 4_784,
};

/** The system prompt that enables tools has 159 to 804 tokens, by model and tool choice. */
export const TOOL_PROMPT: Most = {
  source: 'https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing',
  date: '2026-11-27',
  most: 1_024,
};

/** The schema of a tool that the provider knows has up to 1,234 tokens. */
export const OWN_SCHEMA_TOKENS: Most = {
  source:
    'https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing, and the page of each tool',
  date: '2026-11-27',
  most: 2_048,
};

/** The provider runs the model again after each use, and after a use that it refused because `max_uses` is spent, until the limit of loops pauses the turn. */
export const LOOPS: Most = {
  source:
    'https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools#the-server-side-loop-and-pause_turn',
  date: '2026-11-27',
  most: 10,
};

/** Structured output adds a system prompt whose length is not documented: far more than any that is known. */
export const FORMAT_PROMPT: Most = {
  source: 'https://platform.claude.com/docs/en/build-with-claude/structured-outputs',
  date: '2026-11-21',
  most: 2_048,
};

/** A cache write of Claude, for five minutes and for an hour. */
export const CACHE_WRITES: Writes = {
  source: 'https://platform.claude.com/docs/en/about-claude/pricing#prompt-caching',
  date: '2026-11-26',
  matching: /claude/,
  times: { short: 1.25, hour: 2 },
};

/** Claude, as Anthropic and most who sell it name it. Its images have a maximum, and it alone knows the tier `standard_only`. */
export const CLAUDE: Matching = {
  source: 'https://platform.claude.com/docs/en/about-claude/models/overview',
  date: '2026-11-26',
  matching: /^claude-/,
};

/** Markers around turns, and a default line or two. The names and braces of the JSON outweigh them. */
export const MARKERS: Most = {
  source: 'https://platform.claude.com/docs/en/build-with-claude/token-counting',
  date: '2026-11-21',
  most: 64,
};

/**
 * Values of `anthropic-beta` that change a price, or let a call do what nothing in it bounds: longer windows and outputs, other speeds and
 * models, code, servers, further runs. No file makes them harmless.
 */
export const COSTLY_BETAS: Names = {
  source: '`@anthropic-ai/sdk` 1.11, AnthropicBeta; https://platform.claude.com/docs/en/about-claude/pricing',
  date: '2026-11-28',
  names: [
    ...['context-1m-2025-08-07', 'output-300k-2026-03-24', 'fast-mode-2026-02-01'],
    ...['code-execution-2025-05-22', 'skills-2025-10-02', 'managed-agents-2026-04-01', 'dreaming-2026-04-21'],
    ...['mcp-client-2025-04-04', 'mcp-client-2025-11-20', 'mcp-client-2026-09-15', 'mcp-tunnels-2026-06-22'],
    ...['advisor-tool-2026-03-01', 'server-side-fallback-2026-06-01', 'server-side-fallback-2026-07-01'],
    ...['compact-2026-01-12', 'compact-2026-09-04'],
  ],
};
