import { callTraces } from '@presign/gateway';
import { startTraces, type Traces } from '@presign/service/traces';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { attributesOf as of, type SpanJson, startCollector } from '../harness/collector.ts';
import { eventually } from '../harness/eventually.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';

const [SERVER, CLIENT, ERROR] = [2, 3, 2];

const OK: Answer = (_seen, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  response.end(JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage }));
};

let answer: Answer = OK;
let upstream: Upstream;
let collector: Awaited<ReturnType<typeof startCollector>>;
let traces: Traces | undefined;
let stack: Stack;
/** A gateway that passes no `traceparent` on. */
let silent: string;
beforeAll(async () => {
  upstream = await startUpstream((...args) => answer(...args));
  collector = await startCollector();
  traces = await startTraces(collector.url, { service: 'presign-gateway', ratio: 1, delayMs: 50 });
  if (!traces) throw new Error('traces are off');
  stack = await startStack({
    providers: {
      openai: { base_url: upstream.url, pricing: { m: { input: 1_000_000, output: 2_000_000 } } },
    },
    gateway: { traces: callTraces(traces, true) },
  });
  silent = await stack.addGateway({ traces: callTraces(traces, false) });
});
afterAll(async () => {
  await stack.close();
  await traces?.close();
  await upstream.close();
  collector.close();
});

const path = '/v1/chat/completions';
const issue = async (fields: object = {}) =>
  (await stack.issue({ provider: 'openai', path, client_api_key: 'sk-real-secret', ...fields })).url;
const bodyOf = (model: string) =>
  JSON.stringify({ model, max_tokens: 50, messages: [{ role: 'user', content: 'content-of-the-holder' }] });

/** Sends a call; resolves with its request id. */
async function send(url: string, headers: Record<string, string> = {}, body = bodyOf('m')): Promise<string> {
  const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const answered = await request(url, { method: 'POST', body, headers: { ...type, ...headers } });
  await answered.body.dump();
  return String(answered.headers['x-presign-request-id'] ?? answered.headers['x-request-id']);
}

