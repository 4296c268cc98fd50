import * as FACTS from '../facts/content.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { hasItems, hasText } from './content.ts';
import type { Content } from './record.ts';

const { names: WRITTEN } = FACTS.WRITTEN;

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

/** Parts of a message whose fee the usage does not report (`COSTLY_FIELDS`). */
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
export const COSTLY_FIELDS = FACTS.COSTLY_FIELDS.names;

const choicesOf = ({ choices }: JsonObject): readonly unknown[] =>
  Array.isArray(choices) ? choices : NO_CHOICES;

const NO_CHOICES: readonly unknown[] = [];
