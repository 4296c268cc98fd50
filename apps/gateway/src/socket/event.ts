import { isJsonObject, isModest, type JsonObject, readJson } from '@presign/schema';
import { MODEST } from '../llm/body.ts';

/** An event as JSON. Undefined: it is no JSON object. */
export function readEvent(frame: Buffer): JsonObject | undefined {
  if (!isReadable(frame)) return undefined;
  const read = readJson(frame);
  return read && isJsonObject(read.value) ? read.value : undefined;
}

/** Whether an event may be parsed: the JSON of a large one that has very many parts is not. */
export const isReadable = (frame: Buffer): boolean => frame.length <= LARGE_BYTES || isModest(frame, MODEST);

const LARGE_BYTES = 64 * 1024;
