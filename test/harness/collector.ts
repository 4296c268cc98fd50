import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as OTLP has it in JSON (opentelemetry-proto, trace.proto). */
export type SpanJson = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly status: { readonly code?: number };
};

/** A collector that keeps the spans it gets. */
export async function startCollector() {
  const bodies: string[] = [];
  const server = createServer(async (incoming, outgoing) => {
    let body = '';
    for await (const chunk of incoming) body += String(chunk);
    if (incoming.url === '/v1/traces') bodies.push(body);
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  type Export = { resourceSpans: { scopeSpans: { spans: SpanJson[] }[] }[] };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    spans: () =>
      bodies.flatMap((body) =>
        (JSON.parse(body) as Export).resourceSpans.flatMap((each) =>
          each.scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Attributes of texts and numbers. */
export const attributesOf = (span: SpanJson): Record<string, unknown> =>
  Object.fromEntries(
    span.attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  );
