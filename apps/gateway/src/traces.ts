import type { Provider } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { type Span, SpanKind, type Traces, traceparentOf, unixMs } from '@presign/service/traces';
import type { CallReport } from './call-report.ts';
import type { FlatHeaders } from './http/headers.ts';

/** The spans of calls: one for the call, and one for each request to its upstream. */
export type CallTraces = {
  /**
   * Starts the span of a request to the upstream.
   * @param operation its name, which must not be text of the holder
   * @returns the headers that the request gets
   */
  readonly toUpstream: (call: CallReport, operation: Operation) => FlatHeaders;
  readonly callEnded: (call: CallReport, refusal: Refusal | undefined, status: number) => void;
};

type Operation = { readonly name: string; readonly attributes: Readonly<Record<string, string | number>> };

/** @param passOn whether upstreams get a `traceparent` */
export function callTraces(traces: Traces, passOn: boolean): CallTraces {
  const beginCall = (call: CallReport): Span =>
    traces.begin(
      `${call.method ?? '_OTHER'} ${ROUTES[call.kind]}`,
      SpanKind.SERVER,
      call.traceparent,
      call.beganAt,
      {
        'http.request.method': call.method ?? '_OTHER',
        'http.route': ROUTES[call.kind],
        'presign.request_id': call.requestId,
      },
    );
  return {
    toUpstream: (call, { name, attributes }) => {
      const own = call.spans?.own ?? beginCall(call);
      const sentAt = performance.now();
      // A request that is repeated with another access token has its own span.
      call.spans?.upstream.end();
      const upstream = traces.begin(name, SpanKind.CLIENT, own, sentAt, attributes);
      call.spans = { own, upstream, sentAt };
      return passOn ? ['traceparent', traceparentOf(upstream)] : [];
    },
    callEnded: (call, refusal, status) => {
      const { spans, end } = call;
      const own = spans?.own ?? beginCall(call);
      const error = end?.code ?? refusal?.code;
      if (spans) {
        endUpstream(spans.upstream, call, error);
        // A stream may end after its last byte from the upstream, while its holder still reads.
        spans.upstream.end(unixMs(Math.min(performance.now(), spans.sentAt + call.upstreamMs)));
      }
      own.setAttribute('http.response.status_code', status);
      if (error !== undefined) own.setAttribute('error.type', error);
      // A refusal is no error of the service (HTTP conventions, "Status").
      if (status >= 500) own.setStatus({ code: FAILED });
      own.end();
    },
  };
}

/** `SpanStatusCode.ERROR` of OpenTelemetry. */
const FAILED = 2;

const ROUTES: Readonly<Record<CallReport['kind'], string>> = {
  llm: '/llm/t/{token}/{path}',
  mcp: '/mcp/mcp',
  socket: '/llm/t/{token}/{path}',
  describe: '/llm/t/{token}',
  bundle: '/mcp/bundle/{token}',
  other: '',
};

function endUpstream(span: Span, { end, kind }: CallReport, error: string | undefined): void {
  const status = end?.upstreamStatus;
  if (status !== undefined) span.setAttribute('http.response.status_code', status);
  if (kind === 'llm' && end?.inputTokens !== undefined)
    span.setAttribute('gen_ai.usage.input_tokens', end.inputTokens);
  if (kind === 'llm' && end?.outputTokens !== undefined)
    span.setAttribute('gen_ai.usage.output_tokens', end.outputTokens);
  if (error === undefined) return;
  span.setAttribute('error.type', error);
  span.setStatus({ code: FAILED });
}

/** A request to an LLM provider. Only the kind of its path is named, and its model only if it has a price. */
export function llmOperation(
  path: string,
  { id, traceName = id }: Pick<Provider, 'id' | 'traceName'>,
  model: string | undefined,
): Operation {
  const operation = OPERATIONS.find(([sign]) => sign.test(path))?.[1] ?? 'other';
  return {
    name: model === undefined ? operation : `${operation} ${model}`,
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': traceName,
      ...(model !== undefined && { 'gen_ai.request.model': model }),
    },
  };
}

const OPERATIONS: readonly (readonly [RegExp, string])[] = [
  [/embed/i, 'embeddings'],
  [/generateContent/i, 'generate_content'],
  [/chat|messages|responses|converse/i, 'chat'],
  [/completions/, 'text_completion'],
];

/** The methods of MCP. Any other method is text of the holder. */
const METHODS =
  /^(?:initialize|ping|server\/discover|completion\/complete|logging\/setLevel|(?:tools|prompts|resources|tasks)\/(?:list|call|get|read|cancel|result|templates\/list|subscribe|unsubscribe)|subscriptions\/listen|notifications\/(?:initialized|cancelled|progress))$/;

/** A request to an MCP server: the method of its first message, if MCP has it. */
export function mcpOperation(method: string | undefined): Operation {
  const named = method !== undefined && METHODS.test(method) ? method : undefined;
  return {
    name: named ?? 'mcp',
    attributes: {
      ...(named !== undefined && { 'mcp.method.name': named }),
      ...(named === 'tools/call' && { 'gen_ai.operation.name': 'execute_tool' }),
      'network.transport': 'tcp',
    },
  };
}
