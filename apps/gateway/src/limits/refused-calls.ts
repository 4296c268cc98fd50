import { addRefused, type RedisClient } from '@presign/limits';
import type { ErrorCode, RefusedCall, RefusedEntry } from '@presign/schema';
import { NO_WORK, type Work } from '@presign/service/metrics';

/** A call that was not admitted. */
export type Refused = {
  readonly grant: { readonly id: string; readonly partition: number };
  /** Undefined: its grant is not in memory. */
  readonly accountId: string | undefined;
  readonly code: ErrorCode;
  /** The field, kind or model that it was refused for. */
  readonly name: string | undefined;
  /** Returns the other fields. It is called only for the few calls that are kept. */
  readonly describe: () => Omit<RefusedCall, 'ago'>;
};

/** Reports refused calls to issuers. The records are for people, and no decision depends on them. */
export type RefusedCalls = {
  /** Counts a refused call, and keeps it if it is one of the first of its grant and code in this hour. It only writes to memory. */
  readonly add: (refused: Refused) => void;
  /** Sends the rest. */
  readonly close: () => Promise<void>;
};

const EVERY_MS = 1_000;
const HOUR_MS = 3_600_000;
/** The number of calls that are kept for a grant and code in an hour. */
const FIRST = 10;
/** The most grants and codes with a count of kept calls. Beyond it, the counts start again. */
const PAIRS_MAX = 20_000;
/** The most sums that wait. Calls that would need a further sum are not counted. */
const SUMS_MAX = 10_000;
/** The most names of a grant between two sends. Calls with further names count as `other`. */
const NAMES_MAX = 50;
/** The most kept calls of an account between two sends, so that one account leaves room for others. */
const ACCOUNT_MAX = 100;
/** Kept calls that wait. */
const KEPT_MAX = 1_000;
/** The number of sums that one script adds. */
const BATCH = 100;

type Kept = Omit<RefusedCall, 'ago'> & { readonly atMs: number };
/** Calls of one grant, code and name. */
type Sum = Pick<RefusedEntry, 'grt' | 'cod' | 'nam'> & { partition: number; n: number; kept: Kept[] };

/**
 * Adds up refused calls, and sends them to Redis once a second in the background. Sums that Redis does not accept wait. A kill -9 loses
 * those of the last second.
 */
export function sendRefused(redis: RedisClient, now: () => number, work: Work = NO_WORK): RefusedCalls {
  const memory = new RefusedMemory();
  let timer: NodeJS.Timeout | undefined;
  let sending = Promise.resolve();
  const send = async () => {
    work.begins();
    const failed = await sendSums(redis, memory.take(), now());
    for (const sum of failed) memory.putBack(sum);
    if (failed.length === 0) work.succeeds();
  };
  // Sends one after another, so that waiting sums are in memory only once while Redis hangs.
  const sendNext = () => {
    sending = send().finally(() => {
      timer = undefined;
      if (memory.isWaiting) later();
    });
  };
  const later = () => {
    timer ??= setTimeout(sendNext, EVERY_MS).unref();
  };
  return {
    add: (refused) => {
      memory.add(refused, now());
      later();
    },
    close: async () => {
      await sending;
      clearTimeout(timer);
      await send();
    },
  };
}

/** Sends sums to the streams of their partitions. Returns those that Redis has not taken. */
async function sendSums(redis: RedisClient, sums: readonly Sum[], nowMs: number): Promise<Sum[]> {
  const batches = new Map<number, Sum[]>();
  for (const sum of sums) {
    const batch = batches.get(sum.partition);
    if (batch) batch.push(sum);
    else batches.set(sum.partition, [sum]);
  }
  const sent = await Promise.all(
    Array.from(batches, async ([partition, all]) => {
      for (let i = 0; i < all.length; i += BATCH) {
        const entries = all.slice(i, i + BATCH).map((sum) => textOf(sum, nowMs));
        const isTaken = await addRefused(redis, partition, entries).catch(() => false);
        if (!isTaken) return all.slice(i);
      }
      return [];
    }),
  );
  return sent.flat();
}

function textOf({ grt, cod, nam, n, kept }: Sum, nowMs: number): string {
  const calls = kept.map(({ atMs, ...call }) => ({ ...call, ago: Math.max(0, Math.round(nowMs - atMs)) }));
  return JSON.stringify({ grt, cod, nam, n, kept: calls } satisfies Record<keyof RefusedEntry, unknown>);
}

/** Sums that wait to be sent, and the number of calls that were kept. Its size is bounded, whatever holders do. */
class RefusedMemory {
  #waiting = new Map<string, Sum>();
  #keptWaiting = 0;
  #names = new Map<string, number>();
  #keptOfAccount = new Map<string | undefined, number>();
  #keptOfPair = new Map<string, number>();
  #hour = 0;

  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  add(refused: Refused, nowMs: number): void {
    const sum = this.#sumOf(refused);
    if (!sum) return;
    sum.n += 1;
    if (!this.#mayKeep(refused, nowMs)) return;
    sum.kept.push({ ...refused.describe(), atMs: nowMs });
    this.#keptWaiting += 1;
  }

  take(): Sum[] {
    const all = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#names = new Map();
    this.#keptOfAccount = new Map();
    this.#keptWaiting = 0;
    return all;
  }

  putBack(sum: Sum): void {
    const key = keyOf(sum.grt, sum.cod, sum.nam);
    const newer = this.#waiting.get(key);
    if (!newer && this.#waiting.size >= SUMS_MAX) return;
    const room = Math.max(0, KEPT_MAX - this.#keptWaiting);
    const kept = sum.kept.slice(0, room);
    this.#keptWaiting += kept.length;
    this.#waiting.set(key, {
      ...sum,
      n: sum.n + (newer?.n ?? 0),
      kept: [...kept, ...(newer?.kept ?? [])],
    });
  }

  #sumOf({ grant, code, name }: Refused): Sum | undefined {
    const known = this.#waiting.get(keyOf(grant.id, code, name));
    if (known) return known;
    const names = this.#names.get(grant.id) ?? 0;
    const nam = name === undefined || names < NAMES_MAX ? name : 'other';
    const key = keyOf(grant.id, code, nam);
    const other = this.#waiting.get(key);
    if (other || this.#waiting.size >= SUMS_MAX) return other;
    if (nam !== undefined) this.#names.set(grant.id, names + 1);
    const sum = { grt: grant.id, cod: code, nam, partition: grant.partition, n: 0, kept: [] };
    this.#waiting.set(key, sum);
    return sum;
  }

  #mayKeep({ grant, code, accountId }: Refused, nowMs: number): boolean {
    const hour = Math.floor(nowMs / HOUR_MS);
    if (hour !== this.#hour || this.#keptOfPair.size >= PAIRS_MAX) this.#keptOfPair.clear();
    this.#hour = hour;
    const pair = keyOf(grant.id, code);
    const ofPair = this.#keptOfPair.get(pair) ?? 0;
    const ofAccount = this.#keptOfAccount.get(accountId) ?? 0;
    if (ofPair >= FIRST || ofAccount >= ACCOUNT_MAX || this.#keptWaiting >= KEPT_MAX) return false;
    this.#keptOfPair.set(pair, ofPair + 1);
    this.#keptOfAccount.set(accountId, ofAccount + 1);
    return true;
  }
}

const keyOf = (grantId: string, code: string, name = ''): string => `${grantId} ${code} ${name}`;
