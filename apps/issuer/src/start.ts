import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { seeder, watchClock } from '@presign/limits';
import { guardedDispatcher } from '@presign/outbound';
import { keepLists, type ListSources } from '@presign/providers/keep-lists';
import { causeOf } from '@presign/service';
import { type Meter, NO_METER, type Work, watchReadiness, watchService } from '@presign/service/metrics';
import { AT_ONCE, drainServer, KEEP_ALIVE_MS, type Shutdown } from '@presign/service/start';
import type { Logger } from 'pino';
import { checkAlerts, forgetFirings } from './alerts/check-alerts.ts';
import { createIssuer } from './app.ts';
import { extendCalendars, forgetWindows } from './budgets/calendars.ts';
import { forgetSessions } from './console/sign-in.ts';
import type { IssuerDeps } from './deps.ts';
import { forgetAudit } from './events/audit-log.ts';
import { eraseCredentials } from './grants/erase-credentials.ts';
import { applyDueChanges, forgetChanges } from './grants/pending-changes.ts';
import { goOnRevoking } from './grants/revoke-issued.ts';
import type { ArchiveStore } from './ledger/archive.ts';
import { archiveStoreOf } from './ledger/archive-store.ts';
import { type Ledger, startLedger } from './ledger/drain-ledger.ts';
import { recordRefused } from './ledger/record-refused.ts';
import { makeDaysAhead } from './ledger/refused-days.ts';
import {
  forgetCalls,
  forgetGrants,
  forgetHours,
  forgetRefused,
  forgetSums,
  type Retention,
} from './ledger/retention.ts';
import { type IssuerWork, issuerMetrics, watchBacklogs } from './metrics.ts';
import { forgetIdempotencyKeys } from './middleware/idempotency.ts';
import { askStores } from './readiness.ts';
import { mergeHours } from './usage/call-hours.ts';
import { startWebhooks } from './webhooks/deliver.ts';
import { forgetOldDeliveries } from './webhooks/delivery-queue.ts';

/** A listening issuer. */
export type RunningIssuer = {
  readonly port: number;
  readonly ledger: Ledger;
  /** Drains, answers running requests, empties the usage streams, and ends deliveries. Stores stay open. */
  readonly close: (shutdown?: Partial<Shutdown>) => Promise<void>;
};

export type IssuerOptions = Omit<
  IssuerDeps,
  'prices' | 'knowledge' | 'providers' | 'clock' | 'readiness' | 'draining' | 'metrics' | 'plantSeed'
> &
  ListSources & {
    /** The text of `PROVIDERS_FILE`. */
    readonly providersFile: string | undefined;
    /** Where figures are counted. Undefined: nowhere. */
    readonly meter?: Meter;
    /** How long an idle connection stays open. */
    readonly keepAliveMs?: number;
    /** How long rows are kept. Undefined: forever. */
    readonly retention?: Retention;
    /** How many days the audit log is kept. 0 or undefined: forever. */
    readonly auditDays?: number;
    /** Milliseconds between two looks for deliveries and changes that are due; 1,000 by default. */
    readonly idleMs?: number;
  };

/** Listens, drains the ledger, delivers webhooks and sweeps. Port 0 takes a free one. */
export async function startIssuer(
  options: IssuerOptions,
  listen: { readonly host: string; readonly port: number },
): Promise<RunningIssuer> {
  const { idleMs = SECOND_MS, meter = NO_METER } = options;
  const dispatcher = guardedDispatcher(options.allowPrivateUpstreams, options.proxy);
  const lists = await keepLists({ ...options, dispatcher });
  const { prices, knowledge } = lists;
  const clock = watchClock(options.redis, options.now, options.log);
  const draining = new AbortController();
  const metrics = issuerMetrics(meter);
  watchService(meter, { name: 'issuer', clock, prices, knowledge, now: options.now });
  watchBacklogs(meter, options);
  const readiness = askStores({ ...options, prices, knowledge, clock });
  watchReadiness(meter, 'issuer', readiness);
  const plantSeed = seeder(options.redis);
  const own = { plantSeed, prices, knowledge, clock, readiness, metrics, draining: draining.signal };
  const deps: IssuerDeps = { ...options, ...own, providers: knowledge.providers };
  const app = createIssuer(deps);
  const { server, port } = await new Promise<{ server: ReturnType<typeof serve>; port: number }>(
    (resolve, reject) => {
      const serverOptions = { keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS };
      const where = { hostname: listen.host, port: listen.port };
      const server = serve({ fetch: app.fetch, serverOptions, ...where }, (info) => {
        server.off('error', reject);
        resolve({ server, port: info.port });
      });
      server.once('error', reject);
    },
  );
  const ledger = startLedger(deps);
  const webhooks = startWebhooks(deps, idleMs);
  const { retention } = options;
  const store = retention?.archive && archiveStoreOf(retention.archive, options.proxy);
  const sweep = startSweep(deps, [...tasks(deps, idleMs), ...deletions(deps, options, store)]);
  const close = async (shutdown: Partial<Shutdown> = {}) => {
    const { drainMs, graceMs } = { ...AT_ONCE, ...shutdown };
    draining.abort();
    let grace: NodeJS.Timeout | undefined;
    await drainServer(server as Server, drainMs, () => {
      grace = setTimeout(() => (server as Server).closeAllConnections(), graceMs - drainMs);
    });
    clearTimeout(grace);
    clock.close();
    // An archive that does not answer must not delay the end.
    await Promise.all([sweep.close(), store?.close()]);
    await ledger.close();
    await webhooks.close();
    await lists.close();
    await dispatcher.destroy();
  };
  return { port, ledger, close };
}

