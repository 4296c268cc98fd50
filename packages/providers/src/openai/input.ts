import type { LeftOut } from '@presign/schema';
import { asUnbounded, type Effect } from '../bounds/allow-list.ts';
import { grownByNormalisingAll, grownByRewritingValue } from '../bounds/count-text.ts';
import { lengthOf } from '../bounds/least-input.ts';
import { isJsonObject, isText, type JsonObject } from '../json.ts';
import type { CallFacts, CountTokens, ModelFacts, SavedTokens, Unbounded } from '../spend.ts';
import type { InputRules } from './rules.ts';

/** The parts of a body whose bytes do not bound their tokens. */
export type InputParts = {
  /** Messages or items, each with its content. */
  readonly items: readonly unknown[];
  /** JSON that a provider writes into the prompt in its own format: tools, schemas, arguments. */
  readonly rewritten: () => readonly unknown[];
  readonly tools: number;
  /** Text that the provider gives to the model unchanged, if any of it can be counted. */
  readonly texts?: () => readonly (string | LeftOut)[];
};

/**
 * Most tokens that a body's own input can make: one for each byte, plus what templates and tokenizers add. Images count as their
 * published maximum instead of their bytes.
 * @param call `most`: counts above this one need not be distinguished
 */
export function inputOf(
  body: JsonObject,
  {
    bytes,
    input,
    saved,
    most,
  }: Omit<CallFacts, 'path' | 'facts'> & { readonly input: InputRules; readonly most: number },
  { items, rewritten, tools, texts }: InputParts,
): number {
  const images = items.flatMap(imagesIn);
  const perImage = input.imageTokens?.(body.model);
  const ofImages =
    perImage === undefined ? 0 : images.reduce((sum, url) => sum + perImage - dataBytes(url), 0);
  const plain = bytes - (saved && texts ? savedIn(texts(), saved) : 0) + ofImages;
  // All other parts only add tokens.
  if (plain >= most) return plain;
  let grown = 0;
  for (const value of rewritten()) if (value !== undefined) grown += grownByRewritingValue(value);
  const normalised = input.normalises ? grownByNormalisingAll(body) : 0;
  return (
    plain +
    grown +
    normalised +
    (input.perCall ?? 0) +
    input.perMessage * items.length +
    input.perTool * tools
  );
}

function savedIn(texts: readonly (string | LeftOut)[], saved: SavedTokens): number {
  let sum = 0;
  let left = COUNTED_MOST;
  for (const text of texts) {
    left -= lengthOf(text);
    if (left < 0) break;
    sum += saved(text);
  }
  return sum;
}

/**
 * How far the token count of a text is below one token for each byte.
 * @param json the text as `JSON.stringify` writes it
 */
export const savedTokens = (text: string, json: string, count: CountTokens): number =>
  Buffer.byteLength(json) - count(text);

/** Characters of one call that are counted. No window holds more English text. */
const COUNTED_MOST = 4 * 1024 * 1024;

/** The text of messages or items that templates lay out unchanged. Results of tools may be written as JSON again. */
export const plainTexts = (items: readonly unknown[]): (string | LeftOut)[] =>
  items.filter(isJsonObject).flatMap(({ role, content }) => {
    if (!PLAIN_ROLES.includes(role)) return [];
    const parts = Array.isArray(content) ? content.filter(isJsonObject) : [{ type: 'text', text: content }];
    return parts.flatMap(({ type, text }) => (PLAIN_PARTS.includes(type) && isText(text) ? [text] : []));
  });

const PLAIN_ROLES: readonly unknown[] = ['system', 'developer', 'user', 'assistant'];
const PLAIN_PARTS: readonly unknown[] = ['text', 'input_text', 'output_text'];

/**
 * The input bound: the tokens measured, at most all that fits in the context window.
 * @param measured gets how many fit
 * @param prompts how many separate prompts fill a window each
 */
export function boundPrompts(
  effect: Effect,
  { contextWindow }: ModelFacts,
  measured: (most: number) => number,
  prompts = 1,
): { readonly tokens: number } | { readonly unbounded: Unbounded } {
  if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
  if (effect === 'harmless') {
    const most = (contextWindow ?? Number.MAX_SAFE_INTEGER) * prompts;
    return { tokens: Math.min(measured(most), most) };
  }
  if (contextWindow !== undefined) return { tokens: contextWindow * prompts };
  return {
    unbounded: {
      param: 'model',
      reason:
        'the call brings input that is not in its body, and the context window of this model is not known',
    },
  };
}

/** Arguments of the calls in a message. Templates parse them and write them in their own format. */
export function argumentsIn(item: unknown): readonly unknown[] {
  if (!isJsonObject(item)) return NONE;
  const { tool_calls: calls, arguments: own, function: called, function_call: calledOnce } = item;
  // Most messages have none.
  if ((calls ?? own ?? called ?? calledOnce) === undefined) return NONE;
  const each = [...(Array.isArray(calls) ? calls : NONE), item].filter(isJsonObject);
  const functions = each.flatMap((call) => [call.function, call.function_call]);
  return [own, ...functions.filter(isJsonObject).map((call) => call.arguments)].filter(
    (value) => value !== undefined,
  );
}

const NONE: readonly unknown[] = [];

/** The address of each image in a message or item. */
function imagesIn(item: unknown): string[] {
  if (!isJsonObject(item)) return [];
  const { content, output } = item;
  const inContent = Array.isArray(content) ? content.flatMap(imageOf) : [];
  return Array.isArray(output) ? [...inContent, ...output.flatMap(imageOf)] : inContent;
}

function imageOf(part: unknown): string[] {
  if (!isJsonObject(part) || (part.type !== 'image_url' && part.type !== 'input_image')) return [];
  const held = isJsonObject(part.image_url) ? part.image_url.url : part.image_url;
  return [typeof held === 'string' ? held : ''];
}

/** Bytes of base64 in an image's address; 0 if the address refers to an image elsewhere, because such an address counts as text. */
const dataBytes = (url: string): number =>
  /^data:[^,]*;base64,([A-Za-z0-9+/=_-]*)$/.exec(url)?.[1]?.length ?? 0;
