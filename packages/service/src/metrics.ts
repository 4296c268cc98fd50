import { setTimeout as sleep } from 'node:timers/promises';
import { createNoopMeter, type Meter } from '@opentelemetry/api';
import type { Readiness } from './await-store.ts';
import type { Metrics } from './prometheus.ts';

export type { Meter, Metrics };

/** Counts nothing. */
export const NO_METER: Meter = createNoopMeter();

/**
 * Serves `GET /metrics` as Prometheus reads it. Without a port, metrics are off, and the SDK is not loaded. Port 0 takes a
 * free port.
 */
export async function serveMetrics(host: string, port: number | undefined): Promise<Metrics> {
  if (port === undefined) return { meter: NO_METER, port, close: async () => {} };
  const { servePrometheus } = await import('./prometheus.ts');
  return servePrometheus(host, port);
}

/** The parts of a service that `watchService` reads. */
type Service = {
  readonly name: 'issuer' | 'gateway';
  readonly clock: { readonly offsetMs: () => number | undefined };
  readonly prices: {
    readonly status: () => {
      readonly lists: readonly { readonly source: string; readonly date: string }[];
      readonly problem: string | undefined;
    };
  };
  readonly knowledge: {
    readonly status: () => {
      readonly source: string;
      readonly id: string;
      readonly date: string;
      readonly problem: string | undefined;
    };
  };
  /** Unix milliseconds. */
  readonly now: () => number;
};

/** A store that takes longer counts as one that does not answer: a scrape has to end. */
const ASKING_MS = 3_000;

/**
 * Exposes what `/readyz` says. A load balancer reads `/readyz` too, and tells no operator.
 * @param readiness never throws
 */
export function watchReadiness(
  meter: Meter,
  service: Service['name'],
  readiness: () => Promise<Readiness>,
): void {
  const flag = (name: string, description: string) =>
    meter.createObservableGauge(name, { description, unit: 'flag' });
  const ready = flag('presign_ready', '1 while /readyz of the service says ready, else 0');
  const problem = flag(
    'presign_store_problem',
    '1 while /readyz of the service names a problem of the store, else 0',
  );
  meter.addBatchObservableCallback(
    async (result) => {
      const report = await Promise.race([readiness(), sleep(ASKING_MS, undefined, { ref: false })]);
      result.observe(ready, report?.status === 'ready' ? 1 : 0, { service });
      for (const store of ['postgres', 'redis'] as const)
        if (report)
          result.observe(problem, report.problems.some((each) => each.store === store) ? 1 : 0, {
            service,
            store,
          });
    },
    [ready, problem],
  );
}

/** Work that a service repeats by itself, without a request. */
export type Work = {
  /** A round begins. */
  readonly begins: () => void;
  /** A round has done all that it found. */
  readonly succeeds: () => void;
};

/** Work by its name in docs/reference/metrics.md. */
export type Works<Name extends string> = (name: Name) => Work;

/** Shows nothing. */
export const NO_WORK: Work = { begins: () => {}, succeeds: () => {} };

/** Exposes for how long each work has not succeeded, whether it fails or hangs. Otherwise only a log line says it. */
export function watchWorks<Name extends string>(meter: Meter, service: Service['name']): Works<Name> {
  const begun = new Map<Name, number | undefined>();
  meter
    .createObservableGauge('presign_work_failing_seconds', {
      description: 'How long the service has tried a work of its own without success',
      unit: 'seconds',
    })
    .addCallback((result) => {
      for (const [work, sinceMs] of begun)
        result.observe(sinceMs === undefined ? 0 : (performance.now() - sinceMs) / 1_000, { service, work });
    });
  return (name) => {
    begun.set(name, undefined);
    return {
      begins: () => void begun.set(name, begun.get(name) ?? performance.now()),
      succeeds: () => void begun.set(name, undefined),
    };
  };
}

/** Exposes figures that both services have. Under `start` one process has both services. */
export function watchService(meter: Meter, { name: service, clock, prices, knowledge, now }: Service): void {
  const gauge = (name: string, description: string, unit: string) =>
    meter.createObservableGauge(name, { description, unit });
  gauge(
    'presign_clock_offset_seconds',
    'How far the clock of the service is ahead of that of Redis',
    'seconds',
  ).addCallback((result) => {
    const offsetMs = clock.offsetMs();
    if (offsetMs !== undefined) result.observe(offsetMs / 1_000, { service });
  });
  gauge(
    'presign_price_list_age_seconds',
    'Time since the date of a price list in use',
    'seconds',
  ).addCallback((result) => {
    for (const { source, date } of prices.status().lists)
      result.observe((now() - Date.parse(date)) / 1_000, { service, source });
  });
  gauge(
    'presign_price_list_problem',
    '1 while the price list cannot be read again, else 0',
    'flag',
  ).addCallback((result) => result.observe(prices.status().problem === undefined ? 0 : 1, { service }));
  gauge(
    'presign_knowledge_age_seconds',
    'Time since the date of the knowledge in use',
    'seconds',
  ).addCallback((result) => {
    const { source, id, date } = knowledge.status();
    result.observe((now() - Date.parse(date)) / 1_000, { service, source, version: id });
  });
  gauge(
    'presign_knowledge_problem',
    '1 while the knowledge file cannot be read again, else 0',
    'flag',
  ).addCallback((result) => result.observe(knowledge.status().problem === undefined ? 0 : 1, { service }));
}