/** The span of a call and that of its request to the upstream, once the collector has them. */
async function spansOf(requestId: string) {
  const own = await eventually(async () =>
    collector.spans().find((span) => of(span)['presign.request_id'] === requestId),
  );
  const children = () => collector.spans().filter((span) => span.parentSpanId === own.spanId);
  return { own, children: children() };
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const traceparent = `00-${TRACE}-${PARENT}-01`;

test('a call has a span in the trace of its traceparent, and the provider request has a child span', async () => {
  answer = OK;
  const id = await send(await issue({ cost_limit: 1_000 }), { traceparent });
  const { own, children } = await spansOf(id);
  expect(own).toMatchObject({
    traceId: TRACE,
    parentSpanId: PARENT,
    kind: SERVER,
    name: 'POST /llm/t/{token}/{path}',
  });
  expect(of(own)).toEqual({
    'http.request.method': 'POST',
    'http.route': '/llm/t/{token}/{path}',
    'http.response.status_code': 200,
    'presign.request_id': id,
  });
  expect(children).toHaveLength(1);
  const [child] = children as [SpanJson];
  expect(child).toMatchObject({ traceId: TRACE, kind: CLIENT, name: 'chat m' });
  expect(of(child)).toEqual({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'm',
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 5,
    'http.response.status_code': 200,
  });
  const times = [own.startTimeUnixNano, child.startTimeUnixNano, child.endTimeUnixNano, own.endTimeUnixNano];
  expect(times.map(BigInt)).toEqual(times.map(BigInt).sort((a, b) => (a < b ? -1 : 1)));
});

test("a provider gets the traceparent of its span if allowed, and never the holder's", async () => {
  answer = OK;
  const url = await issue();
  const headers = { traceparent, tracestate: 'vendor=secret-state', baggage: 'user=secret-baggage' };
  const { children } = await spansOf(await send(url, headers));
  const got = upstream.seen.at(-1)?.headers;
  expect(got?.['traceparent']).toBe(`00-${TRACE}-${children[0]?.spanId}-01`);
  expect([got?.['tracestate'], got?.['baggage']]).toEqual([undefined, undefined]);
  await spansOf(await send(url.replace(stack.gatewayUrls[0] ?? '', silent), headers));
  for (const name of Object.keys(headers)) expect(upstream.seen.at(-1)?.headers[name]).toBeUndefined();
});

test.each(['', 'x', `00-${'0'.repeat(32)}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01, ${traceparent}`])(
  'a malformed traceparent (%s) starts a new trace',
  async (malformed) => {
    answer = OK;
    const { own } = await spansOf(await send(await issue(), { traceparent: malformed }));
    expect(own.traceId).not.toBe(TRACE);
    expect(own.parentSpanId ?? '').toBe('');
  },
);

test('a traceparent that is not sampled is not traced', async () => {
  const url = await issue();
  const id = await send(url, { traceparent: `00-${TRACE}-${PARENT}-00` });
  await spansOf(await send(url));
  expect(collector.spans().filter((span) => of(span)['presign.request_id'] === id)).toEqual([]);
});

test('a refused call has one span with its code, and a failed call has an error in both spans', async () => {
  answer = OK;
  const url = await issue({ max_uses: 1 });
  await send(url);
  const refused = await spansOf(await send(url));
  expect(of(refused.own)).toMatchObject({ 'http.response.status_code': 403, 'error.type': 'uses_exhausted' });
  expect(refused.own.status.code ?? 0).toBe(0);
  expect(refused.children).toEqual([]);
  answer = (_seen, response) => void response.writeHead(500).end('{}');
  const failed = await spansOf(await send(await issue()));
  for (const span of [failed.own, ...failed.children]) {
    expect(of(span)).toMatchObject({ 'http.response.status_code': 500, 'error.type': 'provider_error' });
    expect(span.status.code).toBe(ERROR);
  }
  expect(failed.children).toHaveLength(1);
});

test('the span of an MCP call names the method, and never a tool', async () => {
  answer = (_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"jsonrpc":"2.0","id":1,"result":{}}');
  };
  const servers = [{ name: 's', url: `${upstream.url}/mcp?secret-query`, transport: 'http' }];
  const bundle = await stack.issueMcp({ servers, max_uses: 5 });
  const url = bundle.servers['s']?.url ?? '';
  const call = (method: string) =>
    send(url, {}, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { name: 'secret-tool' } }));
  const { own, children } = await spansOf(await call('tools/call'));
  expect(own.name).toBe('POST /mcp/mcp');
  expect(children[0]).toMatchObject({ kind: CLIENT, name: 'tools/call' });
  expect(of(children[0] as SpanJson)).toEqual({
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'network.transport': 'tcp',
    'http.response.status_code': 200,
  });
  expect((await spansOf(await call('secret/method'))).children[0]?.name).toBe('mcp');
});

test('no span has a URL, a token, a key, a body or an unpriced model', async () => {
  answer = OK;
  await spansOf(await send(await issue(), {}, bodyOf('secret-model')));
  const sent = collector.bodies.join();
  expect(sent).toContain('presign-gateway');
  for (const secret of ['v4.public', 'presign_sk', 'sk-real', 'secret-', 'of-the-holder', '127.0.0.1', path])
    expect(sent).not.toContain(secret);
});

test('a stopping gateway sends its last spans, and a gateway without tracing sends none', async () => {
  answer = OK;
  const url = await issue();
  await send(url);
  const through = async (ratio: string) => {
    const gateway = await startGatewayProcess(stack, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER_ARG: ratio,
    });
    const id = await send(url.replace(stack.gatewayUrls[0] ?? '', gateway.url), { traceparent });
    expect(await gateway.stop()).toBe(0);
    return collector.spans().filter((span) => of(span)['presign.request_id'] === id);
  };
  expect(await through('1')).toHaveLength(1);
  expect(await through('0')).toEqual([]);
});
