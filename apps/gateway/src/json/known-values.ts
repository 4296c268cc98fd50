import type { JsonObject, KnownValue, Scan, KnownValues as ValuesOfScan } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/** The values that an agent sends with each of its calls: the definitions of its tools, in each dialect's name. */
const NAMES: ReadonlySet<string> = new Set(['tools', 'toolConfig']);
/** A shorter one is read as fast as it is found. */
const LEAST_BYTES = 1024;
const MOST_BYTES = 256 * 1024;
/** An account may have several agents. */
const OF_ACCOUNT = 8;
/** How many times the bytes of its JSON a value takes, at most. */
const HEAP_TIMES = 10;

/** The values of one account. */
export type AccountValues = ValuesOfScan & {
  /** Keeps the values of a body that was scanned and read. From now on they cannot be changed. */
  readonly keep: (bytes: Uint8Array, scan: Scan, body: JsonObject) => void;
};

/**
 * Values that calls of an account have sent, so that they are neither scanned nor parsed again. Accounts share none. Otherwise an account
 * could infer from the time of an answer that another account has sent the same value.
 */
export class KnownValues {
  readonly #ofAccounts: LRUCache<string, KnownValue[]>;

  constructor(maxBytes: number) {
    this.#ofAccounts = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (values) => HEAP_TIMES * values.reduce((sum, { bytes }) => sum + bytes.length, 0),
    });
  }

  of(accountId: string): AccountValues {
    return {
      names: NAMES,
      at: (json, start) => this.#find(accountId, json, start),
      keep: (bytes, scan, body) => this.#keep(accountId, bytes, scan, body),
    };
  }

  #keep(accountId: string, bytes: Uint8Array, { values }: Scan, body: JsonObject): void {
    for (const { name, start, end, known, ...figures } of values) {
      if (known || end - start < LEAST_BYTES || end - start > MOST_BYTES) continue;
      // A call may be planned more than once.
      if (this.#find(accountId, bytes, start)) continue;
      const kept = {
        ...figures,
        bytes: Uint8Array.from(bytes.subarray(start, end)),
        value: frozen(body[name]),
      };
      const others = this.#ofAccounts.get(accountId)?.slice(0, OF_ACCOUNT - 1) ?? [];
      this.#ofAccounts.set(accountId, [kept, ...others]);
    }
  }

  #find(accountId: string, json: Uint8Array, start: number): KnownValue | undefined {
    const values = this.#ofAccounts.get(accountId);
    const found = values?.findIndex(({ bytes }) => isAt(bytes, json, start)) ?? -1;
    const known = values?.[found];
    if (!values || !known || found === 0) return known;
    values.splice(found, 1);
    values.unshift(known);
    return known;
  }
}

const isAt = (bytes: Uint8Array, json: Uint8Array, start: number): boolean =>
  start + bytes.length <= json.length &&
  Buffer.compare(bytes, json.subarray(start, start + bytes.length)) === 0;

/** A scan bounds how deep a value nests. */
function frozen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const each of Object.values(value)) frozen(each);
  return Object.freeze(value);
}
