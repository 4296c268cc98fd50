import { causeOf } from '@presign/schema';
import type { Logger } from 'pino';
import type { IssuerDeps } from './deps.ts';
import { eraseCredentials } from './grants/erase-credentials.ts';
import { applyDueChanges, forgetChanges } from './grants/pending-changes.ts';
import { forgetIdempotencyKeys } from './middleware/idempotency.ts';
import { forgetOldDeliveries } from './webhooks/delivery-queue.ts';

/** Work that no request does. Any number of issuers may do it at once. */
type Task = {
  /** The log line of a failure. */
  readonly problem: string;
  readonly everyMs: number;
  /** Does a part of the work, and returns whether there may be more. */
  readonly run: () => Promise<boolean>;
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const tasks = (deps: IssuerDeps): readonly Task[] => [
  { problem: 'changes wait for Redis', everyMs: SECOND_MS, run: () => applyDueChanges(deps) },
  { problem: 'applied changes are not deleted', everyMs: MINUTE_MS, run: () => forgetChanges(deps.db) },
  {
    problem: 'credentials of ended grants are not erased',
    everyMs: 10 * MINUTE_MS,
    run: eraseCredentials(deps.db),
  },
  { problem: 'old deliveries are not deleted', everyMs: HOUR_MS, run: () => forgetOldDeliveries(deps.db) },
  {
    problem: 'old idempotency keys are not deleted',
    everyMs: HOUR_MS,
    run: () => forgetIdempotencyKeys(deps),
  },
];

/** The running sweep. */
export type Sweep = {
  /** Starts nothing more, and waits for what is under way. */
  readonly close: () => Promise<void>;
};

/** Runs every task again and again, and at once where there is more to do. */
export function startSweep(deps: IssuerDeps): Sweep {
  const running = tasks(deps).map((task) => repeat(task, deps.log));
  return { close: async () => void (await Promise.all(running.map((each) => each.close()))) };
}

/** Lets requests have the stores between two parts of a task. */
const BETWEEN_PARTS_MS = 20;

function repeat({ problem, everyMs, run }: Task, log: Logger): Sweep {
  let closed = false;
  let failing = false;
  let timer: NodeJS.Timeout | undefined;
  const round = async () => {
    let wait = everyMs;
    try {
      if (await run()) wait = BETWEEN_PARTS_MS;
      if (failing) log.info(`no longer: ${problem}`);
      failing = false;
    } catch (error) {
      if (!failing) log.error(causeOf(error), problem);
      failing = true;
    }
    if (!closed) timer = setTimeout(next, wait);
  };
  const next = () => {
    running = round();
  };
  let running = round();
  const close = async () => {
    closed = true;
    clearTimeout(timer);
    await running;
  };
  return { close };
}
