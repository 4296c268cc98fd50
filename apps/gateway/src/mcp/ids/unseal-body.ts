import type { EncryptionKeys } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { HandedId } from './handed-ids.ts';
import type { Listing } from './list-ids.ts';
import { unsealState } from './rounds.ts';
import { type IdKind, unsealId } from './seal.ts';

/**
 * Puts the server's own ids into a body.
 * @param ids in the order of their positions
 * @returns a refusal for an id that this grant did not receive, in the form in which a server refuses an unknown id
 */
export function unsealBody(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  body: Buffer,
  ids: readonly HandedId[],
): Listing | { readonly refusal: Refusal } {
  if (ids.length === 0) return { bytes: body, lists: [] };
  const parts: Buffer[] = [];
  const lists: Listing['lists'][number][] = [];
  let done = 0;
  /** The growth of the body by the replacements. */
  let longer = 0;
  for (const { kind, json, param, mayBeOwn, start, end } of ids) {
    if (kind === 'list') {
      lists.push({ start: start + longer, end: end + longer });
      continue;
    }
    const own = unsealJson(keys, grant, kind, json);
    if (own === undefined && mayBeOwn) continue;
    if (own === undefined) return { refusal: unknownId(kind, param) };
    const put = Buffer.from(own);
    parts.push(body.subarray(done, start), put);
    longer += put.length - (end - start);
    done = end;
  }
  return { bytes: done === 0 ? body : Buffer.concat([...parts, body.subarray(done)]), lists };
}

/** The server's own string or number, as JSON. */
function unsealJson(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  kind: IdKind,
  json: string,
): string | undefined {
  if (kind === 'state') return unsealState(keys, grant, json)?.own;
  if (!json.startsWith('"')) return undefined;
  return unsealId(keys, grant, kind, JSON.parse(json) as string);
}

/** The server's own id of the task that a request is about. Undefined if it is about none. */
export function unsealTask(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  ids: readonly HandedId[],
): string | undefined {
  const task = ids.find(({ param }) => param === 'params.taskId');
  const json = task && unsealJson(keys, grant, 'task', task.json);
  return json === undefined ? undefined : String(JSON.parse(json));
}

/** MCP 2025-11-25, "Protocol Errors" of tasks, and SEP-2663: -32602 for an unknown id or cursor. */
export const unknownId = (kind: IdKind, param: string): Refusal => ({
  code: 'invalid_request',
  param,
  message: UNKNOWN[kind],
});

const NO_EVENT = 'Event not found. Open the stream without Last-Event-ID.';
const NO_STATE = 'This requestState was not issued to this URL. Repeat the call without it.';
const UNKNOWN: Readonly<Record<IdKind, string>> = {
  session: 'Session not found.',
  sticky: 'Session not found.',
  event: NO_EVENT,
  pending: NO_EVENT,
  task: 'Task not found.',
  cursor: 'Cursor not found.',
  state: NO_STATE,
  round: NO_STATE,
  request: 'The server did not send this request to this URL.',
  progress: 'The server did not send this progress token to this URL.',
};
