import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { AggregationTemporality, InstrumentType, MeterProvider } from '@opentelemetry/sdk-metrics';

/** The metrics of a process. */
export type Metrics = {
  readonly meter: Meter;
  /** Where `/metrics` is; undefined when metrics are off. */
  readonly port: number | undefined;
  readonly close: () => Promise<void>;
};

/**
 * The SDK repeats the last value of a cumulative gauge that a callback no longer observes. Then a store that does not answer has the
 * figures of before its outage, and no alert sees it.
 */
class Exporter extends PrometheusExporter {
  override selectAggregationTemporality(instrument: InstrumentType): AggregationTemporality {
    const isGauge = instrument === InstrumentType.OBSERVABLE_GAUGE;
    return isGauge ? AggregationTemporality.DELTA : super.selectAggregationTemporality(instrument);
  }
}

/** Listens for Prometheus. Imported only where metrics are on, because the SDK takes time to load. */
export async function servePrometheus(host: string, port: number): Promise<Metrics> {
  const exporter = new Exporter({
    // Its own server takes no port 0, and its port from further variables.
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  });
  const provider = new MeterProvider({ readers: [exporter] });
  const meter = provider.getMeter('presign');
  const eventLoop = watchEventLoop(meter);
  const server = createServer((request, response) => {
    const refused = refusedStatus(request);
    if (refused !== undefined) return void response.writeHead(refused).end();
    exporter.getMetricsRequestHandler(request, response);
    // Prometheus 3 wants the version of the format.
    response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  return {
    meter,
    port: (server.address() as AddressInfo).port,
    close: async () => {
      eventLoop.close();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await provider.shutdown();
    },
  };
}

function refusedStatus({ method, url = '' }: IncomingMessage): ServerResponse['statusCode'] | undefined {
  if (url.split('?', 1)[0] !== '/metrics') return 404;
  return method === 'GET' || method === 'HEAD' ? undefined : 405;
}

const RESOLUTION_MS = 20;
const WINDOW_MS = 10_000;
const PERCENTILES = [50, 99, 100];

/** Exposes the delays of the last full ten seconds, so that they do not depend on who scrapes, and how often. */
function watchEventLoop(meter: Meter): { readonly close: () => void } {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  // The histogram has the whole time between two turns of its timer.
  const read = () =>
    PERCENTILES.map(
      (percentile) =>
        [percentile, Math.max(0, delays.percentile(percentile) / 1e9 - RESOLUTION_MS / 1e3)] as const,
    );
  let latest = read();
  const timer = setInterval(() => {
    latest = read();
    delays.reset();
  }, WINDOW_MS).unref();
  meter
    .createObservableGauge('presign_event_loop_delay_seconds', {
      description: 'How late the event loop of the process was in the last ten seconds',
      unit: 'seconds',
    })
    .addCallback((result) => {
      for (const [percentile, seconds] of latest) result.observe(seconds, { percentile: String(percentile) });
    });
  return {
    close: () => {
      clearInterval(timer);
      delays.disable();
    },
  };
}
