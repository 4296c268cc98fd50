import { type FoundId, findIds, type HandedKind, handedBack } from './places.ts';

/** An id that a client sends back, and its bytes in the body. */
export type HandedId = FoundId<HandedKind>;

/** The most ids of one POST. Each is decrypted. */
export const IDS_MOST = 1_000;

/** Finds the ids that a POST sends back. */
export function handedIds(text: string, value: unknown): readonly HandedId[] {
  const found = findIds(text, value, handedBack);
  let chars = 0;
  let bytes = 0;
  const bytesUntil = (end: number) => {
    bytes += Buffer.byteLength(text.slice(chars, end));
    chars = end;
    return bytes;
  };
  return [...found]
    .sort((a, b) => a.start - b.start)
    .map((each) => ({ ...each, start: bytesUntil(each.start), end: bytesUntil(each.end) }));
}
