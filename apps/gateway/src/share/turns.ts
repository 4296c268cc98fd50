import type { Refusal } from '@presign/schema';

/** Lets URLs take turns, so that endless bodies or answers of one URL do not delay others. All calls of a gateway share it. */
export type Turns = {
  readonly of: (grantId: string) => Turn;
  /** Refuses a call of a URL with very many waiting answers. Otherwise holders who disconnect could add answers endlessly. */
  readonly check: (grantId: string) => Refusal | undefined;
};

/** How much one URL may read before other URLs get the event loop. All its calls share this. */
export type Turn = {
  /** Subtracts this many bytes from the turn. Returns whether the turn continues. */
  readonly take: (bytes: number) => boolean;
  /** Calls back in a later turn. The callback must subtract its bytes at once. */
  readonly next: (resume: () => void) => void;
};

/** Reading this much takes less than a millisecond, even for the slowest JSON. */
const TURN_BYTES = 64 * 1024;
/** Between two turns, other calls have the event loop for at least this long. One URL reads at most 50 MB/s. */
const PAUSE_MS = 1;
/** Very short events take ten times as long as other bytes, so a pause lasts twice as long as the turns before it. */
const PAUSE_TIMES = 2;
/** The longest total time of consecutive turns of several URLs. */
const AT_ONCE_MS = 2;
/** Each waiting answer keeps a connection with its buffers. */
const WAITING_MAX = 64;

type Begun = { left: number; readonly waiting: (() => void)[] };

export function newTurns(): Turns {
  const begun = new Map<string, Begun>();
  const nextTurns = () => {
    const beganMs = performance.now();
    for (const [grantId, turn] of [...begun]) {
      turn.left = Math.min(TURN_BYTES, turn.left + TURN_BYTES);
      while (turn.left > 0 && turn.waiting.length > 0) turn.waiting.shift()?.();
      // A URL that has had a turn goes last.
      begun.delete(grantId);
      if (turn.left < TURN_BYTES) begun.set(grantId, turn);
      if (performance.now() - beganMs > AT_ONCE_MS) break;
    }
    const tookMs = performance.now() - beganMs;
    if (begun.size > 0) setTimeout(nextTurns, Math.max(PAUSE_MS, PAUSE_TIMES * tookMs));
  };
  const turnOf = (grantId: string): Begun => {
    const known = begun.get(grantId);
    if (known) return known;
    if (begun.size === 0) setTimeout(nextTurns, PAUSE_MS);
    const turn = { left: TURN_BYTES, waiting: [] };
    begun.set(grantId, turn);
    return turn;
  };
  return {
    of: (grantId) => ({
      take: (bytes) => {
        const turn = turnOf(grantId);
        turn.left -= bytes;
        return turn.left > 0;
      },
      next: (resume) => void turnOf(grantId).waiting.push(resume),
    }),
    check: (grantId) => ((begun.get(grantId)?.waiting.length ?? 0) >= WAITING_MAX ? OVERLOADED : undefined),
  };
}

const OVERLOADED: Refusal = {
  code: 'overloaded',
  message: 'Too many large answers of this URL are still being read here. Try again.',
  retryAfterSeconds: 1,
};

type FairQueueLimits = {
  /** How many tasks may run at once, each for a different owner. */
  readonly running: number;
  readonly waiting: number;
  readonly waitingPerOwner: number;
};

/**
 * Runs tasks, a few at a time and one of each owner, so that no owner can keep the others waiting. Owners take turns: the one that has just
 * had a turn goes last. `run` returns undefined immediately if too many tasks are waiting.
 */
export function fairQueue(most: FairQueueLimits) {
  /** Owners in the order of their turns. */
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
    run: <T>(owner: string, task: () => Promise<T>): Promise<T> | undefined => {
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
