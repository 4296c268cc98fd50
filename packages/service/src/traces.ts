import { type Attributes, ROOT_CONTEXT, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import type { TraceExport } from './otlp.ts';

export type { Span };
export { SpanKind };

/** The traces of a process. */
export type Traces = {
  /**
   * Begins a span.
   * @param parent a span, or the `traceparent` of a request. A malformed one counts as none
   * @param beganAt `performance.now()`
   */
  readonly begin: (
    name: string,
    kind: SpanKind,
    parent: Span | string | undefined,
    beganAt: number,
    attributes: Attributes,
  ) => Span;
  /** Sends what is left, and ends. */
  readonly close: () => Promise<void>;
};

/** Starts traces. Without an endpoint they are off, and the SDK is not loaded. */
export async function startTraces(
  endpoint: string | undefined,
  to: Omit<TraceExport, 'endpoint'>,
): Promise<Traces | undefined> {
  if (endpoint === undefined) return undefined;
  const { exportTraces } = await import('./otlp.ts');
  const { tracer, close } = exportTraces({ ...to, endpoint });
  return { begin: (...span) => begin(tracer, ...span), close };
}

function begin(
  tracer: Tracer,
  ...[name, kind, parent, beganAt, attributes]: Parameters<Traces['begin']>
): Span {
  const context = typeof parent === 'string' ? readTraceparent(parent) : parent?.spanContext();
  const within = context ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT;
  return tracer.startSpan(name, { kind, attributes, startTime: unixMs(beganAt) }, within);
}

/** Unix milliseconds of a `performance.now()`. */
export const unixMs = (at: number): number => performance.timeOrigin + at;

/** Version 00, as W3C Trace Context §3.2 has it. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

function readTraceparent(text: string) {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(text) ?? [];
  if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

/** The `traceparent` with which a span continues elsewhere. */
export function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}
