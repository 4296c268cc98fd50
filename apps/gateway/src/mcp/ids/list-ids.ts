import { parseJson } from '@presign/schema';
import { membersOf } from '../../json/parts.ts';
import { messagesIn } from './answered-id.ts';
import { type Edit, withEdits } from './places.ts';
import { type RpcId, rpcId } from './rpc-id.ts';

/**
 * A server finds the stream of an answer by the id of its request. A client can use one id for two requests of a session, and can resume
 * streams at any gateway. Every stream must know which answers have lists, so the gateway gives each list request another id. That id has
 * no character that JSON escapes.
 */
const MARK = 'presign-list-';
const OF_STRING = `${MARK}s`;
const OF_NUMBER = `${MARK}n`;

/** No request of a client may have such an id. */
export const isMarked = (id: RpcId): boolean => id.startsWith(`"${MARK}`);

const marked = (id: RpcId): RpcId =>
  JSON.stringify(id.startsWith('"') ? OF_STRING + (JSON.parse(id) as string) : OF_NUMBER + id);

/** The client's own id. */
export function ownId(id: RpcId): RpcId {
  if (!isMarked(id)) return id;
  const text = JSON.parse(id) as string;
  const own = text.slice(OF_STRING.length);
  return text.startsWith(OF_STRING) ? JSON.stringify(own) : own;
}

/** A body, and the places of the ids of its list requests. */
export type Listing = {
  readonly bytes: Buffer;
  readonly lists: readonly { readonly start: number; readonly end: number }[];
};

/** The body for the server, if the lists are filtered. */
export function markLists(body: Listing | { readonly bytes: null }): { bytes: Buffer | null } {
  if (!body.bytes || body.lists.length === 0) return body;
  const { bytes, lists } = body;
  const parts: Buffer[] = [];
  let done = 0;
  for (const { start, end } of lists) {
    const written = bytes.toString('utf8', start, end);
    const id = rpcId(JSON.parse(written), () => written);
    if (id === undefined) continue;
    parts.push(bytes.subarray(done, start), Buffer.from(marked(id)));
    done = end;
  }
  return { bytes: Buffer.concat([...parts, bytes.subarray(done)]) };
}

/** Whether an answer may have the id of a list. */
export const mayBeMarked = (bytes: Buffer): boolean => bytes.includes(MARK);

/** A message or batch with the client's own ids. */
export function restoreIds(text: string): string {
  const edits = messagesIn(text).flatMap(({ start, end, id }): Edit[] => {
    if (id === undefined || !isMarked(id)) return [];
    const message = text.slice(start, end);
    if (parseJson(message) === undefined) return [];
    const at = membersOf(message, message.indexOf('{'), 'id')[0];
    return at ? [{ start: start + at.start, end: start + at.end, text: ownId(id) }] : [];
  });
  return withEdits(text, edits);
}
