import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { at, type Heard, outcomes, post, sumOf, tally, urlOf } from './holder.ts';
import { eventOf, type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
let aheadMs = 0;
let frozenMs: number | undefined;
/** Request states that the server got, each as it gave it. */
let came: (string | undefined)[] = [];
/** How the server answers the next POST. */
let how: 'json' | 'sse' | 'away' | Refused = 'json';

/** An error of JSON-RPC, in JSON with a status or in a stream. */
type Refused = { readonly code: number; readonly status: number; readonly form: 'json' | 'sse' };

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({
    providers: {},
    gateways: 2,
    gateway: { now: () => (frozenMs ?? Date.now()) + aheadMs },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(() => {
  aheadMs = 0;
  frozenMs = undefined;
  came = [];
  how = 'json';
  // Asks for input in every answer, with the same state each time.
  upstream.behaves = ({ method, body }, response) => {
    if (method !== 'POST') return false;
    if (how === 'away') return response.writeHead(429).end();
    const { id, params } = JSON.parse(body) as { id: number; params: { requestState?: string } };
    came.push(params.requestState);
    if (typeof how === 'object') return refuse(how, id, response);
    const result = { resultType: 'input_required', inputRequests: {}, requestState: STATE };
    const message = { jsonrpc: '2.0', id, result };
    response.writeHead(200, { 'content-type': how === 'sse' ? 'text/event-stream' : 'application/json' });
    return response.end(how === 'sse' ? eventOf(message) : JSON.stringify(message));
  };
});

function refuse({ code, status, form }: Refused, id: number, response: ServerResponse) {
  const message = { jsonrpc: '2.0', id, error: { code, message: 'no' } };
  const contentType = form === 'sse' ? 'text/event-stream' : 'application/json';
  response.writeHead(status, { 'content-type': contentType });
  return response.end(form === 'sse' ? eventOf(message) : JSON.stringify(message));
}

const STATE = 'state "ü"';
const VERSION = { 'mcp-protocol-version': '2026-07-28' };
const PRICE = 500;
/** That of the stack. */
const UPSTREAM_TIMEOUT_MS = 60_000;
const issue = (policy: object = {}) =>
  stack.issueMcp({
    servers: [{ name: 'a', url: upstream.url, transport: 'http', pricing: { default: PRICE } }],
    expires_in: 86_400,
    ...policy,
  });

/** `args` may be text, with numbers that JavaScript cannot hold. */
type Asked = { readonly state?: string | undefined; readonly tool?: string; readonly args?: object | string };

/** A round of a call, at a gateway. */
async function round(url: string, { state, tool = 'book', args = { seat: 1 } }: Asked = {}, gateway = 0) {
  const params = { name: tool, arguments: '', ...(state && { requestState: state, inputResponses: {} }) };
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const written = typeof args === 'string' ? args : JSON.stringify(args);
  return post(
    at(stack, gateway, url),
    call.replace('"arguments":""', () => `"arguments":${written}`),
    VERSION,
  );
}
const stateIn = ({ messages }: Heard) =>
  (messages[0]?.result as { requestState?: string } | undefined)?.requestState;

/** The rounds of a call, each with the state of the one before. */
async function rounds(url: string, count: number): Promise<Heard[]> {
  const all: Heard[] = [];
  for (let i = 0; i < count; i++) {
    const before = all.at(-1);
    all.push(await round(url, { state: before && stateIn(before) }, i % 2));
  }
  return all;
}

const expectUses = async (answer: Awaited<ReturnType<typeof issue>>, uses: number) =>
  expect(await sumOf(stack, answer)).toMatchObject({ uses, cost: uses * PRICE });

test.each(['json', 'sse'] as const)(
  'the rounds of a call are one use, over two gateways, and the server gets its own state (%s)',
  async (form) => {
    how = form;
    const answer = await issue({ max_uses: 1 });
    const all = await rounds(urlOf(answer, 'a'), 4);
    expect(all.map(outcomes)).toEqual(all.map(() => ['ran']));
    expect(came).toEqual([undefined, STATE, STATE, STATE]);
    for (const heard of all) expect(heard.text).not.toContain(STATE);
    await expectUses(answer, 1);
  },
);

test('ten rounds are one use, and the eleventh is another', async () => {
  const answer = await issue();
  await rounds(urlOf(answer, 'a'), 10);
  await expectUses(answer, 1);
  await rounds(urlOf(answer, 'a'), 12);
  await expectUses(answer, 3);
});

describe('a state', () => {
  const first = async (policy: object = {}) => {
    const answer = await issue(policy);
    const url = urlOf(answer, 'a');
    return { answer, url, state: stateIn(await round(url)) };
  };

  test.each<[string, Asked, number]>([
    ['other arguments', { args: { seat: 2 } }, 0],
    ['another tool', { tool: 'buy' }, 0],
    ['an hour later', {}, 3_600_001],
  ])('with %s costs another use', async (_what, asked, laterMs) => {
    const { answer, url, state } = await first();
    aheadMs = laterMs;
    expect(outcomes(await round(url, { ...asked, state }))).toEqual(['ran']);
    await expectUses(answer, 2);
  });

  test.each([
    ['{"seat":9007199254740993}', '{"seat":9007199254740992}'],
    ['{"seat":[1e400]}', '{"seat":[null]}'],
    ['{"seat":1e400}', '{"seat":-1e400}'],
    ['{"seat":0.1}', '{"seat":0.10000000000000000001}'],
  ])('of a call with %s costs another use with %s', async (args, others) => {
    const answer = await issue();
    const url = urlOf(answer, 'a');
    const state = stateIn(await round(url, { args }));
    await round(url, { args: others, state });
    await expectUses(answer, 2);
    const again = stateIn(await round(url, { args }));
    await round(url, { args, state: again });
    await expectUses(answer, 3);
  });

  test('passes for free once, whichever of twenty simultaneous calls is first', async () => {
    const { answer, url, state } = await first();
    await Promise.all(Array.from({ length: 20 }, (_, i) => round(url, { state }, i % 2)));
    await expectUses(answer, 20);
  });

  test('passes again after its server refused the round without reading it', async () => {
    const { answer, url, state } = await first();
    how = 'away';
    expect((await round(url, { state })).status).toBe(429);
    how = 'json';
    expect(outcomes(await round(url, { state }))).toEqual(['ran']);
    await expectUses(answer, 1);
  });

  test.each<Refused>([
    { code: -32601, status: 200, form: 'json' },
    { code: -32020, status: 400, form: 'json' },
    { code: -32021, status: 200, form: 'sse' },
    { code: -32022, status: 400, form: 'json' },
  ])('passes again after a round that its server answered with %j', async (refused) => {
    const { answer, url, state } = await first();
    for (let i = 0; i < 3; i++) {
      how = refused;
      expect(outcomes(await round(url, { state }, i % 2))).toEqual([refused.code]);
    }
    how = 'json';
    expect(outcomes(await round(url, { state }))).toEqual(['ran']);
    await expectUses(answer, 1);
  });

  test.each([-32602, -32603, -32000])('counts as used if its round got %i', async (code) => {
    const { answer, url, state } = await first();
    how = { code, status: 200, form: 'json' };
    await round(url, { state });
    how = 'json';
    await round(url, { state });
    await expectUses(answer, 2);
  });

  test('that its server refuses each time is bounded like other free work', async () => {
    const { answer, url, state } = await first();
    how = 'away';
    frozenMs = Date.now();
    const heard: Heard[] = [];
    // At most 64 at once.
    for (let i = 0; i < 13; i++)
      heard.push(...(await Promise.all(Array.from({ length: 50 }, () => round(url, { state })))));
    expect(tally(heard)).toMatchObject({ rate_limited: 50 });
    await expectUses(answer, 1);
  });

  test('after its URL has ended passes once, with its place, at any gateway; any other call is expired', async () => {
    const { answer, url, state } = await first({ expires_in: 600, concurrent_calls: 1 });
    const other = await first({ expires_in: 600 });
    aheadMs = answer.expires_at * 1_000 - Date.now() + 1_000;
    came = [];
    for (const wrong of [{}, { state, args: { seat: 2 } }, { state, tool: 'list' }, { state: other.state }])
      expect(outcomes(await round(url, wrong)), JSON.stringify(wrong)).toEqual(['token_expired']);
    expect(came).toEqual([]);
    const late = await Promise.all(Array.from({ length: 6 }, (_, i) => round(url, { state }, i % 2)));
    expect(tally(late)).toEqual({ ran: 1, token_expired: 5 });
    // The server may ask again.
    const next = late.map(stateIn).find(Boolean);
    expect(outcomes(await round(url, { state: next }, 1))).toEqual(['ran']);
    expect(outcomes(await round(url, { state: next }))).toEqual(['token_expired']);
    expect(came).toEqual([STATE, STATE]);
    aheadMs = 0;
    await expectUses(answer, 1);
  });

  test('after its URL has ended passes as long as a call may take', async () => {
    const { answer, url, state } = await first({ expires_in: 600 });
    came = [];
    frozenMs = Date.now();
    const endMs = answer.expires_at * 1_000 + UPSTREAM_TIMEOUT_MS - frozenMs;
    aheadMs = endMs;
    expect(outcomes(await round(url, { state }))).toEqual(['token_expired']);
    expect(came).toEqual([]);
    aheadMs = endMs - 1_000;
    expect(outcomes(await round(url, { state }))).toEqual(['ran']);
  });

  test('of another URL is unknown', async () => {
    const { state } = await first();
    const other = await issue();
    expect(outcomes(await round(urlOf(other, 'a'), { state }))).toEqual(['invalid_request']);
    await expectUses(other, 0);
  });
});

test('without a state, or in an older revision, each round is a use', async () => {
  const answer = await issue();
  const url = urlOf(answer, 'a');
  for (let i = 0; i < 3; i++) await round(url);
  await expectUses(answer, 3);
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'book' } };
  const heard = await post(at(stack, 0, url), call);
  const again = { ...call, params: { ...call.params, requestState: stateIn(heard) } };
  expect(outcomes(await post(at(stack, 0, url), again))).toEqual(['ran']);
  await expectUses(answer, 5);
});
