import { type RedisClient, type RedisTimeouts, renewAll } from '@presign/limits';

/** The number of holds in one table. */
export const LEASE_SLOTS = 16_384;

const ID_BYTES = 32;
const SLOT_BYTES = 2 * Float64Array.BYTES_PER_ELEMENT + Int32Array.BYTES_PER_ELEMENT + ID_BYTES;

/** One hold of a call under way. */
export type HeldLease = {
  readonly partition: number;
  readonly holdId: string;
  /** Until when it is renewed, by `monotonicMs`. */
  readonly untilMs: number;
};

/** The data that `lease-thread.ts` starts with. */
export type LeaseThreadStart = {
  readonly redisUrl: string;
  readonly redisTimeouts?: RedisTimeouts | undefined;
  readonly leaseMs: number;
  /** Shared with the main thread, which writes the time (`monotonicMs`) here while its event loop runs. */
  readonly heartbeat: Float64Array;
  /** Also shared. For each partition: when the tables were read for its last renewal (`monotonicMs`). */
  readonly renewedMs: Float64Array;
};

/** The message that `lease-thread.ts` sends when it starts, and after each failed renewal. */
export type LeaseThreadReport = { readonly failed: number };

/**
 * Holds in memory shared by two threads: the event loop writes them, and a thread reads them. A message for each hold
 * would take a tenth of a call's time.
 *
 * The reader may see a slot while it changes. The old hold has ended and the new hold has a whole lease, so the reader
 * misses nothing. A torn id exists in no partition, and `renew` ignores it.
 */
export class LeaseTable {
  readonly memory: SharedArrayBuffer;
  readonly #addedMs: Float64Array;
  readonly #untilMs: Float64Array;
  /** The partition plus 1, or 0 for a free slot. */
  readonly #places: Int32Array;
  readonly #ids: Buffer;

  constructor(memory = new SharedArrayBuffer(LEASE_SLOTS * SLOT_BYTES)) {
    this.memory = memory;
    this.#addedMs = new Float64Array(memory, 0, LEASE_SLOTS);
    this.#untilMs = new Float64Array(memory, this.#addedMs.byteLength, LEASE_SLOTS);
    const placesAt = this.#addedMs.byteLength + this.#untilMs.byteLength;
    this.#places = new Int32Array(memory, placesAt, LEASE_SLOTS);
    this.#ids = Buffer.from(memory, placesAt + this.#places.byteLength);
  }

  /** @param longestMs the longest time for which the hold is renewed */
  fill(slot: number, partition: number, holdId: string, longestMs: number): void {
    const now = monotonicMs();
    this.#ids.write(holdId, slot * ID_BYTES, ID_BYTES, 'latin1');
    this.#addedMs[slot] = now;
    this.#untilMs[slot] = now + longestMs;
    // Publishes the slot. `Atomics` orders this write after the writes above.
    Atomics.store(this.#places, slot, partition + 1);
  }

  /** @returns how long the hold was there, in ms */
  free(slot: number): number {
    const addedMs = this.#addedMs[slot] ?? 0;
    Atomics.store(this.#places, slot, 0);
    return monotonicMs() - addedMs;
  }

  /** Until when the hold in a slot is renewed, by `monotonicMs`. */
  untilMs(slot: number): number {
    return this.#untilMs[slot] ?? 0;
  }

  *held(): Generator<HeldLease> {
    for (let slot = 0; slot < LEASE_SLOTS; slot++) {
      const place = Atomics.load(this.#places, slot);
      if (place === 0) continue;
      const holdId = this.#ids.toString('latin1', slot * ID_BYTES, (slot + 1) * ID_BYTES);
      yield { partition: place - 1, holdId, untilMs: this.untilMs(slot) };
    }
  }
}

/** Milliseconds of a clock that all threads of the process share, and that never goes back. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Renews the leases of all tables. Returns how many partitions did not answer. */
export function renewTables(
  redis: RedisClient,
  { leaseMs, renewedMs }: Pick<LeaseThreadStart, 'leaseMs' | 'renewedMs'>,
  tables: Iterable<LeaseTable>,
): Promise<number> {
  const now = monotonicMs();
  return renewAll(redis, leaseMs, byPartition(tables), (partition) => {
    renewedMs[partition] = now;
  });
}

/** The number of parts of a lease. */
const PARTS = 12;
/** Leases are renewed once in this many parts. */
const RENEWED_EVERY = 4;

/**
 * Renews every third of a lease. A failed renewal is retried every twelfth, so that no lease ends if two short outages of Redis each fail
 * one renewal.
 * @param renew returns how many partitions did not answer, and does not throw
 * @returns stops it
 */
export function keepRenewing(leaseMs: number, renew: () => Promise<number>): () => void {
  let parts = 0;
  let hasFailed = false;
  let isUnderWay = false;
  const timer = setInterval(async () => {
    parts++;
    if (isUnderWay || (parts < RENEWED_EVERY && !hasFailed)) return;
    parts = 0;
    isUnderWay = true;
    hasFailed = (await renew()) > 0;
    isUnderWay = false;
  }, leaseMs / PARTS);
  return () => clearInterval(timer);
}

/** The holds of all tables that are still renewed, by partition. */
export function byPartition(tables: Iterable<LeaseTable>): Map<number, string[]> {
  const now = monotonicMs();
  const found = new Map<number, string[]>();
  for (const table of tables) {
    for (const { partition, holdId, untilMs } of table.held()) {
      if (untilMs < now) continue;
      const holds = found.get(partition);
      if (holds) holds.push(holdId);
      else found.set(partition, [holdId]);
    }
  }
  return found;
}
