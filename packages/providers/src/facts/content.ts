import type { Names } from './fact.ts';

/** Which parts of answers a model writes: an answer that has any is charged, even if its stream breaks off. */

/** Fields that name or prove something, and are no content. */
export const NO_CONTENT: Names = {
  source:
    '`openai` 7.59, ChatCompletion and ResponseOutputItem; `@anthropic-ai/sdk` 1.14, ContentBlock; `@google/genai` 3.3, Part',
  date: '2026-11-26',
  names: [
    ...['type', 'id', 'index', 'role', 'status', 'object'],
    ...['signature', 'thoughtSignature', 'mimeType', 'language', 'refusal'],
  ],
};

/** Fields of a message of chat completions, or of a part of it. `thinking` and `images` are those of resellers. */
export const WRITTEN: Names = {
  source:
    '`openai` 7.59, ChatCompletionMessage; https://openrouter.ai/docs/use-cases/reasoning-tokens; https://openrouter.ai/docs/features/multimodal/image-generation',
  date: '2026-11-26',
  names: [
    ...['content', 'reasoning', 'reasoning_content', 'reasoning_details', 'thinking'],
    ...['tool_calls', 'function_call', 'audio', 'images'],
  ],
};

/** Fields of a message with parts whose fee the usage does not report: pages that a plugin or a search read, and tools that Groq ran. */
export const COSTLY_FIELDS: Names = {
  source:
    'https://openrouter.ai/docs/guides/features/plugins/web-search, https://console.groq.com/docs/compound',
  date: '2026-11-26',
  names: ['annotations', 'executed_tools'],
};

/** Counts and parts of answers that are known to cost money and have no price here. No knowledge file makes them free. */
export const COSTLY_USAGE: Names = {
  source:
    '`@anthropic-ai/sdk` 1.14, BetaUsage (iterations, server_tool_use, container); `openai` 7.59, ResponseOutputItem; https://ai.google.dev/gemini-api/docs/pricing; https://console.groq.com/docs/compound',
  date: '2026-11-28',
  names: [
    ...['container', 'iterations.*', 'server_tool_use.*'],
    ...['program', 'code_interpreter_call', 'image_generation_call', 'shell_call'],
    ...['url_citation', 'executed_tools', 'imageSearchQueries'],
  ],
};
