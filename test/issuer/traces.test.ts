import { requestTraces } from '@presign/issuer';
import { startTraces, type Traces } from '@presign/service/traces';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { attributesOf, type SpanJson, startCollector } from '../harness/collector.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { claimsOf, least } from './ask.ts';

const [SERVER, ERROR] = [2, 2];
let collector: Awaited<ReturnType<typeof startCollector>>;
let traces: Traces | undefined;
let stack: Stack;
beforeAll(async () => {
  collector = await startCollector();
  traces = await startTraces(collector.url, { service: 'presign-issuer', ratio: 1, delayMs: 50 });
  if (!traces) throw new Error('traces are off');
  stack = await startStack({ providers: {}, issuer: { traces: requestTraces(traces) } });
});
afterAll(async () => {
  await stack.close();
  await traces?.close();
  collector.close();
});

type Options = {
  readonly headers?: Record<string, string>;
  readonly body?: object;
  readonly method?: 'GET' | 'POST' | 'DELETE';
};

/** Sends a request with the API key, and returns its span once the collector has it. */
async function spanOf(path: string, { headers = {}, body, method = 'GET' }: Options = {}): Promise<SpanJson> {
  const id = await ask(path, { headers, method, ...(body && { body }) });
  return eventually(async () => found(id));
}
async function ask(path: string, { headers = {}, body, method = 'GET' }: Options): Promise<string> {
  const answer = await request(`${stack.issuerUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${stack.apiKey}`,
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body ? JSON.stringify(body) : null,
  });
  await answer.body.dump();
  return String(answer.headers['x-request-id']);
}
const found = (id: string) =>
  collector.spans().find((span) => attributesOf(span)['presign.request_id'] === id);

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const traceparent = `00-${TRACE}-${PARENT}-01`;
const ID = '0198c0de-0000-7000-8000-000000000001';

test('a request has one span in the trace of its traceparent, named after its route', async () => {
  const span = await spanOf('/v1/presign', { method: 'POST', body: least, headers: { traceparent } });
  const name = 'POST /v1/presign';
  expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, kind: SERVER, name });
  expect(attributesOf(span)).toEqual({
    'http.request.method': 'POST',
    'http.route': '/v1/presign',
    'http.response.status_code': 200,
    'presign.request_id': expect.any(String),
  });
  expect(BigInt(span.endTimeUnixNano) > BigInt(span.startTimeUnixNano)).toBe(true);
  expect(collector.spans().filter(({ traceId }) => traceId === TRACE)).toHaveLength(1);
});

test('a refusal has its code in the span, and is not an error of the service', async () => {
  const span = await spanOf(`/v1/sessions/${ID}`);
  expect(span.name).toBe('GET /v1/sessions/{id}');
  expect(attributesOf(span)).toMatchObject({ 'http.response.status_code': 404, 'error.type': 'not_found' });
  expect(span.status.code ?? 0).toBe(0);
});

test('a 503 is an error of the service in the span, and an unknown method has no name', async () => {
  const requestId = '0198c0de-0000-7000-8000-000000000002';
  const answered = { method: 'MARKED', path: undefined, traceparent: undefined, beganAt: performance.now() };
  const code = 'database_unavailable';
  requestTraces(traces as Traces).requestEnded({ ...answered, status: 503, code, requestId });
  const span = await eventually(async () => found(requestId));
  expect([span.name, span.status.code]).toEqual(['_OTHER', ERROR]);
  expect(attributesOf(span)['error.type']).toBe(code);
});

test('a malformed traceparent starts a new trace, and an unsampled one is not traced', async () => {
  for (const malformed of ['x', `00-${'0'.repeat(32)}-${PARENT}-01`])
    expect((await spanOf('/v1/sessions', { headers: { traceparent: malformed } })).parentSpanId ?? '').toBe(
      '',
    );
  const silent = await ask('/v1/sessions', { headers: { traceparent: `00-${TRACE}-${PARENT}-00` } });
  const probe = await ask('/readyz', {});
  await spanOf('/v1/sessions');
  expect([found(silent), found(probe)]).toEqual([undefined, undefined]);
});

test('no span contains a URL, a token, a key, a body, a query or an id from a path', async () => {
  const issued = await stack.issue({
    ...least,
    external_user: 'marked-user',
    metadata: { note: 'marked-note' },
  });
  const token = /v4\.public\.[\w-]+/.exec(issued.url)?.[0] ?? '';
  const grant = claimsOf(stack, issued.url).jti;
  const secret = {
    headers: { tracestate: 'marked-state', baggage: 'a=marked-baggage', cookie: 'marked-cookie' },
  };
  await spanOf(`/v1/sessions/${issued.session_id}?marked-query=1`, secret);
  await spanOf('/v1/usage?from=0&external_user=marked-user', secret);
  await spanOf(`/v1/marked-path/${token}`, secret);
  await spanOf('/v1/sessions', { headers: { authorization: 'Bearer presign_sk_marked' } });
  await spanOf('/v1/presign', {
    method: 'POST',
    body: { ...least, client_api_key: 'sk-marked', 'marked-field': 1 },
  });
  await spanOf(`/v1/grants/${grant}`, { method: 'DELETE' });
  const sent = collector.bodies.join();
  expect(sent).toContain('presign-issuer');
  expect(collector.spans().map(({ name }) => name)).toContain('DELETE /v1/grants/{id}');
  const secrets = ['marked', 'v4.public', 'presign_sk', token, stack.apiKey, least.client_api_key];
  for (const text of [
    ...secrets,
    issued.session_id,
    grant,
    ID,
    '127.0.0.1',
    stack.keys.signing,
    stack.keys.encryption,
  ])
    expect(sent).not.toContain(text);
});
