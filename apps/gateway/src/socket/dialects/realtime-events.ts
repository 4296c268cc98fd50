import { refusedItem } from '@presign/providers';
import { briefly, type JsonObject } from '@presign/schema';

/** The events of a holder of a Realtime session, and their fields (`openai` 7.59, RealtimeClientEvent, read on 2026-11-29). */

/** The kind of a field's value. `unknown`: it may be anything, and is judged by itself. */
type FieldType = 'text' | 'number' | 'text or nothing' | 'unknown';
type Fields = Readonly<Record<string, FieldType>>;

/** Events that start no billed work, except `session.update`. */
const FREE: Readonly<Record<string, Fields>> = {
  'input_audio_buffer.append': { audio: 'text' },
  'input_audio_buffer.commit': {},
  'input_audio_buffer.clear': {},
  'conversation.item.create': { previous_item_id: 'text or nothing', item: 'unknown' },
  'conversation.item.delete': { item_id: 'text' },
  'conversation.item.retrieve': { item_id: 'text' },
  'conversation.item.truncate': { item_id: 'text', content_index: 'number', audio_end_ms: 'number' },
  'response.cancel': { response_id: 'text or nothing' },
};
const GOVERNED: Readonly<Record<string, Fields>> = {
  'session.update': { session: 'unknown' },
  'response.create': { response: 'unknown' },
};
const OF_ALL: Fields = { type: 'text', event_id: 'text or nothing' };

const FIELDS: ReadonlyMap<string, ReadonlyMap<string, FieldType>> = new Map(
  Object.entries({ ...FREE, ...GOVERNED }).map(([type, fields]) => [
    type,
    new Map(Object.entries({ ...OF_ALL, ...fields })),
  ]),
);

export const isFreeEvent = (type: unknown): boolean => typeof type === 'string' && Object.hasOwn(FREE, type);

/** Why an event is not forwarded: it is unknown, has an unknown field, or a field of the wrong type. */
export function problemOf(
  event: JsonObject,
): { readonly param: string; readonly reason: string } | undefined {
  const { type, item } = event;
  const fields = typeof type === 'string' ? FIELDS.get(type) : undefined;
  if (!fields) return { param: 'type', reason: `this socket does not take ${named(type)}` };
  const stray = Object.keys(event).find((field) => !fields.has(field));
  if (stray !== undefined) return { param: stray.slice(0, NAME_MAX), reason: `${type} has no such field` };
  for (const [field, of] of fields)
    if (!HAS[of](event[field])) return { param: field, reason: `expected a ${of}` };
  return type === 'conversation.item.create' ? refusedItem(item) : undefined;
}

const HAS: Readonly<Record<FieldType, (value: unknown) => boolean>> = {
  text: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  'text or nothing': (value) => value === null || ['string', 'undefined'].includes(typeof value),
  unknown: () => true,
};

const NAME_MAX = 64;

const named = (type: unknown): string =>
  typeof type === 'string' ? `the event ${briefly(type)}` : 'an event without one';

/**
 * Whether an event contains only sound, as SDKs write it: `append` with one Base64 field. Such an event has no duplicate name, no other
 * field, no escape and no nesting.
 */
export function isSound(frame: Buffer): boolean {
  const head = HEADS.find((each) => beginsWith(frame, each));
  const end = frame.length - 2;
  if (!head || end < head.length || frame[end] !== QUOTE || frame[end + 1] !== BRACE_CLOSE) return false;
  for (let at = head.length; at < end; at++) if (IN_BASE64[frame[at] as number] !== 1) return false;
  return true;
}

const beginsWith = (frame: Buffer, head: Buffer): boolean =>
  frame.length > head.length && frame.compare(head, 0, head.length, 0, head.length) === 0;

/** As JavaScript writes them, and Python. */
const HEADS = [
  '{"type":"input_audio_buffer.append","audio":"',
  '{"type": "input_audio_buffer.append", "audio": "',
].map((head) => Buffer.from(head));
const IN_BASE64 = new Uint8Array(256);
for (const each of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/='))
  IN_BASE64[each] = 1;
const QUOTE = 0x22;
const BRACE_CLOSE = 0x7d;
