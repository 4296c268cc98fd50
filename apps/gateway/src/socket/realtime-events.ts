import { refusedItem } from '@presign/providers';
import type { JsonObject } from '@presign/schema';

/** The events of a holder of a Realtime session, and their fields (`openai` 7.59, RealtimeClientEvent, read on 2026-11-29). */

/** Events that start no work which is billed, apart from `session.update`. */
const FREE: Readonly<Record<string, readonly string[]>> = {
  'input_audio_buffer.append': ['audio'],
  'input_audio_buffer.commit': [],
  'input_audio_buffer.clear': [],
  'conversation.item.create': ['previous_item_id', 'item'],
  'conversation.item.delete': ['item_id'],
  'conversation.item.retrieve': ['item_id'],
  'conversation.item.truncate': ['item_id', 'content_index', 'audio_end_ms'],
  'response.cancel': ['response_id'],
};

const FIELDS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({ ...FREE, 'session.update': ['session'], 'response.create': ['response'] }).map(
    ([type, fields]) => [type, new Set(['type', 'event_id', ...fields])],
  ),
);

/** An event is looked through on the event loop. */
export const MOST = { depth: 200, parts: 20_000, members: 1_000 };

export const isFreeEvent = (type: unknown): boolean => typeof type === 'string' && Object.hasOwn(FREE, type);

/** Why an event is not sent on: it is not known, or has a field that its kind has not. */
export function problemOf(
  event: JsonObject,
): { readonly param: string; readonly reason: string } | undefined {
  const { type, event_id: eventId, item } = event;
  const fields = typeof type === 'string' ? FIELDS.get(type) : undefined;
  if (!fields) return { param: 'type', reason: 'this socket does not take such an event' };
  const stray = Object.keys(event).find((field) => !fields.has(field));
  if (stray !== undefined) return { param: stray.slice(0, NAME_MAX), reason: `${type} has no such field` };
  if (eventId !== undefined && typeof eventId !== 'string')
    return { param: 'event_id', reason: 'expected a text' };
  return type === 'conversation.item.create' ? refusedItem(item) : undefined;
}

const NAME_MAX = 64;