/** A background job. Any number of issuers may run it at once. */
type Task = {
  /** Its name in the metrics. */
  readonly work: IssuerWork;
  /** The log line of a failure. */
  readonly problem: string;
  readonly everyMs: number;
  /** Does a part of the work, and returns whether there may be more. */
  readonly run: () => Promise<boolean>;
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const tasks = (deps: IssuerDeps, idleMs: number): readonly Task[] => [
  { work: 'changes', problem: 'changes wait for Redis', everyMs: idleMs, run: () => applyDueChanges(deps) },
  {
    work: 'api_keys',
    problem: 'URLs of an API key have yet to be revoked',
    everyMs: idleMs,
    run: () => goOnRevoking(deps),
  },
  { work: 'alerts', problem: 'an alert is not evaluated', everyMs: idleMs, run: checkAlerts(deps) },
  {
    work: 'old_firings',
    problem: 'old firings of alerts are not deleted',
    everyMs: HOUR_MS,
    run: () => forgetFirings(deps.db),
  },
  {
    work: 'refused_calls',
    problem: 'refused calls wait in Redis',
    everyMs: SECOND_MS,
    run: recordRefused(deps),
  },
  {
    work: 'refused_days',
    problem: 'the next days of refused calls have no partition',
    everyMs: HOUR_MS,
    run: makeDaysAhead(deps.db, deps.now),
  },
  {
    work: 'old_changes',
    problem: 'applied changes are not deleted',
    everyMs: MINUTE_MS,
    run: () => forgetChanges(deps.db),
  },
  {
    work: 'credentials',
    problem: 'credentials of ended grants are not erased',
    everyMs: 10 * MINUTE_MS,
    run: eraseCredentials(deps.db),
  },
  {
    work: 'call_hours',
    problem: 'sums by the hour are not merged',
    everyMs: 10 * MINUTE_MS,
    run: () => mergeHours(deps.db),
  },
  {
    work: 'old_deliveries',
    problem: 'old deliveries are not deleted',
    everyMs: HOUR_MS,
    run: () => forgetOldDeliveries(deps.db),
  },
  {
    work: 'budget_windows',
    problem: 'the next windows of budgets are not stored',
    everyMs: HOUR_MS,
    run: () => extendCalendars(deps.db, deps.now),
  },
  {
    work: 'console_sessions',
    problem: 'old sessions of the console are not deleted',
    everyMs: HOUR_MS,
    run: () => forgetSessions(deps),
  },
  {
    work: 'idempotency_keys',
    problem: 'old idempotency keys are not deleted',
    everyMs: HOUR_MS,
    run: () => forgetIdempotencyKeys(deps),
  },
];

/** Deletions of expired data. */
function deletions(
  issuer: IssuerDeps,
  { retention: kept, auditDays = 0 }: IssuerOptions,
  store: ArchiveStore | undefined,
): readonly Task[] {
  const deps = { ...issuer, store };
  const everyMs = HOUR_MS;
  const tasks: Task[] = [];
  if (auditDays > 0)
    tasks.push({
      work: 'audit',
      problem: 'old audit entries are not deleted',
      everyMs,
      run: forgetAudit(deps.db, auditDays),
    });
  if (kept)
    tasks.push({
      work: 'old_calls',
      problem: 'old calls are not summed and deleted',
      everyMs,
      run: forgetCalls(deps, kept),
    });
  if (kept && kept.ledgerDays > 0)
    tasks.push({
      work: 'old_hours',
      problem: 'old sums by the hour are not deleted',
      everyMs,
      run: forgetHours(deps, kept),
    });
  if (kept && kept.usageDays > 0)
    tasks.push({
      work: 'old_sums',
      problem: 'old sums by day are not deleted',
      everyMs,
      run: forgetSums(deps, kept),
    });
  if (kept && kept.refusedDays > 0)
    tasks.push({
      work: 'old_refused_calls',
      problem: 'old refused calls are not deleted',
      everyMs,
      run: forgetRefused(deps, kept),
    });
  if (kept && kept.grantDays > 0)
    tasks.push(
      { work: 'old_urls', problem: 'old URLs are not deleted', everyMs, run: forgetGrants(deps, kept) },
      {
        work: 'old_budget_windows',
        problem: 'old windows of budgets are not deleted',
        everyMs,
        run: () => forgetWindows(deps, kept.grantDays),
      },
    );
  return tasks;
}

/** The running sweep. */
type Sweep = {
  /** Starts no more work, and waits for running work. */
  readonly close: () => Promise<void>;
};

/** Runs every task repeatedly, and at once if there is more to do. */
function startSweep(deps: IssuerDeps, tasks: readonly Task[]): Sweep {
  const running = tasks.map((task) => repeat(task, deps.metrics.work(task.work), deps.log));
  return { close: async () => void (await Promise.all(running.map((each) => each.close()))) };
}

/** Leaves the stores to requests between two parts of a task. */
const BETWEEN_PARTS_MS = 20;
/** A store may have been down only for a moment. */
const AFTER_FAILURE_MS = 10_000;

function repeat({ problem, everyMs, run }: Task, work: Work, log: Logger): Sweep {
  let closed = false;
  let failing = false;
  let timer: NodeJS.Timeout | undefined;
  const round = async () => {
    let wait = everyMs;
    work.begins();
    try {
      if (await run()) wait = BETWEEN_PARTS_MS;
      work.succeeds();
      if (failing) log.info(`resolved: ${problem}`);
      failing = false;
    } catch (error) {
      if (!failing && !closed) log.error(causeOf(error), problem);
      failing = true;
      wait = Math.min(everyMs, AFTER_FAILURE_MS);
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
