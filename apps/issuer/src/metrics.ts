import type { RedisClient } from '@presign/limits';
import { readMemoryShare, readUsageStreams } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { archiveParts } from '@presign/schema/ledger-tables';
import { pendingChanges } from '@presign/schema/tables';
import { webhookDeliveries } from '@presign/schema/webhook-tables';
import type { Database } from '@presign/service/database';
import { type Meter, type Works, watchWorks } from '@presign/service/metrics';
import { sql } from 'drizzle-orm';
import { inTime } from './middleware/in-time.ts';

/** Bounds of buckets, in seconds. */
const REQUEST = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The issuer's own figures, as docs/reference/metrics.md lists them. */
export type IssuerMetrics = {
  /** @param route with the names of parameters instead of their values; undefined: no route */
  readonly requestEnded: (route: string | undefined, status: number, ms: number) => void;
  /** Counts partitions whose data Redis had lost. */
  readonly epochsChanged: (partitions: number) => void;
  /** Counts an attempt to deliver a webhook. */
  readonly webhookTried: (outcome: 'delivered' | 'failed') => void;
  readonly work: Works<IssuerWork>;
};

/** The work of an issuer that no request causes. */
export type IssuerWork =
  | 'alerts'
  | 'api_keys'
  | 'audit'
  | 'budget_windows'
  | 'call_hours'
  | 'changes'
  | 'console_sessions'
  | 'credentials'
  | 'idempotency_keys'
  | 'ledger'
  | 'old_budget_windows'
  | 'old_calls'
  | 'old_changes'
  | 'old_deliveries'
  | 'old_firings'
  | 'old_hours'
  | 'old_refused_calls'
  | 'old_sums'
  | 'old_urls'
  | 'refused_calls'
  | 'refused_days'
  | 'webhooks';

/** Makes the instruments once. */
export function issuerMetrics(meter: Meter): IssuerMetrics {
  const requests = meter.createCounter('presign_requests_total', {
    description: 'Requests that the issuer answered',
    unit: 'requests',
  });
  const seconds = meter.createHistogram('presign_request_seconds', {
    description: 'How long the issuer took to answer',
    unit: 'seconds',
    advice: { explicitBucketBoundaries: REQUEST },
  });
  const epochs = meter.createCounter('presign_epoch_changes_total', {
    description: 'Partitions that were opened again, because Redis had restarted or lost data',
    unit: 'partitions',
  });
  const tries = meter.createCounter('presign_webhook_tries_total', {
    description: 'Attempts to deliver a webhook',
    unit: 'attempts',
  });
  // An alert needs a value before the first event.
  epochs.add(0);
  for (const outcome of ['delivered', 'failed']) tries.add(0, { outcome });
  return {
    requestEnded: (route = 'none', status, ms) => {
      requests.add(1, { route, status: String(status) });
      seconds.record(Math.max(0, ms) / 1_000);
    },
    epochsChanged: (partitions) => epochs.add(partitions),
    webhookTried: (outcome) => tries.add(1, { outcome }),
    work: watchWorks(meter, 'issuer'),
  };
}

/** The minimum time between two queries of the stores, however many scrapes arrive. */
const FRESH_MS = 5_000;
/** A store that takes longer has no figures in this scrape. */
const ASKING_MS = 2_000;

type Stores = { readonly redis: RedisClient; readonly db: Database; readonly now: () => number };

/** Exposes the waiting work. All issuers of an installation show the same figures. */
export function watchBacklogs(meter: Meter, { redis, db, now }: Stores): void {
  const gauge = (name: string, description: string, unit: string) =>
    meter.createObservableGauge(name, { description, unit });
  const lag = gauge(
    'presign_ledger_lag_seconds',
    'How long the oldest settled call has waited for the ledger',
    'seconds',
  );
  const entries = gauge('presign_usage_stream_entries', 'Settled calls that wait for the ledger', 'calls');
  const fullest = gauge(
    'presign_fullest_partition_entries',
    'Settled calls that wait in the fullest partition',
    'calls',
  );
  const deliveries = gauge('presign_webhook_backlog', 'Webhook deliveries that wait', 'deliveries');
  const late = gauge('presign_webhook_lag_seconds', 'How long the oldest delivery has been due', 'seconds');
  const changes = gauge(
    'presign_pending_changes',
    'Revocations and changed keys that Redis has not taken over yet',
    'changes',
  );
  const archive = gauge(
    'presign_archive_lag_seconds',
    'How long the oldest deleted rows have waited for the archive',
    'seconds',
  );
  const memory = gauge(
    'presign_redis_memory_ratio',
    'The part of maxmemory that the fullest Redis uses',
    'ratio',
  );
  const shareOfMemory = remembered(() => inTime(readMemoryShare(redis), ASKING_MS), now);
  const inRedis = remembered(() => inTime(readUsageStreams(redis, PARTITIONS), ASKING_MS), now);
  const inPostgres = remembered(() => inTime(readWaiting(db), ASKING_MS), now);
  meter.addBatchObservableCallback(
    async (result) => {
      const [streams, waiting, share] = await Promise.all([inRedis(), inPostgres(), shareOfMemory()]);
      if (share !== undefined) result.observe(memory, share);
      if (streams) {
        result.observe(lag, streams.oldestMs / 1_000);
        result.observe(entries, streams.entries);
        result.observe(fullest, streams.fullest);
      }
      if (waiting) {
        result.observe(deliveries, waiting.deliveries);
        result.observe(late, waiting.lateSeconds);
        result.observe(changes, waiting.changes);
        result.observe(archive, waiting.archiveSeconds);
      }
    },
    [lag, entries, fullest, memory, deliveries, late, changes, archive],
  );
}

/** The last answer, for as long as it is fresh. Undefined if it failed. */
function remembered<T>(ask: () => Promise<T | undefined>, now: () => number): () => Promise<T | undefined> {
  let askedAt = Number.NEGATIVE_INFINITY;
  let answer: Promise<T | undefined> = Promise.resolve(undefined);
  return () => {
    if (now() - askedAt >= FRESH_MS) {
      askedAt = now();
      answer = ask().catch(() => undefined);
    }
    return answer;
  };
}

/** Rows beyond this are not counted, so that a scrape stays cheap. */
const COUNTED_MAX = 100_000;

async function readWaiting(db: Database) {
  const pending = sql`(select next_try_at from ${webhookDeliveries} where status = 'pending' limit ${COUNTED_MAX}) as pending`;
  const undone = sql`(select from ${pendingChanges} where not done limit ${COUNTED_MAX}) as undone`;
  const unsent = sql`select min(created_at) from ${archiveParts}`;
  const [row] = await db
    .select({
      deliveries: sql`count(*)`.mapWith(Number),
      lateSeconds: sql`greatest(0, coalesce(extract(epoch from now() - min(next_try_at)), 0))`.mapWith(
        Number,
      ),
      changes: sql`(select count(*) from ${undone})`.mapWith(Number),
      archiveSeconds: sql`greatest(0, coalesce(extract(epoch from now() - (${unsent})), 0))`.mapWith(Number),
    })
    .from(pending);
  return row;
}
