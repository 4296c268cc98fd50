import { randomUUID } from 'node:crypto';
import type { CallSummary } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { issue, refused, send } from './ask.ts';
import { fresh, type LedgerRow, type Reader, row } from './ask-usage.ts';

let upstream: Upstream;
let stack: Stack;
let status = 200;
/** More that the provider reports of a usage. */
let details = {};

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200, ...details };
    const answer = { choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage };
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(
        JSON.stringify(status < 400 ? answer : { error: { message: 'no', type: 'invalid_request_error' } }),
      );
  });
  const pricing = { 'model-1': { input: 150_000, cache_read: 37_500, output: 600_000 } };
  stack = await startStack({ providers: { openai: { base_url: upstream.url, pricing } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ask = (of: Pick<Reader, 'issuerUrl' | 'apiKey'>, path: string) => send(of, { method: 'GET', path });

async function list(of: Pick<Reader, 'issuerUrl' | 'apiKey'>, query: Record<string, string> = {}) {
  const sent = await ask(of, `/v1/calls?${new URLSearchParams(query)}`);
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as { data: CallSummary[]; next_cursor: string | null };
}

/** Makes one call; returns its request id, once it is in the ledger. */
async function call(url: string, answered: number): Promise<string> {
  status = answered;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"model-1","max_tokens":200,"messages":[]}',
  });
  expect(response.status).toBe(answered);
  await response.text();
  await callsSettled(stack);
  return response.headers.get('x-presign-request-id') ?? '';
}

describe('a call', () => {
  test('is found by the request id of its answer, with its URL, tokens, hold, cost and price list', async () => {
    const external_user = randomUUID();
    const { url, session_id } = await issue(stack, { external_user, cost_limit: 10_000 });
    const before = Date.now() / 1000;
    const requestId = await call(url, 200);
    const sent = await ask(stack, `/v1/calls/${requestId.toUpperCase()}`);
    expect(sent.status, sent.text).toBe(200);
    const found = JSON.parse(sent.text);
    expect(found).toMatchObject({
      ...{ request_id: requestId, session_id, external_user, outcome: 'passed', failure: null, status: 200 },
      ...{ provider: 'openai', model: 'model-1', virtual_key: null, server: null, tool: null },
      // 100 × $0.15 + 100 × $0.60 per million.
      ...{ uses: 1, input_tokens: 100, output_tokens: 100, cost: 75, overrun: 0, refunds: [] },
      price_list: { source: 'providers_file', id: '' },
      price_lines: [
        { unit: 'input_tokens', count: 100, rate: 150_000 },
        { unit: 'output_tokens', count: 100, rate: 600_000 },
      ],
    });
    // 200 tokens of output and the bytes of the request, at the least.
    expect(found.hold).toBeGreaterThanOrEqual(120);
    expect(found.started_at).toBeGreaterThanOrEqual(Math.floor(before));
    expect(found.settled_at).toBeGreaterThanOrEqual(Math.floor(before));
    expect(found.api_key).toMatch(/^[\da-f-]{36}$/);
    const { refunds: _, price_lines: __, ...summary } = found;
    expect((await list(stack, { external_user })).data).toEqual([summary]);
  });

  test('shows its cached tokens and their rate in its price lines', async () => {
    details = { prompt_tokens_details: { cached_tokens: 30 } };
    const { url } = await issue(stack, {});
    const sent = await ask(stack, `/v1/calls/${await call(url, 200)}`);
    details = {};
    // 70 × 0.15 + 30 × 0.0375 + 100 × 0.60 = 71.625
    expect(JSON.parse(sent.text)).toMatchObject({
      cost: 72,
      input_tokens: 100,
      price_lines: [
        { unit: 'input_tokens', count: 70, rate: 150_000 },
        { unit: 'cache_read_tokens', count: 30, rate: 37_500 },
        { unit: 'output_tokens', count: 100, rate: 600_000 },
      ],
    });
  });

  test('without a cost_limit has no hold', async () => {
    const { url } = await issue(stack, {});
    const sent = await ask(stack, `/v1/calls/${await call(url, 200)}`);
    expect(JSON.parse(sent.text)).toMatchObject({ hold: null, cost: 75 });
  });

  test('that the provider refused says how it failed', async () => {
    const { url } = await issue(stack, { cost_limit: 10_000 });
    const sent = await ask(stack, `/v1/calls/${await call(url, 400)}`);
    expect(JSON.parse(sent.text)).toMatchObject({
      ...{
        status: 400,
        failure: 'provider_error',
        outcome: 'provider_refused',
        cost: 0,
        uses: 1,
        input_tokens: null,
        price_lines: null,
      },
    });
  });

  test('that cost nothing but is charged its hold, after too many refunds, has no price lines', async () => {
    details = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const { url } = await issue(stack, { cost_limit: 1_000_000 });
    let found: { cost: number; hold: number; price_lines: unknown } | undefined;
    for (let calls = 0; calls < 30 && !found?.cost; calls++) {
      if (found) expect(found).toMatchObject({ cost: 0, price_lines: [] });
      found = JSON.parse((await ask(stack, `/v1/calls/${await call(url, 200)}`)).text);
    }
    details = {};
    expect(found?.cost).toBeGreaterThan(0);
    expect(found).toMatchObject({ cost: found?.hold, input_tokens: 0, price_lines: null });
  });

  test('shows its refund', async () => {
    const of = await fresh(stack);
    const requestId = randomUUID();
    await stack.db.insert(ledger).values([
      row(of, { requestId, tool: 'search', costMicrousd: 1000 }),
      row(of, {
        ...{ requestId, outcome: 'refunded', uses: -1, costMicrousd: -1000 },
        settledAt: new Date('2026-01-01T12:00:01Z'),
      }),
    ]);
    const found = JSON.parse((await ask(of, `/v1/calls/${requestId}`)).text);
    expect(found).toMatchObject({ cost: 1000, uses: 1, tool: 'search' });
    expect(found.refunds).toEqual([
      { settled_at: Date.parse('2026-01-01T12:00:01Z') / 1000, uses: -1, cost: -1000 },
    ]);
    expect((await list(of)).data.map(({ outcome }) => outcome)).toEqual(['refunded', 'passed']);
  });

  test('is visible only to its own account, and unknown ids are not found', async () => {
    const [one, two] = [await fresh(stack), await fresh(stack)];
    const requestId = randomUUID();
    await stack.db.insert(ledger).values(row(one, { requestId }));
    expect((await ask(one, `/v1/calls/${requestId}`)).status).toBe(200);
    refused(await ask(two, `/v1/calls/${requestId}`), 'not_found');
    refused(await ask(one, `/v1/calls/${randomUUID()}`), 'not_found');
    refused(await ask(one, '/v1/calls/none'), 'not_found');
    expect((await list(two)).data).toEqual([]);
  });
});

