import { SpanKind, type Traces, unixMs } from '@presign/service/traces';

/** A request that was answered. */
type Answered = {
  readonly method: string;
  /** The path as the API has it, with the names of parameters in place of their values. Undefined: no route. */
  readonly path: string | undefined;
  readonly traceparent: string | undefined;
  /** `performance.now()` */
  readonly beganAt: number;
  readonly status: number;
  /** Why the request was refused. */
  readonly code: string | undefined;
  readonly requestId: string;
};

/** The spans of requests, one for each. */
export type RequestTraces = { readonly requestEnded: (request: Answered) => void };

/** Creates the span of a request after its end, so that nothing is stored while it runs. */
export const requestTraces = (traces: Traces): RequestTraces => ({
  requestEnded: ({ method: sent, path, traceparent, beganAt, status, code, requestId }) => {
    const endedAt = performance.now();
    const method = METHODS.has(sent) ? sent : '_OTHER';
    const span = traces.begin(
      path === undefined ? method : `${method} ${path}`,
      SpanKind.SERVER,
      traceparent,
      beganAt,
      {
        'http.request.method': method,
        ...(path !== undefined && { 'http.route': path }),
        'http.response.status_code': status,
        'presign.request_id': requestId,
        ...(code !== undefined && { 'error.type': code }),
      },
    );
    // A refusal is no error of the service (HTTP conventions, "Status").
    if (status >= 500) span.setStatus({ code: FAILED });
    span.end(unixMs(endedAt));
  },
});

/** `SpanStatusCode.ERROR` of OpenTelemetry. */
const FAILED = 2;

/** All other methods share one name (HTTP conventions, `http.request.method`). */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
