import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import type { Knowledge, Prices, Provider } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { Piscina } from 'piscina';
import type { CountReply, LargeBodies, PlannedWith, PlanReply } from '../llm/large-body.ts';
import type { LargeMessages, Messages } from '../mcp/request/messages.ts';
import { movable } from '../share/body-memory.ts';
import { type QuotaOwner, type ReadQuota, workOfMs } from '../share/read-quota.ts';
import { fairQueue } from '../share/turns.ts';
import type { MessagesWork, Timed, WorkerStart } from './worker.ts';

/**
 * Worker threads that read large bodies, because that can take seconds and must not delay other calls. They start with the first large
 * body.
 */
export type BodyWorkers = LargeBodies & LargeMessages & { readonly close: () => Promise<void> };

/** At least two, so that no URL can keep all of them busy. */
const THREADS = Math.max(2, Math.min(4, availableParallelism() - 1));

/** The most bodies that wait for a worker. Their memory is reserved, so this only bounds the wait of the last one. */
const WAITING = 128;
const WAITING_PER_URL = 32;

/** A worker takes up to eight times a body's size, so bodies of this size are read one after the other. */
const HUGE_BYTES = 4 * 1024 * 1024;

/** A worker that is not done by then is stopped. The largest bodies take a few seconds on a slow machine. */
const OVERDUE_MS = 30_000;

/**
 * The heap of a worker: twice the measured need of the most expensive body. It must not run out, because V8 may then end the whole process.
 */
export const workerHeap = (maxBodyBytes: number) => ({
  maxOldGenerationSizeMb: 128 + 16 * Math.ceil(maxBodyBytes / 2 ** 20),
  maxYoungGenerationSizeMb: 24,
});

/**
 * Gives each thread the heap that its own limits allow. The command line may set a heap size for the main thread, and
 * this size would otherwise replace the limits of every later thread. The main thread keeps the size.
 */
export function limitHeapsByThread(): void {
  setFlagsFromString('--max-semi-space-size=0');
  // Threads that start later have `gc`.
  setFlagsFromString('--expose-gc');
}

/**
 * A worker keeps most of its heap until it ends. The next large body starts another in a few tenths of a second, and V8 compiles its code
 * again, which takes as long as reading a dozen megabytes. Agents send a body every few seconds.
 */
const IDLE_MS = 30_000;

const UNCOUNTED: Promise<Timed<undefined>> = Promise.resolve({ ms: 0, reply: undefined });

/** How body workers start. */
export type BodyWorkersStart = Pick<WorkerStart, 'providersFile'> & {
  readonly prices: { readonly current: () => Prices };
  readonly knowledge: {
    readonly current: () => Knowledge;
    readonly providers: ReadonlyMap<string, Provider>;
  };
  readonly maxBodyBytes: number;
};

