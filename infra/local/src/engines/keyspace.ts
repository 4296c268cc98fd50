import {
  createHashData,
  createListData,
  createSetData,
  createSortedSetData,
  createStringData,
  type RedisDataValue,
  type RedisHashField,
  type RedisMutationEvent,
  type RedisSortedSetMember,
  type RedisStreamData,
} from 'js-redis-server/core';

/** All keys of the database with their expiry (Unix milliseconds), as the log would restore them. */
export type Keyspace = Map<string, { value: RedisDataValue; expiresAt?: number | undefined }>;

/** One mutation as the log keeps it: the change of a key, not the whole key. */
export type Change =
  | { do: 'clear' }
  | { do: 'delete'; key: string }
  | { do: 'expire'; key: string; expiresAt?: number | undefined }
  | { do: 'put'; key: string; expiresAt?: number | undefined; value: StoredValue }
  | { do: 'hash'; key: string; expiresAt?: number | undefined; set: StoredField[]; gone: string[] }
  | { do: 'zset'; key: string; expiresAt?: number | undefined; set: StoredMember[]; gone: string[] }
  | StreamChange;

type StreamChange = {
  do: 'stream';
  key: string;
  expiresAt?: number | undefined;
  dropped: number;
  added: StoredEntry[];
  ids: StoredIds;
};

/** What `event` changed against `keyspace`, which must have every earlier change applied. */
export function changeOf(keyspace: Keyspace, event: RedisMutationEvent): Change {
  if (event.type === 'flush') return { do: 'clear' };
  const key = toText(event.key);
  switch (event.type) {
    case 'delete':
    case 'evict':
      return { do: 'delete', key };
    case 'expire':
      return { do: 'expire', key, expiresAt: event.expiresAt };
    case 'persist':
      return { do: 'expire', key };
    case 'write': {
      const { expiresAt, value } = event;
      const put: Change = { do: 'put', key, expiresAt, value: { type: 'string', value: '' } };
      return (
        changeOfValue(key, expiresAt, keyspace.get(key)?.value, value) ?? { ...put, value: toStored(value) }
      );
    }
  }
}

export function applyChange(keyspace: Keyspace, change: Change): void {
  switch (change.do) {
    case 'clear':
      keyspace.clear();
      return;
    case 'delete':
      keyspace.delete(change.key);
      return;
    case 'put':
      keyspace.set(change.key, { value: fromStored(change.value), expiresAt: change.expiresAt });
      return;
    default: {
      const entry = keyspace.get(change.key);
      if (!entry) return;
      entry.expiresAt = change.expiresAt;
      applyToValue(entry.value, change);
    }
  }
}

/** The changes that make an empty keyspace into this one. */
export function changesToRebuild(keyspace: Keyspace): Change[] {
  return Array.from(keyspace, ([key, { value, expiresAt }]) => ({
    do: 'put',
    key,
    expiresAt,
    value: toStored(value),
  }));
}

/** Undefined where only the whole value says it: a new key, another type, strings, lists and sets. */
function changeOfValue(
  key: string,
  expiresAt: number | undefined,
  before: RedisDataValue | undefined,
  after: RedisDataValue,
): Change | undefined {
  if (before?.type === 'hash' && after.type === 'hash') {
    const { set, gone } = itemsChanged(
      before.fields,
      after.fields,
      (a, b) => a.value.equals(b.value) && a.expiresAt === b.expiresAt,
    );
    return {
      do: 'hash',
      key,
      expiresAt,
      set: set.map(toStoredField),
      gone: gone.map(({ field }) => toText(field)),
    };
  }
  if (before?.type === 'zset' && after.type === 'zset') {
    const { set, gone } = itemsChanged(before.members, after.members, (a, b) => a.score === b.score);
    return {
      do: 'zset',
      key,
      expiresAt,
      set: set.map(toStoredMember),
      gone: gone.map(({ member }) => toText(member)),
    };
  }
  if (before?.type === 'stream' && after.type === 'stream')
    return streamChange(key, expiresAt, before, after);
  return undefined;
}

function itemsChanged<Item>(
  before: Map<string, Item>,
  after: Map<string, Item>,
  isSame: (before: Item, after: Item) => boolean,
): { set: Item[]; gone: Item[] } {
  const set: Item[] = [];
  const gone: Item[] = [];
  for (const [id, item] of after) {
    const known = before.get(id);
    if (known === undefined || !isSame(known, item)) set.push(item);
  }
  for (const [id, item] of before) if (!after.has(id)) gone.push(item);
  return { set, gone };
}

