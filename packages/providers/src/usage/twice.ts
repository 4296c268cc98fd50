import { scanJson } from '@presign/schema';

/** Fields in which the APIs state usage, as JSON text. */
const HOLDERS = ['"usage"', '"usageMetadata"', '"meta"'];

/**
 * Whether a JSON text states a usage, or a count in it, twice under one name: readers take either of the two (RFC 8259 §4). The text is
 * scanned from its usage on, which most answers end with.
 */
export function statesTwice(json: string | Buffer): boolean {
  for (const holder of HOLDERS) {
    const at = json.indexOf(holder);
    if (at < 0) continue;
    const isAlone = json.indexOf(holder, at + holder.length) < 0;
    const scan = scanJson(bytesFrom(json, isAlone ? at + holder.length : 0), undefined);
    if ('ambiguous' in scan && scan.ambiguous !== undefined) return true;
  }
  return false;
}

const bytesFrom = (json: string | Buffer, at: number): Buffer =>
  typeof json === 'string' ? Buffer.from(json.slice(at)) : json.subarray(at);
