import { endOfString, parseJson } from '@presign/schema';
import { isMessage, readEvent } from '../../http/sse.ts';
import { MOST_ANSWERED_CHARS, type RpcId, rpcId } from './rpc-id.ts';

/** The request that an event answers. Undefined if it answers several, or none. */
export function idAnsweredBy(bytes: Buffer): RpcId | undefined {
  const event = readEvent(bytes);
  return event && isMessage(event) ? answeredId(event.data) : undefined;
}

/** A message within a text, and the request that it answers. */
export type MessagePart = { readonly start: number; readonly end: number; readonly id: RpcId | undefined };

/**
 * The messages of a text, which may be too long to be parsed. A text that is not a batch, or is a batch of too many messages, counts as one
 * part.
 */
export function messagesIn(text: string): readonly MessagePart[] {
  const parts = text.trimStart().startsWith('[') ? batchIn(text) : undefined;
  return (parts ?? [{ start: 0, end: text.length }]).map(({ start, end }) => ({
    start,
    end,
    id: answeredId(text.slice(start, end)),
  }));
}

/** The objects in a list that contains only objects. It does not check that they are JSON. */
function batchIn(text: string): readonly { start: number; end: number }[] | undefined {
  const parts: { start: number; end: number }[] = [];
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i);
        break;
      case OPEN_OBJECT:
      case OPEN_LIST:
        if (depth === 1) parts.push({ start: i, end: i });
        if (parts.length > BATCH_MOST) return undefined;
        depth++;
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        depth--;
        if (depth === 1) parts.splice(-1, 1, { start: parts.at(-1)?.start ?? i, end: i + 1 });
    }
  }
  const between = parts.map(({ start }, i) => text.slice(parts[i - 1]?.end ?? 0, start));
  const isList =
    parts.every(({ start }) => text.charCodeAt(start) === OPEN_OBJECT) &&
    between.every((gap, i) => (i === 0 ? BEGINS : GOES_ON).test(gap)) &&
    ENDS.test(text.slice(parts.at(-1)?.end));
  return parts.length > 0 && isList ? parts : undefined;
}

/** Servers answer a batch, which has at most 100 requests, and may add notifications. */
const BATCH_MOST = 1_000;
const [BEGINS, GOES_ON, ENDS] = [
  /^[ \t\r\n]*\[[ \t\r\n]*$/,
  /^[ \t\r\n]*,[ \t\r\n]*$/,
  /^[ \t\r\n]*\][ \t\r\n]*$/,
];

/**
 * The id of the one answer in a text, which may be too long to be parsed. It does not check that the text is JSON. Undefined for a batch,
 * for a request, and if parsers may differ.
 */
export function answeredId(text: string): RpcId | undefined {
  const found: string[] = [];
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const end = endOfString(text, i);
        const colon = depth === 1 ? /^\s*:\s*/.exec(text.slice(end + 1, end + 1 + NEAR))?.[0] : undefined;
        const name = colon === undefined ? undefined : nameOf(text, i, end);
        i = end;
        if (name === 'method') return undefined;
        if (name !== 'id') break;
        i += colon?.length ?? 0;
        found.push(scalarAt(text, i + 1));
        break;
      }
      case OPEN_OBJECT:
      case OPEN_LIST:
        if (depth === 0 && text[i] === '[') return undefined;
        depth++;
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        depth--;
    }
  }
  const [id, another] = found;
  if (id === undefined || another !== undefined || depth !== 0) return undefined;
  return rpcId(parseJson(id), () => id, MOST_ANSWERED_CHARS);
}

const QUOTE = 0x22;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** The longest name, and the longest space before its value, that are read. */
const NEAR = 100;
/** The longest id if every character is escaped. */
const ID_CHARS = 6 * MOST_ANSWERED_CHARS + 2;

function nameOf(text: string, start: number, end: number): unknown {
  return end - start > NEAR ? undefined : parseJson(text.slice(start, end + 1));
}

/** The string or number that begins at this index. */
function scalarAt(text: string, start: number): string {
  const end =
    text.charCodeAt(start) === QUOTE
      ? endOfString(text, start) - start + 1
      : text.slice(start, start + ID_CHARS).search(/[\s,}]/);
  return text.slice(start, start + Math.min(end, ID_CHARS));
}
