import type { Group, Most } from '../fact.ts';

/** Fields of a `response` that may pass. Its conversation is at the API, so its input is the whole window. */
export const REALTIME_RESPONSE = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeResponseCreateParams',
  date: '2026-11-29',
  entries: {
    model: { effect: 'harmless' },
    instructions: { effect: 'harmless' },
    input: { effect: 'judged', by: 'items' },
    audio: { effect: 'harmless' },
    conversation: {
      effect: 'harmless',
      values: ['auto', 'none'],
      reason: 'is neither auto nor none',
    },
    max_output_tokens: { effect: 'judged', by: 'outputBound' },
    metadata: { effect: 'harmless' },
    output_modalities: { effect: 'harmless' },
    parallel_tool_calls: { effect: 'harmless' },
    reasoning: { effect: 'harmless' },
    tool_choice: { effect: 'harmless' },
    tools: { effect: 'judged', by: 'tools' },
    prompt: { effect: 'refused', reason: 'the contents of a stored prompt are not known' },
  },
} as const satisfies Group;

/** Fields of sessions that no response has. A config lays them over both. */
export const REALTIME_SESSION_ONLY = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeSessionCreateRequest',
  date: '2026-11-29',
  entries: {
    type: { effect: 'harmless' },
    include: { effect: 'harmless' },
    tracing: { effect: 'harmless' },
    truncation: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of a session that may pass. */
export const REALTIME_SESSION = {
  at: 'session',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeSessionCreateRequest',
  date: '2026-11-29',
  entries: {
    type: { effect: 'harmless', values: ['realtime'], reason: 'is another kind of session' },
    model: { effect: 'harmless' },
    audio: { effect: 'judged', by: 'audio' },
    include: { effect: 'harmless' },
    instructions: { effect: 'harmless' },
    max_output_tokens: { effect: 'harmless' },
    output_modalities: { effect: 'harmless' },
    parallel_tool_calls: { effect: 'harmless' },
    reasoning: { effect: 'harmless' },
    tool_choice: { effect: 'harmless' },
    tools: { effect: 'judged', by: 'tools' },
    tracing: { effect: 'harmless' },
    truncation: { effect: 'harmless' },
    // The field of the beta.
    turn_detection: { effect: 'refused', reason: 'is session.audio.input.turn_detection now' },
    prompt: { effect: 'refused', reason: 'the contents of a stored prompt are not known' },
  },
} as const satisfies Group;

export const REALTIME_AUDIO = {
  at: 'session.audio',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeAudioConfig',
  date: '2026-11-29',
  entries: {
    input: { effect: 'judged', by: 'input' },
    output: { effect: 'harmless' },
  },
} as const satisfies Group;

/** A transcription is billed apart from the responses. Whoever sets a session removes it. */
export const REALTIME_AUDIO_INPUT = {
  at: 'session.audio.input',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeAudioConfigInput',
  date: '2026-11-29',
  entries: {
    format: { effect: 'harmless' },
    noise_reduction: { effect: 'harmless' },
    transcription: { effect: 'harmless' },
    turn_detection: { effect: 'judged', by: 'turnDetection' },
  },
} as const satisfies Group;

/** `create_response` and `idle_timeout_ms` begin responses by themselves. Whoever sets a session overwrites them. */
export const TURN_DETECTION = {
  at: 'session.audio.input.turn_detection',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeAudioInputTurnDetection',
  date: '2026-11-29',
  entries: {
    type: {
      effect: 'harmless',
      values: ['server_vad', 'semantic_vad'],
      reason: 'is another kind of detection',
    },
    create_response: { effect: 'harmless' },
    eagerness: { effect: 'harmless' },
    idle_timeout_ms: { effect: 'harmless' },
    interrupt_response: { effect: 'harmless' },
    prefix_padding_ms: { effect: 'harmless' },
    silence_duration_ms: { effect: 'harmless' },
    threshold: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Kinds of tools. MCP servers are called by the API, as often as it likes. */
export const REALTIME_TOOLS = {
  at: 'tools[]',
  of: 'kinds',
  source: '`openai` 7.59, resources/realtime, RealtimeToolsConfigUnion',
  date: '2026-11-29',
  entries: {
    function: { effect: 'judged', by: 'functionTool' },
    mcp: { effect: 'refused', reason: 'the API calls remote MCP servers by itself' },
  },
} as const satisfies Group;

export const REALTIME_FUNCTION = {
  at: 'tools[]',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, RealtimeFunctionTool',
  date: '2026-11-29',
  entries: {
    type: { effect: 'harmless' },
    name: { effect: 'harmless' },
    description: { effect: 'harmless' },
    parameters: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Fields of items that a holder may add to a conversation. */
export const REALTIME_ITEM = {
  at: 'item',
  of: 'fields',
  source: '`openai` 7.59, resources/realtime, ConversationItem',
  date: '2026-11-29',
  entries: {
    type: { effect: 'judged', by: 'kind' },
    id: { effect: 'harmless' },
    object: { effect: 'harmless' },
    status: { effect: 'harmless' },
    role: { effect: 'harmless' },
    phase: { effect: 'harmless' },
    content: { effect: 'harmless' },
    call_id: { effect: 'harmless' },
    name: { effect: 'harmless' },
    arguments: { effect: 'harmless' },
    output: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Kinds of items that a holder may add to a conversation. They cost nothing until a response reads them. */
export const REALTIME_ITEMS = {
  at: 'item',
  of: 'kinds',
  source: '`openai` 7.59, resources/realtime, ConversationItem',
  date: '2026-11-29',
  entries: {
    message: { effect: 'harmless' },
    function_call: { effect: 'harmless' },
    function_call_output: { effect: 'harmless' },
  },
} as const satisfies Group;

/** The most that `max_output_tokens` takes as a number. */
export const REALTIME_OUTPUT: Most = {
  source: '`openai` 7.59, resources/realtime, RealtimeResponseCreateParams: "an integer between 1 and 4096"',
  date: '2026-11-29',
  most: 4_096,
};
