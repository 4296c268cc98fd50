import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Refusal } from '@presign/schema';
import { Piscina } from 'piscina';
import type { Messages } from '../mcp/messages.ts';
import type { PlanReply, PlanWork, WorkerStart } from './worker.ts';

/**
 * Worker threads that read large bodies, because that can take seconds and calls of others must not wait for it. They start
 * with the first large body.
 */
export type BodyWorkers = {
  /** Reads and plans an LLM call. Its bytes move to the worker and cannot be read afterwards. */
  readonly plan: (grantId: string, work: PlanWork) => Promise<PlanReply>;
  /** Reads the messages of an MCP call. The bytes are copied, because they are sent as they are. */
  readonly readMessages: (
    grantId: string,
    bytes: Buffer,
  ) => Promise<{ messages: Messages } | { refusal: Refusal }>;
  readonly close: () => Promise<void>;
};

/** At least two, so that no URL can keep all of them busy. */
const THREADS = Math.max(2, Math.min(4, availableParallelism() - 1));

/** Bodies that wait for a worker. Their memory is reserved, so these only bound how long the last of them waits. */
const WAITING = 128;
const WAITING_PER_URL = 32;

/** A worker that is not done by then is stopped. The largest bodies take a few seconds on a slow machine. */
const OVERDUE_MS = 30_000;

/** The memory that a body of 16 MiB and a million parts needs in a worker, with a margin. */
const WORKER_HEAP = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 32 };

/** @param start what each worker is started with */
export function startBodyWorkers(start: WorkerStart): BodyWorkers {
  let pool: Piscina | undefined;
  const queue = fairQueue({ running: THREADS, waiting: WAITING, waitingPerOwner: WAITING_PER_URL });
  const run = <T>(name: string, task: unknown, bytes?: Uint8Array): Promise<T> => {
    pool ??= createPool(start);
    const transferList = bytes ? [bytes.buffer as ArrayBuffer] : [];
    return pool.run(task, { name, transferList, signal: AbortSignal.timeout(OVERDUE_MS) });
  };
  const inTurn = async <T extends object>(grantId: string, task: () => Promise<T>) => {
    const turn = queue.run(grantId, task);
    if (!turn) return { refusal: OVERLOADED };
    return turn.catch(() => ({ refusal: TOO_MUCH_WORK }));
  };
  return {
    plan: (grantId, work) => inTurn(grantId, () => run<PlanReply>('plan', work, work.bytes)),
    readMessages: (grantId, bytes) =>
      inTurn(grantId, () => run<{ messages: Messages } | { refusal: Refusal }>('messages', bytes)),
    close: async () => pool?.destroy(),
  };
}

const OVERLOADED: Refusal = {
  code: 'overloaded',
  message: 'Too many large bodies are waiting to be read here. Try again.',
  retryAfterSeconds: 1,
};

/** The worker was overdue, or had no memory left, and was stopped. */
const TOO_MUCH_WORK: Refusal = {
  code: 'body_too_large',
  message: 'This body takes too much time or memory to read. Send a smaller one.',
};

function createPool(workerData: WorkerStart): Piscina {
  // The bundle for containers has the worker in one file of this name.
  const file = import.meta.url.endsWith('.ts') ? './worker-from-source.mjs' : './body-worker.js';
  const pool = new Piscina({
    filename: fileURLToPath(new URL(file, import.meta.url)),
    workerData,
    minThreads: 0,
    maxThreads: THREADS,
    idleTimeout: Number.POSITIVE_INFINITY,
    // The queue stands before the pool, and gives it no more than it can run.
    maxQueue: THREADS,
    atomics: 'disabled',
    resourceLimits: WORKER_HEAP,
    execArgv: [],
  });
  // The task of a worker that fails is refused; without a listener the error would end the process.
  pool.on('error', () => {});
  return pool;
}

/** Runs tasks, a few at a time, so that no owner can keep the others waiting. */
export type FairQueue = {
  /**
   * Runs a task when it is its owner's turn.
   * @returns undefined, at once, when too many tasks are waiting
   */
  readonly run: <T>(owner: string, task: () => Promise<T>) => Promise<T> | undefined;
};

export type FairQueueLimits = {
  /** How many tasks may run at once, each of another owner. */
  readonly running: number;
  readonly waiting: number;
  readonly waitingPerOwner: number;
};

/** One task of an owner runs at a time. Owners take turns: who has just had one goes to the end. */
export function fairQueue(most: FairQueueLimits): FairQueue {
  /** In the order of their turns. */
  const waiting = new Map<string, (() => void)[]>();
  const running = new Set<string>();
  let count = 0;
  const goLast = (owner: string) => {
    const starts = waiting.get(owner);
    if (!starts) return;
    waiting.delete(owner);
    waiting.set(owner, starts);
  };
  const startNext = () => {
    if (running.size >= most.running) return;
    for (const [owner, starts] of waiting) {
      if (running.has(owner)) continue;
      const start = starts.shift();
      if (starts.length === 0) waiting.delete(owner);
      count--;
      running.add(owner);
      start?.();
      return;
    }
  };
  return {
    run: (owner, task) => {
      const own = waiting.get(owner) ?? [];
      if (count >= most.waiting || own.length >= most.waitingPerOwner) return undefined;
      const turn = new Promise<void>((resolve) => own.push(resolve));
      waiting.set(owner, own);
      count++;
      const ran = turn.then(task).finally(() => {
        running.delete(owner);
        goLast(owner);
        startNext();
      });
      startNext();
      return ran;
    },
  };
}
