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
  for (const choice of choicesOf(answer)) {
    if (!isJsonObject(choice)) continue;
    if (hasText(choice.text) || isWritten(choice.message) || isWritten(choice.delta)) return 'written';
  }
  return undefined;
}

function isWritten(message: unknown): boolean {
  if (!isJsonObject(message)) return false;
  for (const field of WRITTEN) if (hasText(message[field])) return true;
  return false;
}

/**
 * Parts of a message whose fee the usage does not report: pages that a plugin or a search read (OpenRouter, OpenAI), and tools that
 * Groq ran. https://openrouter.ai/docs/guides/features/plugins/web-search, https://console.groq.com/docs/compound
 */
export function costlyParts(answer: JsonObject): readonly string[] {
  const found: string[] = [];
  for (const choice of choicesOf(answer)) {
    if (!isJsonObject(choice)) continue;
    addCostly(choice.message, found);
    addCostly(choice.delta, found);
  }
  return found;
}

function addCostly(message: unknown, found: string[]): void {
  if (!isJsonObject(message)) return;
  const { annotations, executed_tools: tools } = message;
  const cites = Array.isArray(annotations) && annotations.some(isCitation);
  if (cites && !found.includes('url_citation')) found.push('url_citation');
  if (tools && hasItems(tools) && !found.includes('executed_tools')) found.push('executed_tools');
}

const isCitation = (each: unknown): boolean => isJsonObject(each) && each.type === 'url_citation';

/** The fields of a chunk that may hold such a part. */
export const COSTLY_FIELDS = ['annotations', 'executed_tools'];

const choicesOf = ({ choices }: JsonObject): readonly unknown[] =>
  Array.isArray(choices) ? choices : NO_CHOICES;

const NO_CHOICES: readonly unknown[] = [];