/** Entries enter a stream at its end; undefined if any but the first ones left it (XDEL in the middle). */
function streamChange(
  key: string,
  expiresAt: number | undefined,
  before: RedisStreamData,
  after: RedisStreamData,
): StreamChange | undefined {
  let kept = after.entries.length;
  for (
    let last = after.entries[kept - 1];
    last && isLater(last.id, before.lastId);
    last = after.entries[kept - 1]
  ) {
    kept -= 1;
  }
  const dropped = before.entries.length - kept;
  const firstKept = before.entries[dropped];
  const first = kept > 0 ? after.entries[0] : undefined;
  if (first && (!firstKept || isLater(firstKept.id, first.id) || isLater(first.id, firstKept.id)))
    return undefined;
  const added = after.entries.slice(kept).map(toStoredEntry);
  return { do: 'stream', key, expiresAt, dropped, added, ids: toStoredIds(after) };
}

function isLater(a: RedisStreamData['lastId'], b: RedisStreamData['lastId']): boolean {
  return a.ms === b.ms ? a.seq > b.seq : a.ms > b.ms;
}

function applyToValue(value: RedisDataValue, change: Change): void {
  if (change.do === 'hash' && value.type === 'hash') {
    for (const field of change.gone) value.fields.delete(itemId(field));
    for (const field of change.set) setField(value.fields, field);
  } else if (change.do === 'zset' && value.type === 'zset') {
    for (const member of change.gone) value.members.delete(itemId(member));
    for (const member of change.set) setMember(value.members, member);
  } else if (change.do === 'stream' && value.type === 'stream') {
    value.entries.splice(0, change.dropped);
    extendStream(value, change.added, change.ids);
  }
}

/**
 * A Redis value as JSON. Bytes are strings of Latin-1, one character a byte; scores are strings, as JSON knows
 * no infinity. A stream's consumer groups are left out: nothing here uses them.
 */
type StoredValue =
  | { type: 'string'; value: string }
  | { type: 'list'; values: string[] }
  | { type: 'set'; members: string[] }
  | { type: 'hash'; fields: StoredField[] }
  | { type: 'zset'; members: StoredMember[] }
  | { type: 'stream'; entries: StoredEntry[]; ids: StoredIds };

type StoredField = [field: string, value: string, expiresAt?: number];
type StoredMember = [member: string, score: string];
type StoredEntry = [id: string, ...fields: string[]];
/** A stream's last id outlives its entries: ids must go on rising when all were trimmed. */
type StoredIds = { last: string; deleted: string; added: number };

function toStored(value: RedisDataValue): StoredValue {
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

function fromStored(stored: StoredValue): RedisDataValue {
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

function setField(fields: Map<string, RedisHashField>, [field, value, expiresAt]: StoredField): void {
  const item = { field: fromText(field), value: fromText(value) };
  fields.set(itemId(field), expiresAt === undefined ? item : { ...item, expiresAt });
}

function setMember(members: Map<string, RedisSortedSetMember>, [member, score]: StoredMember): void {
  members.set(itemId(member), { member: fromText(member), score: Number(score) });
}

function extendStream(stream: RedisStreamData, entries: StoredEntry[], ids: StoredIds): void {
  for (const [id, ...fields] of entries)
    stream.entries.push({ id: fromIdText(id), fields: fields.map(fromText) });
  stream.lastId = fromIdText(ids.last);
  stream.maxDeletedEntryId = fromIdText(ids.deleted);
  stream.entriesAdded = ids.added;
}

function toStoredField({ field, value, expiresAt }: RedisHashField): StoredField {
  return expiresAt === undefined ? [toText(field), toText(value)] : [toText(field), toText(value), expiresAt];
}

function toStoredMember({ member, score }: RedisSortedSetMember): StoredMember {
  return [toText(member), String(score)];
}

function toStoredEntry({ id, fields }: RedisStreamData['entries'][number]): StoredEntry {
  return [toIdText(id), ...fields.map(toText)];
}

function toStoredIds(stream: RedisStreamData): StoredIds {
  return {
    last: toIdText(stream.lastId),
    deleted: toIdText(stream.maxDeletedEntryId),
    added: stream.entriesAdded,
  };
}

function toText(bytes: Buffer): string {
  return bytes.toString('latin1');
}

export function fromText(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

/** The name under which the engine files a field or member in its maps. */
function itemId(text: string): string {
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
