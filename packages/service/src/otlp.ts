import type { Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';

/** Where traces go. */
export type TraceExport = {
  /** The address of a collector, without `/v1/traces`. */
  readonly endpoint: string;
  readonly service: string;
  /** The share of calls that are traced, from 0 to 1. */
  readonly ratio: number;
  /** How long a span waits for others, in ms; the default of the SDK is 5 seconds. */
  readonly delayMs?: number;
};

/**
 * Sends spans over OTLP, in the background and in batches. Spans beyond the queue are dropped. Imported only where traces are on,
 * because the SDK takes time to load.
 */
export function exportTraces({ endpoint, service, ratio, delayMs }: TraceExport): {
  readonly tracer: Tracer;
  readonly close: () => Promise<void>;
} {
  const byRatio = new TraceIdRatioBasedSampler(ratio);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service }),
    // Any holder can send a `traceparent` that asks for a trace. The ratio decides for it as for every other call.
    sampler: new ParentBasedSampler({ root: byRatio, remoteParentSampled: byRatio }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }),
        ...(delayMs !== undefined && { scheduledDelayMillis: delayMs }),
      }),
    ],
  });
  return { tracer: provider.getTracer('presign'), close: () => provider.shutdown() };
}
