import { endOfString, parseJson } from '@presign/schema';
import { readEvent } from '../../http/sse.ts';
import { type RpcId, rpcId } from './rpc-id.ts';

/** The request that an event answers. Undefined if it answers several, or none. */
export function idAnsweredBy(bytes: Buffer): RpcId | undefined {
  const data = readEvent(bytes)?.data;
  return data === undefined ? undefined : answeredId(data);
}

/**
 * The id of the one answer in a text, which may be too long to be parsed. It does not check that the text is JSON. Undefined for a batch,
 * for a request, and where readers may differ.
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
  return rpcId(parseJson(id), () => id);
}

const QUOTE = 0x22;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** A name is read, with the space before its value, if both are this short. */
const NEAR = 100;
/** The longest id in escapes. */
const ID_CHARS = 6 * 1_024 + 2;

function nameOf(text: string, start: number, end: number): unknown {
  return end - start > NEAR ? undefined : parseJson(text.slice(start, end + 1));
}

/** The string or number that begins there. */
function scalarAt(text: string, start: number): string {
  const end =
    text.charCodeAt(start) === QUOTE
      ? endOfString(text, start) - start + 1
      : text.slice(start, start + ID_CHARS).search(/[\s,}]/);
  return text.slice(start, start + Math.min(end, ID_CHARS));
}