/** @param quota charged for the working time of a worker, and not for its start */
export function startBodyWorkers(start: BodyWorkersStart, quota: ReadQuota): BodyWorkers {
  const pools = poolsByLists(start);
  const queue = fairQueue({ running: THREADS, waiting: WAITING, waitingPerOwner: WAITING_PER_URL });
  const huge = fairQueue({ running: 1, waiting: WAITING, waitingPerOwner: WAITING_PER_URL });
  const run = <T>(lists: Lists, name: string, task: unknown, bytes?: Uint8Array): Promise<Timed<T>> => {
    const pool = pools.of(lists);
    const transferList = bytes ? movable([bytes]) : [];
    return pool.run(task, { name, transferList, signal: AbortSignal.timeout(OVERDUE_MS) });
  };
  /** @param paid bytes of the body that the quota has already been charged */
  const inTurn = async <T>(
    grant: QuotaOwner,
    { size, paid }: { size: number; paid: number },
    task: () => Promise<Timed<T>>,
  ): Promise<T | { readonly refusal: Refusal }> => {
    // A body may take longer than its bytes suggest.
    const pay = (ms: number) => quota.take(grant, Math.max(0, workOfMs(ms) - paid));
    const paying = async () => {
      const began = performance.now();
      try {
        const { ms, reply } = await task();
        pay(ms);
        return reply;
      } catch {
        // The worker was stopped while it worked.
        pay(performance.now() - began);
        return { refusal: TOO_MUCH_WORK };
      }
    };
    const begin = async () => queue.run(grant.id, paying) ?? { refusal: OVERLOADED };
    return (size < HUGE_BYTES ? begin() : huge.run(grant.id, begin)) ?? { refusal: OVERLOADED };
  };
  return {
    plan: (grant, work, provider) =>
      inTurn(grant, { size: work.bytes.length, paid: work.bytes.length }, async () => {
        const lists = listsNow(start);
        const known = knownBy(start, lists, provider);
        const { ms, reply } = await run<PlanReply>(lists, 'plan', work, work.bytes);
        return { ms, reply: { ...reply, ...known } };
      }),
    count: async (grant, work, { prices, provider }) => {
      // The charge for reading covers only the plan, so the whole time of a count is charged to the quota.
      const reply = await inTurn(grant, { size: work.bytes.length, paid: 0 }, () => {
        const lists = listsNow(start);
        const known = knownBy(start, lists, provider);
        // A hold uses one version of the lists. If they have changed since the plan, the call is held by its bytes.
        const isSame = known.prices.id === prices.id && known.provider === provider;
        return isSame ? run<CountReply | undefined>(lists, 'count', work, work.bytes) : UNCOUNTED;
      });
      return reply && 'refusal' in reply ? undefined : reply;
    },
    countTexts: async (grant, work) => {
      const reply = await inTurn(grant, { size: work.bytes.length, paid: 0 }, () =>
        run<readonly number[]>(listsNow(start), 'countTexts', work, work.bytes),
      );
      return 'refusal' in reply ? undefined : reply;
    },
    readMessages: (grant, bytes, conditions) =>
      inTurn(grant, { size: bytes.length, paid: bytes.length }, () =>
        run<{ messages: Messages } | { refusal: Refusal }>(listsNow(start), 'messages', {
          bytes,
          grantId: grant.id,
          conditionsText: conditions && JSON.stringify(conditions),
        } satisfies MessagesWork),
      ),
    close: pools.close,
  };
}

/** The prices and the knowledge of a call and of its worker. */
type Lists = Pick<WorkerStart, 'prices' | 'knowledge'>;

const listsNow = ({ prices, knowledge }: BodyWorkersStart): Lists => ({
  prices: prices.current(),
  knowledge: knowledge.current(),
});

const knownBy = ({ knowledge }: BodyWorkersStart, { prices }: Lists, provider: Provider): PlannedWith => ({
  prices,
  provider: knowledge.providers.get(provider.id) ?? provider,
});

/**
 * One pool at a time: workers read their prices and their knowledge when they start, so other lists need other workers. A pool with earlier
 * lists finishes its tasks and ends.
 */
function poolsByLists(start: BodyWorkersStart) {
  let latest: { readonly id: string; readonly pool: Piscina } | undefined;
  const ending = new Set<Promise<void>>();
  const end = (pool: Piscina) => {
    const ended: Promise<void> = pool
      .close()
      .catch(() => pool.destroy())
      .finally(() => ending.delete(ended));
    ending.add(ended);
  };
  return {
    of: (lists: Lists): Piscina => {
      const id = `${lists.prices.id} ${lists.knowledge.id}`;
      if (latest?.id === id) return latest.pool;
      if (latest) end(latest.pool);
      latest = { id, pool: createPool(start, lists) };
      return latest.pool;
    },
    close: async () => {
      await Promise.all([latest?.pool.destroy(), ...ending]);
    },
  };
}

const OVERLOADED: Refusal = {
  code: 'overloaded',
  message: 'Too many large bodies are waiting to be read here. Try again.',
  retryAfterSeconds: 1,
};

/** The worker exceeded its time or its memory, and was stopped. */
const TOO_MUCH_WORK: Refusal = {
  code: 'body_too_large',
  message: 'This body takes too much time or memory to read. Send a smaller one.',
};

function createPool({ maxBodyBytes, providersFile }: BodyWorkersStart, lists: Lists): Piscina {
  // In the container bundle, the worker is a single file with this name.
  const file = import.meta.url.endsWith('.ts') ? './worker-from-source.mjs' : './body-worker.js';
  const pool = new Piscina({
    filename: fileURLToPath(new URL(file, import.meta.url)),
    workerData: { providersFile, ...lists } satisfies WorkerStart,
    minThreads: 0,
    maxThreads: THREADS,
    idleTimeout: IDLE_MS,
    // The queue is in front of the pool, and passes it only as much as it can run.
    maxQueue: THREADS,
    atomics: 'disabled',
    resourceLimits: workerHeap(maxBodyBytes),
    execArgv: [],
  });
  // The task of a worker that fails is refused; without a listener the error would end the process.
  pool.on('error', () => {});
  return pool;
}
