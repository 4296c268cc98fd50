import { randomUUID } from 'node:crypto';
import { isJsonObject, isModest, type JsonObject, readJson, scanJson } from '@presign/schema';
import { MODEST } from '../../llm/body.ts';

/** Bounds of a holder's event, which is scanned on the event loop. */
export const MOST = { depth: 200, parts: 20_000, members: 1_000 };

/** An event as JSON. Undefined: it is no JSON object. */
export function readEvent(frame: Buffer): JsonObject | undefined {
  if (!isReadable(frame)) return undefined;
  const read = readJson(frame);
  return read && isJsonObject(read.value) ? read.value : undefined;
}

/** Whether an event may be parsed. Large events with very many parts are not parsed. */
export const isReadable = (frame: Buffer): boolean => frame.length <= LARGE_BYTES || isModest(frame, MODEST);

/** A short top-level text of an event; nothing else is parsed. Undefined: it is missing, or the event may not be parsed. */
export function textAt(frame: Buffer, name: string): string | undefined {
  const scan = scanJson(frame, MOST);
  const at = 'members' in scan ? scan.members.find((each) => each.name === name) : undefined;
  if (at === undefined || at.end - at.valueAt > TEXT_BYTES) return undefined;
  const value = readJson(frame.subarray(at.valueAt, at.end))?.value;
  return typeof value === 'string' ? value : undefined;
}

/** A name of 512 characters, each of which may be escaped. */
const TEXT_BYTES = 4 * 1024;

const LARGE_BYTES = 64 * 1024;

/** Whether an event of an upstream is of a response, by its beginning. Otherwise it answers an event of the holder. */
export const isOfResponse = (frame: Buffer): boolean =>
  OF_RESPONSE.test(frame.toString('latin1', 0, HEAD_BYTES));

const OF_RESPONSE = /^\{\s*"type"\s*:\s*"response\./;
const HEAD_BYTES = 48;

/** An id that lives as long as a socket. Node builds an id from 20 strings, which take half a kilobyte until they are flattened. */
export const newId = (prefix = ''): string => Buffer.from(`${prefix}${randomUUID()}`).toString('latin1');

/**
 * Tells whether an event of an upstream may be of one of these types. It is one quick check for all types, because almost no event has one
 * of them and needs parsing.
 */
export function lookFor(types: readonly string[]): (frame: Buffer) => boolean {
  const any = new RegExp(`"(?:${types.map((type) => type.replaceAll('.', '\\.')).join('|')})"`);
  const overlap = Math.max(...types.map(({ length }) => length)) + 1;
  return (frame) => {
    for (let at = 0; at < frame.length; at += PIECE_BYTES)
      if (any.test(frame.toString('latin1', at, at + PIECE_BYTES + overlap))) return true;
    return false;
  };
}

const PIECE_BYTES = 64 * 1024;
