import { addEnded, type RedisClient } from '@presign/limits';
import type { CallEnd } from '@presign/schema';
import type { Work } from '@presign/service/metrics';

/** How charged calls ended. MCP calls are recorded when they begin, so issuers add this to their rows. */
export type EndedCalls = {
  /** Records the end of a call, in memory only. */
  readonly add: (partition: number, end: Ended) => void;
  /** Sends the rest. */
  readonly close: () => Promise<void>;
};

type Ended = { readonly [F in keyof CallEnd]: CallEnd[F] | undefined };

const EVERY_MS = 1_000;
/** The most ends that wait. Further ends are not recorded. */
const WAITING_MAX = 20_000;
/** The most call ends that one stream entry carries. */
const BATCH = 100;

/**
 * Sends ends to Redis once a second in the background, after the charges of their calls. Ends that Redis does not accept wait. No decision
 * or charge depends on them, and a kill -9 loses those of the last second.
 */
export function sendEnded(redis: RedisClient, work: Work): EndedCalls {
  let waiting = new Map<number, Ended[]>();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending = Promise.resolve();
  const add = (partition: number, end: Ended) => {
    if (count >= WAITING_MAX) return;
    count += 1;
    const of = waiting.get(partition);
    if (of) of.push(end);
    else waiting.set(partition, [end]);
    later();
  };
  const send = async () => {
    work.begins();
    const taken = waiting;
    waiting = new Map();
    count = 0;
    const left = await Promise.all(Array.from(taken, ([at, ends]) => sendTo(redis, at, ends)));
    for (const { partition, ends } of left) for (const end of ends) add(partition, end);
    if (left.every(({ ends }) => ends.length === 0)) work.succeeds();
  };
  const sendNext = () => {
    sending = send().finally(() => {
      timer = undefined;
      if (count > 0) later();
    });
  };
  const later = () => {
    timer ??= setTimeout(sendNext, EVERY_MS).unref();
  };
  const close = async () => {
    await sending;
    clearTimeout(timer);
    await send();
    clearTimeout(timer);
  };
  return { add, close };
}

/** Returns the ends that Redis has not taken. */
async function sendTo(redis: RedisClient, partition: number, ends: readonly Ended[]) {
  for (let i = 0; i < ends.length; i += BATCH) {
    const isTaken = await addEnded(redis, partition, JSON.stringify(ends.slice(i, i + BATCH))).then(
      () => true,
      () => false,
    );
    if (!isTaken) return { partition, ends: ends.slice(i) };
  }
  return { partition, ends: [] };
}
