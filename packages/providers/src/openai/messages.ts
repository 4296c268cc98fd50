import {
  type AllowList,
  allow,
  type Effect,
  harmless,
  judge,
  judgeEach,
  type Rule,
  unknownEffect,
  worse,
} from '../bounds/allow-list.ts';
import { isJsonObject } from '../json.ts';
import type { InputRules } from './rules.ts';

/** Kinds of content by their `type`, with a rule for each. */
export type Parts = ReadonlyMap<string, Rule>;

/** A part that has a type and these fields only. */
export const partOf = (fields: AllowList): ((part: unknown) => Effect) => {
  const known = allow(fields, { type: 'harmless' });
  return (part) => (isJsonObject(part) ? judge(known, part) : { unbounded: 'is not an object' });
};

/** Text in any of these fields. A cache breakpoint is harmless: all input is held at its dearest rate. */
export const textPart = (...fields: readonly string[]): Rule =>
  partOf(harmless(...fields, 'prompt_cache_breakpoint', 'annotations', 'logprobs'));

/** An image counts as its published maximum, or as the whole window if none is published. */
export const imagePart = (fields: readonly string[], known: boolean): Rule => {
  const judged = partOf(harmless(...fields, 'prompt_cache_breakpoint'));
  return (part) => worse(judged(part), known && detailOf(part) !== 'original' ? 'harmless' : 'whole window');
};

export const AUDIO_REFUSED: Effect = {
  unbounded: 'audio has rates of its own, which the price list lacks for some models',
};

/** The content of a message: text, or parts of known kinds. */
export function judgeContent(parts: Parts, content: unknown): Effect {
  if (typeof content === 'string' || content === null || content === undefined) return 'harmless';
  return judgeEach(content, (part) => {
    const rule = typeof part.type === 'string' ? parts.get(part.type) : undefined;
    if (rule === undefined) return unknownEffect('has a kind whose cost is not known', 'type');
    return typeof rule === 'function' ? rule(part, part) : rule;
  });
}

/** Chat messages: text, images and calls of the caller's own tools, and other parts by their own rules. */
export function judgeMessages(extraParts: Parts, { imageTokens }: InputRules): Rule {
  const listed = (knowsImages: boolean) => {
    const parts: Parts = new Map([
      ['text', textPart('text')],
      ['refusal', textPart('refusal')],
      ['image_url', imagePart(['image_url'], knowsImages)],
      ['input_audio', AUDIO_REFUSED],
      ...extraParts,
    ]);
    return allow(MESSAGE, { content: (content) => judgeContent(parts, content) });
  };
  // Made once, because making them took a fourth of the time of planning a call.
  const fieldsOf = { known: listed(true), unknown: listed(false) };
  return (messages, { model }) => {
    const fields = imageTokens?.(model) === undefined ? fieldsOf.unknown : fieldsOf.known;
    return judgeEach(messages, (message) => judge(fields, message));
  };
}

/** Calls of the caller's tools that the model made in earlier turns. */
const toolCalls: Rule = (calls) => judgeEach(calls, (call) => judge(TOOL_CALL, call));

const TOOL_CALL = allow(harmless('id', 'type', 'index', 'function', 'custom'), {
  // A thought signature (Gemini) refers to thoughts that are not in the body.
  extra_content: 'whole window',
});

const MESSAGE = allow(
  harmless('role', 'name', 'tool_call_id', 'function_call', 'refusal', 'prefix', 'annotations', 'parsed'),
  harmless('reasoning', 'reasoning_content'),
  {
    tool_calls: toolCalls,
    audio: AUDIO_REFUSED,
    // Routers send these. They may be encrypted, compressed, or images that a model wrote.
    reasoning_details: 'whole window',
    images: 'whole window',
    extra_content: 'whole window',
  },
);

/** Tools that the caller runs cost their text only. Tools that the provider runs have a fee. */
export const ownTools =
  (...types: readonly string[]): Rule =>
  (tools) =>
    judgeEach(tools, ({ type }) =>
      typeof type === 'string' && types.includes(type)
        ? 'harmless'
        : unknownEffect('is a tool whose cost is not known', 'type'),
    );

/** An object of known fields only. */
export const objectOf = (...fields: readonly string[]): Rule => {
  const known = harmless(...fields);
  return (value) => (isJsonObject(value) ? judge(known, value) : { unbounded: 'is not an object' });
};

/** `detail` is inside the image in chat completions, and next to it in Responses. */
function detailOf(part: unknown): unknown {
  if (!isJsonObject(part)) return undefined;
  return isJsonObject(part.image_url) ? part.image_url.detail : part.detail;
}
