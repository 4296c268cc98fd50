import { callTraces } from '@presign/gateway';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { startTraces, type Traces } from '@presign/service/traces';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { textIn } from '../gateway/holder-page.ts';
import { attributesOf, type SpanJson, startCollector } from '../harness/collector.ts';
import { eventually } from '../harness/eventually.ts';
import { type Scraped, scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import {
  type BothProvider,
  openIn,
  PROTOCOLS,
  type Protocol,
  SAID,
  startBothProvider,
  turnIn as turn,
} from './both-protocols.ts';
import { codeOf, type HolderSocket } from './holder.ts';
import type { Json } from './responses-provider.ts';

const KEY = 'sk-real-secret-key';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

let provider: BothProvider;
let metrics: Metrics;
let collector: Awaited<ReturnType<typeof startCollector>>;
let traces: Traces | undefined;
let stack: Stack;

beforeAll(async () => {
  provider = await startBothProvider();
  metrics = await serveMetrics('127.0.0.1', 0);
  collector = await startCollector();
  traces = await startTraces(collector.url, { service: 'presign-gateway', ratio: 1, delayMs: 50 });
  if (!traces) throw new Error('traces are off');
  stack = await startStack({
    providers: provider.file,
    gateway: { meter: metrics.meter, traces: callTraces(traces, true) },
  });
});
afterAll(async () => {
  await stack.close();
  await traces?.close();
  await metrics.close();
  collector.close();
  await provider.close();
});
beforeEach(() => provider.release());

/** The operation that the span of a turn names. */
const OPERATIONS = { Responses: 'chat', Realtime: 'other' };

const issue = ({ ask }: Protocol, more: object = {}) =>
  stack.issue({ ...ask, client_api_key: KEY, cost_limit: 5_000_000, ...more });
const open = (protocol: Protocol, url: string) =>
  openIn(protocol, url, { traceparent: `00-${TRACE}-${PARENT}-01` });
const idOf = ({ headers }: HolderSocket) => String(headers['x-presign-request-id']);
const leave = async ({ socket, closed }: HolderSocket) => {
  socket.close(1000);
  await closed;
};

/** The lines of a connection and of its turns, once its own is there, which is the last. */
const linesOf = (connection: string) =>
  eventually(async () => {
    const lines = stack.logs.map((line) => JSON.parse(line) as Json);
    const own = lines.find(({ msg, request_id: id }) => msg === 'call' && id === connection);
    return (
      own && { own, turns: lines.filter(({ msg, connection: of }) => msg === 'call' && of === connection) }
    );
  });

/** The rows that `/v1/calls` has of a URL, in the order of their turns. */
const rowsOf = (grantId: string, count: number) =>
  eventually(async () => {
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    const answer = await fetch(`${stack.issuerUrl}/v1/calls?outcome=all&grant_id=${grantId}`, { headers });
    const { data } = (await answer.json()) as { data: Json[] };
    return data.length === count && data.sort((a, b) => Number(a.turn ?? 99) - Number(b.turn ?? 99));
  });

/** The span of a call, and those of its requests to the provider. */
const spansOf = (requestId: unknown) =>
  eventually(async () => {
    const spans = collector.spans();
    const own = spans.find((span) => attributesOf(span)['presign.request_id'] === requestId);
    return own && { own, children: spans.filter(({ parentSpanId }) => parentSpanId === own.spanId) };
  });

const now = () => scrape(metrics.port);
/** How much each series has grown since then, once it is as expected. */
async function expectGrowth(before: Scraped, expected: Record<string, number>): Promise<void> {
  const grown = async () => {
    const after = await now();
    return Object.fromEntries(
      Object.keys(expected).map((each) => [each, after.value(each) - before.value(each)]),
    );
  };
  const asExpected = async () => JSON.stringify(await grown()) === JSON.stringify(expected);
  await eventually(asExpected).catch(() => {});
  expect(await grown()).toEqual(expected);
}
const calls = (kind: string, provider: string, outcome: string) =>
  `presign_calls_total{kind="${kind}",provider="${provider}",outcome="${outcome}"}`;

const closed = (cause: string) => `presign_sockets_closed_total{cause="${cause}"}`;

const changed = (method: string, path: string, body: object = {}) =>
  fetch(`${stack.issuerUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

type Issued = Awaited<ReturnType<typeof issue>>;
/** The code and the cause with which a socket closes: the fields of its URL, and what ends it. */
const CLOSES: readonly [number, string, object, (issued: Issued, protocol: Protocol) => unknown][] = [
  [4401, 'token_expired', { expires_in: 5 }, () => {}],
  [4403, 'grant_revoked', {}, ({ grant_id }) => changed('DELETE', `/v1/grants/${grant_id}`)],
  [4001, 'provider', {}, (_issued, protocol) => provider.sockets(protocol).at(-1)?.socket.close(4001)],
  // Its holder gets that code for a provider that is gone.
  [1011, 'provider', {}, (_issued, protocol) => provider.sockets(protocol).at(-1)?.socket.terminate()],
];

describe.each(PROTOCOLS)('a socket of $name', (protocol) => {
  test.each(CLOSES)(
    'that closes with %i by %s says so in its line, and is counted',
    async (code, cause, more, end) => {
      const issued = await issue(protocol, more);
      const before = await now();
      const holder = await open(protocol, issued.url);
      await end(issued, protocol);
      await holder.closed;
      const { own } = await linesOf(idOf(holder));
      expect(own).toMatchObject({ kind: 'socket', turns: 0, close_code: code, close_cause: cause });
      await expectGrowth(before, { [closed(cause)]: 1 });
    },
  );

  const { ask, name, model, cost } = protocol;
  const { provider: id } = ask;
  const operation = OPERATIONS[name];

  test('logs a line for each turn and one for its end, with the ids and costs of its rows', async () => {
    const { url, grant_id, session_id } = await issue(protocol);
    const holder = await open(protocol, url);
    for (let i = 0; i < 2; i++) await turn(protocol, holder);
    await leave(holder);
    const connection = idOf(holder);
    const { own, turns } = await linesOf(connection);
    const of = { level: 30, session: session_id, grant: grant_id, provider: id };
    const socket = { kind: 'socket', method: 'GET', status: 101, turns: 2 };
    expect(own).toMatchObject({ ...of, ...socket, close_code: 1000, close_cause: 'holder' });
    for (const field of ['connection', 'turn', 'ended', 'cost', 'hold', 'code'])
      expect(own).not.toHaveProperty(field);
    expect(turns).toHaveLength(2);
    for (const [i, line] of turns.entries()) {
      expect(line).toMatchObject({
        ...{ ...of, kind: 'llm', connection, turn: i + 1, model, method: 'POST', status: 200 },
        ...{ ended: 'complete', uses: 1, cost, input_tokens: 10, output_tokens: 5 },
      });
      expect(line.hold).toBeGreaterThan(cost);
      expect(line).not.toHaveProperty('code');
      for (const time of ['first_byte_ms', 'own_ms', 'upstream_ms', 'ms'])
        expect(line[time]).toEqual(expect.any(Number));
    }
    const rows = await rowsOf(grant_id, 2);
    expect(rows.map(({ request_id, turn, cost, hold }) => [request_id, turn, cost, hold])).toEqual(
      turns.map((line) => [line.request_id, line.turn, line.cost, line.hold]),
    );
  });

  test('counts each turn as a call with its cost, and counts itself when it ends', async () => {
    const { url } = await issue(protocol);
    const before = await now();
    const holder = await open(protocol, url);
    await turn(protocol, holder);
    provider.hold();
    const second = turn(protocol, holder);
    await eventually(async () => provider.held() === 1);
    const during = await now();
    const gauges = ['presign_holds', 'presign_open_sockets{bound="gateway"}'];
    expect(gauges.map((each) => during.value(each))).toEqual([1, 1]);
    expect(during.value('presign_held_microdollars')).toBeGreaterThan(cost);
    provider.release();
    await second;
    await leave(holder);
    await expectGrowth(before, {
      [calls('llm', id, 'complete')]: 2,
      [calls('socket', id, 'served')]: 1,
      [closed('holder')]: 1,
      'presign_own_seconds_count{kind="llm"}': 2,
      'presign_own_seconds_count{kind="socket"}': 1,
      presign_hold_cost_ratio_count: 2,
      [`presign_upstream_seconds_count{provider="${id}"}`]: 2,
      [`presign_first_byte_seconds_count{provider="${id}"}`]: 2,
      [`presign_cost_microdollars_total{provider="${id}"}`]: 2 * cost,
      presign_holds: 0,
      presign_held_microdollars: 0,
      'presign_open_sockets{bound="gateway"}': 0,
    });
  });

  test('has a span, and each turn has one with a child, all in the trace of its handshake', async () => {
    const holder = await open(protocol, (await issue(protocol)).url);
    await turn(protocol, holder);
    await leave(holder);
    const connection = idOf(holder);
    const { turns } = await linesOf(connection);
    const ofSocket = await spansOf(connection);
    const ofTurn = await spansOf(turns[0]?.request_id);
    const route = '/llm/t/{token}/{path}';
    for (const { own } of [ofSocket, ofTurn])
      expect(own).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, kind: 2 });
    expect([ofSocket.own.name, ofTurn.own.name]).toEqual([`GET ${route}`, `POST ${route}`]);
    expect(attributesOf(ofSocket.own)['http.response.status_code']).toBe(101);
    expect(ofSocket.children).toEqual([]);
    expect(ofTurn.children).toHaveLength(1);
    const child = ofTurn.children[0] as SpanJson;
    expect(child).toMatchObject({ kind: 3, name: `${operation} ${model}` });
    expect(attributesOf(child)).toMatchObject({
      ...{ 'gen_ai.operation.name': operation, 'gen_ai.request.model': model },
      ...{ 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 5 },
    });
  });

  test('records a refused turn as a refused call, with its connection and its number', async () => {
    const { url, grant_id } = await issue(protocol, { max_uses: 1 });
    const before = await now();
    const holder = await open(protocol, url);
    holder.send({ type: 'no.such.event' });
    const unknown = codeOf(await holder.next('error'));
    await turn(protocol, holder);
    expect(codeOf(await turn(protocol, holder))).toBe('uses_exhausted');
    expect(await holder.closed).toMatchObject({ code: 4402 });
    const connection = idOf(holder);
    const { turns } = await linesOf(connection);
    const refused = { connection, turn: 2, kind: 'llm', code: 'uses_exhausted', status: 403 };
    expect(turns).toMatchObject([{ code: unknown }, { turn: 1, ended: 'complete' }, refused]);
    for (const line of [turns[0], turns[2]])
      for (const field of ['ended', 'uses', 'cost', 'hold']) expect(line).not.toHaveProperty(field);
    const [first, second, event] = await rowsOf(grant_id, 3);
    expect(first).toMatchObject({ connection, turn: 1, outcome: 'passed' });
    expect(second).toMatchObject({
      ...{ request_id: turns[2]?.request_id, connection, turn: 2, outcome: 'refused', status: 403 },
      ...{ failure: 'uses_exhausted', uses: 0, cost: 0, refusal: { limit_of: 'url', limit: 1, used: 1 } },
    });
    // It would have been no turn.
    expect(event).toMatchObject({ connection, turn: null, outcome: 'refused', failure: unknown });
    await expectGrowth(before, {
      [calls('llm', id, 'refused')]: 2,
      [`presign_refusals_total{kind="llm",code="uses_exhausted"}`]: 1,
      [calls('llm', id, 'complete')]: 1,
      [calls('socket', id, 'served')]: 1,
    });
    const { own, children } = await spansOf(turns[2]?.request_id);
    expect(attributesOf(own)).toMatchObject({
      'http.response.status_code': 403,
      'error.type': 'uses_exhausted',
    });
    expect(children).toEqual([]);
  });

  test('reports everywhere that a turn that the provider breaks off costs its hold', async () => {
    const { url, grant_id } = await issue(protocol);
    const before = await now();
    const holder = await open(protocol, url);
    provider.hold();
    holder.send(protocol.create);
    await holder.next('response.created');
    for (const { socket } of provider.sockets(protocol)) socket.terminate();
    provider.release();
    expect(await holder.closed).toMatchObject({ code: 1011 });
    const { turns } = await linesOf(idOf(holder));
    expect(turns).toMatchObject([{ turn: 1, ended: 'broken', error: 'failure', code: 'answer_broken' }]);
    expect(turns[0]?.cost).toBe(turns[0]?.hold);
    const { hold, code } = turns[0] ?? {};
    expect(await rowsOf(grant_id, 1)).toMatchObject([{ turn: 1, cost: hold, hold, failure: code }]);
    await expectGrowth(before, { [calls('llm', id, 'broken')]: 1 });
    const { own, children } = await spansOf(turns[0]?.request_id);
    for (const span of [own, ...children]) expect(attributesOf(span)['error.type']).toBe(code);
  });
});

test('a URL without sockets has no socket count', async () => {
  const { url } = await stack.issue({ provider: 'openai', path: '/v1/responses', client_api_key: KEY });
  const base = url.replace('/v1/responses', '');
  expect(await (await fetch(base)).json()).toMatchObject({ open_sockets: null });
  expect(await (await fetch(base, { headers: { accept: 'text/html' } })).text()).not.toContain('WebSocket');
});

test('no line, span or series contains a token, a key, or text of a turn', async () => {
  const [protocol] = PROTOCOLS;
  const { url } = await issue(protocol);
  const holder = await open(protocol, url);
  await turn(protocol, holder);
  await leave(holder);
  const { turns } = await linesOf(idOf(holder));
  await spansOf(turns[0]?.request_id);
  const seen = [...stack.logs, ...collector.bodies, (await now()).text].join('\n');
  expect(seen).toContain(idOf(holder));
  for (const secret of ['v4.public', KEY, SAID, 'Hello.']) expect(seen).not.toContain(secret);
});

// Another gateway takes the gauges of the metrics over.
describe.each(PROTOCOLS)('an open socket of $name', (protocol) => {
  test('is counted by GET on its URL and by its page, at the gateway where it is open', async () => {
    const { url } = await issue(protocol);
    const base = url.replace(protocol.ask.path, '');
    const away = base.replace(stack.gatewayUrls[0] ?? '-', await stack.addGateway());
    const shown = async (at: string) => {
      const { open_sockets: open, used } = (await (await fetch(at)).json()) as Json;
      const page = textIn(await (await fetch(at, { headers: { accept: 'text/html' } })).text());
      return { open, used, page: /(\d+) open at this gateway/.exec(page)?.[1] };
    };
    expect(await shown(base)).toEqual({ open: 0, used: 0, page: '0' });
    const holders = await Promise.all([1, 2].map(() => open(protocol, url)));
    for (const holder of holders) await turn(protocol, holder);
    expect(await shown(base)).toEqual({ open: 2, used: 2, page: '2' });
    expect(await shown(away)).toEqual({ open: 0, used: 2, page: '0' });
    await Promise.all(holders.map(leave));
    await eventually(async () => (await shown(base)).open === 0);
  });
});
