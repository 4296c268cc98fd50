import {
  type AllowList,
  allow,
  type Effect,
  judge,
  judgeEach,
  type Rule,
  unknownEffect,
  worse,
} from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import * as CHAT from '../facts/openai/chat.ts';
import { UNBOUNDED_TOOLS } from '../facts/openai/responses.ts';
import { isJsonObject, isText, textOf } from '../json.ts';
import type { InputRules } from './rules.ts';

/** Kinds of content by their `type`, with a rule for each. */
export type Parts = ReadonlyMap<string, Rule>;

/** A part that has these fields only. */
export const partOf =
  (known: AllowList): ((part: unknown) => Effect) =>
  (part) =>
    isJsonObject(part) ? judge(known, part) : { unbounded: 'is not an object' };

/** Text, in messages and in items of Responses. */
export const TEXT_RULES = {
  text: partOf(compileGroup(CHAT.TEXT_PART)),
  refusal: partOf(compileGroup(CHAT.REFUSAL_PART)),
};

/** An image counts as its published maximum, or as the whole window if none is published. */
export const imagePart = (fields: AllowList, known: boolean): Rule => {
  const judged = partOf(fields);
  return (part) => worse(judged(part), known && detailOf(part) !== 'original' ? 'harmless' : 'whole window');
};

const IMAGE_PART = compileGroup(CHAT.IMAGE_PART);

/** The content of a message: text, or parts of known kinds. */
export function judgeContent(parts: Parts, content: unknown): Effect {
  if (isText(content) || content === null || content === undefined) return 'harmless';
  return judgeEach(content, (part) => {
    const rule = typeof part.type === 'string' ? parts.get(part.type) : undefined;
    if (rule === undefined) return unknownEffect('has a kind whose cost is not known', 'type');
    return typeof rule === 'function' ? rule(part, part) : rule;
  });
}

/** Chat messages: text, images and calls of the caller's own tools, and other parts by their own rules. */
export function judgeMessages(extraParts: Parts, { imageTokens }: InputRules): Rule {
  const listed = (knowsImages: boolean) => {
    const parts = allow(
      compileGroup(CHAT.PARTS, { ...TEXT_RULES, image: imagePart(IMAGE_PART, knowsImages) }),
      extraParts,
    );
    return compileGroup(CHAT.MESSAGE, { content: (content) => judgeContent(parts, content), toolCalls });
  };
  // Created once, because creating them took a fourth of the time of planning a call.
  const fieldsOf = { known: listed(true), unknown: listed(false) };
  return (messages, { model }) => {
    const fields = imageTokens?.(model) === undefined ? fieldsOf.unknown : fieldsOf.known;
    return judgeEach(messages, (message) => judge(fields, message));
  };
}

/** Calls of the caller's tools that the model made in earlier turns. */
const toolCalls: Rule = (calls) => judgeEach(calls, (call) => judge(TOOL_CALL, call));

const TOOL_CALL = compileGroup(CHAT.TOOL_CALL);

/** Tools that the caller runs cost their text only. Tools that the provider runs have a fee. */
export const ownTools =
  (kinds: AllowList) =>
  (tools: unknown): Effect =>
    judgeEach(tools, ({ type }) =>
      typeof type === 'string' && kinds.has(type) ? 'harmless' : otherTool(type),
    );

/** A tool that is in no list. If the provider runs it, it has no bound, whatever a file says. */
export const otherTool = (type: unknown): Effect =>
  UNBOUNDED_TOOLS.matching.test(textOf(type))
    ? { unbounded: 'is a tool of the provider whose cost has no maximum', at: 'type' }
    : unknownEffect('is a tool whose cost is not known', 'type');

/** `detail` is inside the image in chat completions, and next to it in Responses. */
function detailOf(part: unknown): unknown {
  if (!isJsonObject(part)) return undefined;
  return isJsonObject(part.image_url) ? part.image_url.detail : part.detail;
}