describe('a list of calls', () => {
  const ids = { sessionId: randomUUID(), grantId: randomUUID(), apiKeyId: randomUUID() };
  const marks: Record<string, [query: Record<string, string>, fields: Partial<LedgerRow>]> = {
    external_user: [{ external_user: 'u1' }, { externalUser: 'u1' }],
    session_id: [{ session_id: ids.sessionId }, { sessionId: ids.sessionId }],
    grant_id: [{ grant_id: ids.grantId }, { grantId: ids.grantId }],
    api_key: [{ api_key: ids.apiKeyId }, { apiKeyId: ids.apiKeyId }],
    virtual_key: [{ virtual_key: 'vk-1' }, { virtualKeyId: 'vk-1' }],
    provider: [{ provider: 'mcp' }, { provider: 'mcp' }],
    model: [{ model: 'model-2' }, { model: 'model-2' }],
    outcome: [{ outcome: 'lease_ended' }, { outcome: 'expired', failure: 'lease_ended' }],
    from: [{ from: '2026-02-01T00:00:00Z' }, { settledAt: new Date('2026-02-01T00:00:00Z') }],
    to: [{ to: '2026-01-01T12:00:00Z' }, { settledAt: new Date('2026-01-01T11:59:59Z') }],
  };
  test.each(Object.keys(marks))('has only calls that match %s', async (name) => {
    const of = await fresh(stack);
    const [query, fields] = marks[name] as (typeof marks)[string];
    const requestId = randomUUID();
    await stack.db.insert(ledger).values([row(of, { ...fields, requestId }), row(of), row(of)]);
    expect((await list(of, query)).data.map(({ request_id: id }) => id)).toEqual([requestId]);
  });

  test('has every call once over its pages, newest first, even for calls of the same moment', async () => {
    const of = await fresh(stack);
    const requestIds = Array.from({ length: 25 }, () => randomUUID());
    const rows = requestIds.map((requestId, i) =>
      row(of, { requestId, settledAt: new Date(Date.parse('2026-01-01') + Math.floor(i / 10)) }),
    );
    await stack.db.insert(ledger).values(rows);
    const seen: CallSummary[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list(of, { limit: '4', ...(cursor === '' ? {} : { cursor }) });
      seen.push(...page.data);
      cursor = page.next_cursor;
    }
    expect(seen.map(({ request_id: id }) => id).toSorted()).toEqual(requestIds.toSorted());
    const times = seen.map(({ settled_at: at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
  });

  test('refuses an unknown filter, and names it', async () => {
    refused(await ask(stack, '/v1/calls?user=u1'), 'invalid_request', 'user');
    refused(await ask(stack, '/v1/calls?outcome=lost'), 'invalid_request', 'outcome');
    const message = refused(await ask(stack, '/v1/calls?grant_id=1'), 'invalid_request', 'grant_id');
    expect(message).toContain('expected a UUID');
  });
});
