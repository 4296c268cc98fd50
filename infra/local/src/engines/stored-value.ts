import {
  createHashData,
  createListData,
  createSetData,
  createSortedSetData,
  createStringData,
  type RedisDataValue,
  type RedisHashField,
  type RedisSortedSetMember,
  type RedisStreamData,
} from 'js-redis-server/core';

/**
 * A Redis value as JSON. Bytes are strings of Latin-1, one character a byte; scores are strings, as JSON knows
 * no infinity. A stream's consumer groups are left out: nothing here uses them.
 */
export type StoredValue =
  | { type: 'string'; value: string }
  | { type: 'list'; values: string[] }
  | { type: 'set'; members: string[] }
  | { type: 'hash'; fields: StoredField[] }
  | { type: 'zset'; members: StoredMember[] }
  | { type: 'stream'; entries: StoredEntry[]; ids: StoredIds };

export type StoredField = [field: string, value: string, expiresAt?: number];
export type StoredMember = [member: string, score: string];
export type StoredEntry = [id: string, ...fields: string[]];
/** A stream's last id outlives its entries: ids must go on rising when all were trimmed. */
export type StoredIds = { last: string; deleted: string; added: number };

export function toStored(value: RedisDataValue): StoredValue {
  switch (value.type) {
    case 'string':
      return { type: 'string', value: toText(value.value) };
    case 'list':
      return { type: 'list', values: value.values.map(toText) };
    case 'set':
      return { type: 'set', members: Array.from(value.members.values(), toText) };
    case 'hash':
      return { type: 'hash', fields: Array.from(value.fields.values(), toStoredField) };
    case 'zset':
      return { type: 'zset', members: Array.from(value.members.values(), toStoredMember) };
    case 'stream':
      return { type: 'stream', entries: value.entries.map(toStoredEntry), ids: toStoredIds(value) };
  }
}

export function fromStored(stored: StoredValue): RedisDataValue {
  switch (stored.type) {
    case 'string':
      return createStringData(fromText(stored.value));
    case 'list':
      return { ...createListData(), values: stored.values.map(fromText) };
    case 'set':
      return {
        ...createSetData(),
        members: new Map(stored.members.map((text) => [itemId(text), fromText(text)])),
      };
    case 'hash': {
      const hash = createHashData();
      for (const field of stored.fields) setField(hash.fields, field);
      return hash;
    }
    case 'zset': {
      const zset = createSortedSetData();
      for (const member of stored.members) setMember(zset.members, member);
      return zset;
    }
    case 'stream': {
      const stream = emptyStream();
      extendStream(stream, stored.entries, stored.ids);
      return stream;
    }
  }
}

export function setField(fields: Map<string, RedisHashField>, [field, value, expiresAt]: StoredField): void {
  const item = { field: fromText(field), value: fromText(value) };
  fields.set(itemId(field), expiresAt === undefined ? item : { ...item, expiresAt });
}

export function setMember(members: Map<string, RedisSortedSetMember>, [member, score]: StoredMember): void {
  members.set(itemId(member), { member: fromText(member), score: Number(score) });
}

export function extendStream(stream: RedisStreamData, entries: StoredEntry[], ids: StoredIds): void {
  for (const [id, ...fields] of entries)
    stream.entries.push({ id: fromIdText(id), fields: fields.map(fromText) });
  stream.lastId = fromIdText(ids.last);
  stream.maxDeletedEntryId = fromIdText(ids.deleted);
  stream.entriesAdded = ids.added;
}

export function toStoredField({ field, value, expiresAt }: RedisHashField): StoredField {
  return expiresAt === undefined ? [toText(field), toText(value)] : [toText(field), toText(value), expiresAt];
}

export function toStoredMember({ member, score }: RedisSortedSetMember): StoredMember {
  return [toText(member), String(score)];
}

export function toStoredEntry({ id, fields }: RedisStreamData['entries'][number]): StoredEntry {
  return [toIdText(id), ...fields.map(toText)];
}

export function toStoredIds(stream: RedisStreamData): StoredIds {
  return {
    last: toIdText(stream.lastId),
    deleted: toIdText(stream.maxDeletedEntryId),
    added: stream.entriesAdded,
  };
}

export function toText(bytes: Buffer): string {
  return bytes.toString('latin1');
}

export function fromText(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

/** The name under which the engine files a field or member in its maps. */
export function itemId(text: string): string {
  return fromText(text).toString('hex');
}

type StreamId = RedisStreamData['lastId'];

function emptyStream(): RedisStreamData {
  const none = { ms: 0n, seq: 0n };
  return {
    type: 'stream',
    entries: [],
    lastId: none,
    entriesAdded: 0,
    maxDeletedEntryId: none,
    groups: new Map(),
  };
}

function toIdText({ ms, seq }: StreamId): string {
  return `${ms}-${seq}`;
}

function fromIdText(text: string): StreamId {
  const dash = text.indexOf('-');
  return { ms: BigInt(text.slice(0, dash)), seq: BigInt(text.slice(dash + 1)) };
}
