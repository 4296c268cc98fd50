import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { guardedDispatcher } from '@presign/outbound';
import { keepPrices, NO_SOURCE, type PriceSchedule } from '@presign/providers/keep-prices';
import { causeOf } from '@presign/schema';
import type { Logger } from 'pino';
import { createIssuer } from './app.ts';
import type { IssuerDeps } from './deps.ts';
import { applyDueChanges, eraseCredentials, forgetChanges } from './grants/pending-changes.ts';
import { type Ledger, startLedger } from './ledger/drain-ledger.ts';
import { forgetIdempotencyKeys } from './middleware/idempotency.ts';
import { startWebhooks } from './webhooks/deliver.ts';
import { forgetOldDeliveries } from './webhooks/delivery-queue.ts';

/** A listening issuer. */
export type RunningIssuer = {
  readonly port: number;
  readonly ledger: Ledger;
  /** Stops accepting, answers what is under way, drains the ledger, ends deliveries. Stores stay open. */
  readonly close: () => Promise<void>;
};

export type IssuerOptions = Omit<IssuerDeps, 'prices'> & {
  /** The operator's price list. Undefined: the bundled one is the only one. */
  readonly priceSource?: PriceSchedule;
};

/** Listens, drains the ledger, delivers webhooks and sweeps. Port 0 takes a free one. */
export async function startIssuer(
  options: IssuerOptions,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningIssuer> {
  const { priceSource = NO_SOURCE } = options;
  const dispatcher = guardedDispatcher(options.allowPrivateUpstreams);
  const prices = await keepPrices({ ...options, ...priceSource, dispatcher });
  const deps: IssuerDeps = { ...options, prices };
  const app = createIssuer(deps);
  const { server, port } = await new Promise<{ server: ReturnType<typeof serve>; port: number }>(
    (resolve, reject) => {
      const server = serve({ fetch: app.fetch, hostname: listen.host, port: listen.port }, (info) => {
        server.off('error', reject);
        resolve({ server, port: info.port });
      });
      server.once('error', reject);
    },
  );
  const ledger = startLedger(deps);
  const webhooks = startWebhooks(deps);
  const sweep = startSweep(deps);
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    // A connection kept alive is idle only once its last answer has left.
    const idle = setInterval(() => (server as Server).closeIdleConnections(), 50);
    await closed;
    clearInterval(idle);
    await sweep.close();
    await ledger.close();
    await webhooks.close();
    await prices.close();
    await dispatcher.destroy();
  };
  return { port, ledger, close };
}

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
type Sweep = {
  /** Starts nothing more, and waits for what is under way. */
  readonly close: () => Promise<void>;
};

/** Runs every task again and again, and at once where there is more to do. */
function startSweep(deps: IssuerDeps): Sweep {
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
