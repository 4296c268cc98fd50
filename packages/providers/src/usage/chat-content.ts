import { isJsonObject, type JsonObject } from '../json.ts';
import { hasItems, hasText } from './content.ts';
import type { Content } from './record.ts';

/** Fields of a message, or of a part of it, that the model writes. `thinking` and `images` are those of resellers. */
const WRITTEN = [
  ...['content', 'reasoning', 'reasoning_content', 'reasoning_details', 'thinking'],
  ...['tool_calls', 'function_call', 'audio', 'images'],
];

/** The content of an answer's or a chunk's choices. A refusal may be free. */
export function contentIn(answer: JsonObject): Content | undefined {
  const isWritten = choicesOf(answer).some(
    (choice) =>
      hasText(choice.text) ||
      messagesOf(choice).some((message) => WRITTEN.some((field) => hasText(message[field]))),
  );
  return isWritten ? 'written' : undefined;
}

/**
 * Parts of a message whose fee the usage does not report: pages that a plugin or a search read (OpenRouter, OpenAI), and tools that
 * Groq ran. https://openrouter.ai/docs/guides/features/plugins/web-search, https://console.groq.com/docs/compound
 */
export function costlyParts(answer: JsonObject): readonly string[] {
  const messages = choicesOf(answer).flatMap(messagesOf);
  const cites = messages.some(
    ({ annotations }) =>
      Array.isArray(annotations) &&
      annotations.some((each) => isJsonObject(each) && each.type === 'url_citation'),
  );
  const runs = messages.some(({ executed_tools: tools }) => hasItems(tools));
  return [...(cites ? ['url_citation'] : []), ...(runs ? ['executed_tools'] : [])];
}

/** The fields of a chunk that may hold such a part. */
export const COSTLY_FIELDS = ['annotations', 'executed_tools'];

const choicesOf = ({ choices }: JsonObject): readonly JsonObject[] =>
  Array.isArray(choices) ? choices.filter(isJsonObject) : [];

const messagesOf = ({ message, delta }: JsonObject): readonly JsonObject[] =>
  [message, delta].filter(isJsonObject);
