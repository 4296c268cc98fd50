import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { intervalOf } from '@presign/issuer';
import {
  type CallSummary,
  type HoursAnswer,
  OUTCOME_NAMES,
  OUTCOME_OF_FAILURE,
  type Outcome,
  outcomeOf,
  UNFAILED,
} from '@presign/schema';
import { callHours, ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';
import { ownAccount } from './accounts.ts';
import { refused, send } from './ask.ts';
import { fresh, type LedgerRow, type Reader, report, row } from './ask-usage.ts';
import { mergeAllHours } from './sweeps.ts';

let upstream: Upstream;
let server: McpUpstream;
let stack: Stack;

/** How the provider and the MCP server answer. Undefined: as always. */
let behaves: ((response: ServerResponse) => void) | undefined;
const json = { 'content-type': 'application/json' };

beforeAll(async () => {
  upstream = await startUpstream((seen, response, request) =>
    behaves ? behaves(response) : answerChat(seen, response, request),
  );
  server = await startMcpUpstream();
  stack = await startStack({
    providers: {
      openai: { base_url: upstream.url },
      away: { extends: 'openai', base_url: 'http://127.0.0.1:9' },
    },
    gateway: { upstreamTimeoutMs: 2_000 },
  });
});
afterAll(async () => {
  await stack.close();
  await Promise.all([upstream.close(), server.close()]);
});

type Asker = Pick<Reader, 'issuerUrl' | 'apiKey'>;
const ask = async <T>(of: Asker, path: string): Promise<T> => {
  const sent = await send(of, { method: 'GET', path });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as T;
};
const list = async (of: Asker, query: Record<string, string>) =>
  (await ask<{ data: CallSummary[] }>(of, `/v1/calls?${new URLSearchParams(query)}`)).data;

/** The first bytes of an answer that stays open. */
const begin = (response: ServerResponse) => {
  response.writeHead(200, { ...json, 'content-length': '99' });
  response.write('{');
};
const breakOff = (response: ServerResponse) => {
  begin(response);
  setTimeout(() => response.destroy(), 50);
};
const answer = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, json).end('{"error":{"message":"no"}}');
};

type Way = {
  readonly behaves?: (response: ServerResponse) => void;
  readonly provider?: string;
  /** While the answer is under way. */
  readonly meanwhile?: (user: string, leave: () => void) => unknown;
};

const revoke = async (user: string) => {
  const { status } = await send(stack, { method: 'DELETE', path: `/v1/sessions?external_user=${user}` });
  expect(status).toBeLessThan(300);
};

const WAYS: readonly (readonly [Outcome, string, Way])[] = [
  ['passed', 'a whole answer', {}],
  ['provider_error', 'a 502', { behaves: answer(502) }],
  ['provider_error', 'a 500', { behaves: answer(500) }],
  ['provider_refused', 'a 400', { behaves: answer(400) }],
  ['provider_refused', 'a 429', { behaves: answer(429) }],
  ['provider_unreachable', 'a closed port', { provider: 'away' }],
  ['provider_unreachable', 'a connection that ends without an answer', { behaves: (r) => void r.destroy() }],
  ['provider_timeout', 'no answer in time', { behaves: () => {} }],
  ['answer_broken', 'an answer that breaks off', { behaves: breakOff }],
  ['holder_left', 'a holder who leaves', { behaves: begin, meanwhile: (_user, leave) => leave() }],
  ['cut', 'a URL that is revoked', { behaves: begin, meanwhile: revoke }],
];

/** Makes a call whose answer may not come. */
async function call(to: (signal: AbortSignal) => Promise<unknown>, { meanwhile }: Way, user: string) {
  const leaving = new AbortController();
  const ended = to(leaving.signal).catch(() => {});
  if (meanwhile) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    await meanwhile(user, () => leaving.abort());
  }
  await ended;
}

const recorded = (user: string) =>
  eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const [found] = (await list(stack, { external_user: user })).filter(
      ({ outcome }) => outcome !== 'refunded' && outcome !== 'under_way',
    );
    return found;
  });

async function fitsEverywhere(user: string, outcome: Outcome, found: CallSummary): Promise<void> {
  expect(found).toMatchObject({ outcome });
  expect(found.total_ms).toBeGreaterThanOrEqual(0);
  expect(found.own_ms).toBeGreaterThanOrEqual(0);
  for (const asked of [outcome, ...(UNFAILED.includes(outcome) ? [] : ['failed'])])
    expect((await list(stack, { external_user: user, outcome: asked })).length, asked).toBe(1);
  for (const asked of OUTCOME_NAMES.filter((name) => name !== outcome && name !== 'refunded'))
    expect(await list(stack, { external_user: user, outcome: asked }), asked).toEqual([]);
  const usage = await report(stack, { external_user: user, group_by: 'outcome' });
  const failed_calls = UNFAILED.includes(outcome) ? 0 : 1;
  expect(usage.total).toMatchObject({ calls: 1, failed_calls });
  expect(usage.data.find((each) => each.outcome === outcome)).toMatchObject({ calls: 1, failed_calls });
}

test.each(WAYS)(
  'an LLM call is %s after %s, in its list, its filters and its group',
  async (outcome, _what, way) => {
    const user = randomUUID();
    const { url } = await stack.issue({
      ...{ provider: way.provider ?? 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' },
      external_user: user,
    });
    behaves = way.behaves;
    const body = JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 10, messages: [] });
    await call(
      async (signal) => (await fetch(url, { method: 'POST', headers: json, body, signal })).text(),
      way,
      user,
    );
    const found = await recorded(user);
    behaves = undefined;
    await fitsEverywhere(user, outcome, found);
  },
);

/** An MCP server may take as long as it likes. */
const MCP_WAYS = WAYS.filter(([outcome]) => outcome !== 'provider_timeout');

test.each(MCP_WAYS)('an MCP call is %s after %s, too', async (outcome, _what, way) => {
  const user = randomUUID();
  const url = way.provider ? 'http://127.0.0.1:9/mcp' : server.url;
  const issued = await stack.issueMcp({
    servers: [{ name: 'docs', url, transport: 'http' }],
    external_user: user,
  });
  const { behaves: how } = way;
  server.behaves = how && ((_arrived, response) => void how(response));
  const headers = { ...json, accept: 'application/json, text/event-stream' };
  const body = JSON.stringify(toolCall('run', 1));
  await call(
    async (signal) => (await fetch(urlOf(issued, 'docs'), { method: 'POST', headers, body, signal })).text(),
    way,
    user,
  );
  const found = await recorded(user);
  server.behaves = undefined;
  await fitsEverywhere(user, outcome, found);
});

test("a call has its times, its SDK's retry count, and a bounded user agent", async () => {
  const headers = { ...json, 'x-stainless-retry-count': '2', 'user-agent': `OpenAI/JS ${'x'.repeat(5_000)}` };
  const body = JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 10, messages: [] });
  const user = randomUUID();
  const { url } = await stack.issue({
    ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real', external_user: user },
  });
  behaves = (response) => void setTimeout(() => answerChat({} as never, response, {} as never), 200);
  await (await fetch(url, { method: 'POST', headers, body })).text();
  behaves = undefined;
  const bundle = await stack.issueMcp({
    ...{ servers: [{ name: 'docs', url: server.url, transport: 'http' }], external_user: `${user}-mcp` },
  });
  await post(urlOf(bundle, 'docs'), toolCall('run', 1), headers);
  for (const found of [await recorded(user), await recorded(`${user}-mcp`)]) {
    expect(found).toMatchObject({ retry_count: 2, user_agent: headers['user-agent'].slice(0, 64) });
    expect(found.first_byte_ms).toBeLessThanOrEqual(found.total_ms ?? 0);
    expect(found.own_ms).toBeLessThanOrEqual((found.total_ms ?? 0) + 1);
  }
  expect((await recorded(user)).first_byte_ms).toBeGreaterThanOrEqual(190);
});

test.each(['-1', '1e3', '12345', 'one', '', ' ', '1, 2'])(
  'a retry count of %j is ignored',
  async (stated) => {
    const user = randomUUID();
    const { url } = await stack.issue({
      ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real', external_user: user },
    });
    const headers = { ...json, 'x-stainless-retry-count': stated };
    await (await fetch(url, { method: 'POST', headers, body: '{"model":"m","messages":[]}' })).text();
    expect(await recorded(user)).toMatchObject({ retry_count: null, outcome: 'passed' });
  },
);

describe('the outcome of a row', () => {
  const failures = [null, 'provider_error', 'invalid_request', ...Object.keys(OUTCOME_OF_FAILURE)];
  const kinds = failures.flatMap((failure) =>
    [null, 200, 404, 502].flatMap((status) =>
      [null, 'docs'].flatMap((named) =>
        [null, 5].flatMap((totalMs) =>
          (['settled', 'expired', 'refunded'] as const).map((outcome) => ({
            ...{ failure, status, server: named, totalMs, outcome },
          })),
        ),
      ),
    ),
  );

  test('is the same in SQL and in TypeScript, for every combination, and failed ones are counted', async () => {
    const of = await fresh(stack);
    await stack.db.insert(ledger).values(kinds.map((fields): LedgerRow => row(of, fields)));
    const counts = new Map<string, number>();
    for (const kind of kinds) counts.set(outcomeOf(kind), (counts.get(outcomeOf(kind)) ?? 0) + 1);
    expect([...counts.keys()].sort()).toEqual([...OUTCOME_NAMES].sort());
    const { data, total } = await report(of, { group_by: 'outcome' });
    const shown = Object.fromEntries(data.map(({ outcome, calls }) => [outcome, calls]));
    const back = kinds.filter(
      ({ outcome, failure }) => outcome === 'refunded' && failure === 'limits_unavailable',
    );
    expect(shown).toEqual({ ...Object.fromEntries(counts), refunded: -back.length });
    const failed = kinds.filter((kind) => !UNFAILED.includes(outcomeOf(kind))).length;
    expect(total.failed_calls).toBe(failed);
    const { total: some } = await report(of, { outcome: 'provider_error' });
    expect(some).toMatchObject({
      calls: counts.get('provider_error'),
      failed_calls: counts.get('provider_error'),
    });
  });

  test('cannot be a filter if admitted calls cannot have it', async () => {
    for (const outcome of ['settled', 'refused', 'failed', 'x'])
      refused(
        await send(stack, { method: 'GET', path: `/v1/usage?outcome=${outcome}` }),
        'invalid_request',
        'outcome',
      );
  });
});

describe('the calls of an hour', () => {
  const HOUR = 3_600;
  const hours = (of: Asker, query: Record<string, string>) =>
    ask<HoursAnswer>(of, `/v1/usage/hours?${new URLSearchParams(query)}`);
  const began = Math.floor(Date.now() / 1_000 / HOUR) * HOUR;

  test('are counted by their outcome, for LLM APIs and MCP servers, and earlier calls are not counted', async () => {
    const account = await ownAccount(stack);
    const sums = await stack.db.select().from(callHours).where(eq(callHours.accountId, account));
    const { data } = await hours(stack, { from: String(began - 2 * HOUR), group_by: 'provider,server' });
    const all = data.reduce((sum, each) => sum + each.calls, 0);
    expect(all).toBe(sums.reduce((sum, { calls }) => sum + calls, 0));
    for (const provider of ['openai', 'mcp']) {
      const of = data.filter((each) => each.provider === provider);
      const seen = new Set(of.flatMap(({ outcomes }) => Object.keys(outcomes)));
      const ways = provider === 'mcp' ? MCP_WAYS : WAYS.filter(([, , way]) => !way.provider);
      const wanted = ways.map(([outcome]) => outcome);
      expect([...seen].sort()).toEqual([...new Set(wanted)].sort());
      for (const each of of) expect(each.error_rate).toBeLessThanOrEqual(each.failed_calls / each.calls);
    }
    const later = await hours(stack, { from: String(began + 10 * HOUR), to: String(began + 11 * HOUR) });
    expect(later.data).toEqual([]);
  });

  test('have the percentiles of 10,000 known times within 9 %, the same before and after their sums are merged', async () => {
    const of = await fresh(stack);
    const at = new Date((began - 30 * HOUR) * 1_000);
    const times = Array.from({ length: 10_000 }, (_, i) => i + 1);
    for (const part of [0, 1, 2, 3])
      await stack.db.insert(callHours).values(
        times
          .filter((ms) => ms % 4 === part)
          .map((ms) => ({
            ...{ accountId: of.account, hour: at, provider: 'openai', model: `m${ms % 2}`, server: null },
            ...{ outcome: ms % 100 === 0 ? 'provider_error' : 'passed', calls: 1 },
            ...{ total: intervalOf(ms), firstByte: intervalOf(Math.ceil(ms / 10)) },
          })),
      );
    const query = { from: String(began - 40 * HOUR) };
    const before = await hours(of, query);
    const byModel = await hours(of, { ...query, group_by: 'model' });
    expect(before.data).toHaveLength(1);
    const [hour] = before.data;
    expect(hour).toMatchObject({
      ...{ hour: began - 30 * HOUR, calls: 10_000, failed_calls: 100, error_rate: 0.01 },
      outcomes: { passed: 9_900, provider_error: 100 },
    });
    const near = (ms: number | null | undefined, exact: number) =>
      expect(Math.abs((ms ?? 0) - exact) / exact).toBeLessThanOrEqual(0.092);
    near(hour?.total_ms.p50, 5_000);
    near(hour?.total_ms.p95, 9_500);
    near(hour?.first_byte_ms.p50, 500);
    near(hour?.first_byte_ms.p95, 950);
    expect(byModel.data.map(({ model, calls }) => [model, calls])).toEqual([
      ['m0', 5_000],
      ['m1', 5_000],
    ]);
    await mergeAllHours(stack);
    const rows = await stack.db.$count(callHours, eq(callHours.accountId, of.account));
    expect(rows).toBeLessThan(400);
    expect(await hours(of, query)).toEqual({ ...before, to: expect.any(Number) });
    expect((await hours(of, { ...query, group_by: 'model' })).data).toEqual(byModel.data);
  });

  test('a range, a dimension or a field that cannot be answered is named', async () => {
    const wrong = [
      [{ from: '0' }, 'from'],
      [{ from: String(began), to: String(began) }, 'from'],
      [{ group_by: 'user' }, 'group_by'],
      [{ group_by: 'model,model' }, 'group_by'],
      [{ group_by: '' }, 'group_by'],
      [{ tool: 'x' }, 'tool'],
    ] as const;
    for (const [query, param] of wrong)
      refused(
        await send(stack, { method: 'GET', path: `/v1/usage/hours?${new URLSearchParams(query)}` }),
        'invalid_request',
        param,
      );
  });
});

test('similar calls are those of the same URL and the same model or tool within a minute, including refused ones', async () => {
  const of = await fresh(stack);
  const grantId = randomUUID();
  const requestId = randomUUID();
  const at = (seconds: number) => new Date(Date.parse('2026-01-01T12:00:00Z') + seconds * 1_000);
  const near = { grantId, model: 'm1' };
  const one = row(of, { ...near, requestId, startedAt: at(0), settledAt: at(5) });
  const similar = [
    row(of, { ...near, requestId: randomUUID(), settledAt: at(-59) }),
    row(of, { ...near, requestId: randomUUID(), settledAt: at(3), retryCount: 1 }),
    row(of, { ...near, requestId: randomUUID(), settledAt: at(64) }),
  ];
  const others = [
    row(of, { ...near, requestId: randomUUID(), settledAt: at(-61) }),
    row(of, { ...near, requestId: randomUUID(), settledAt: at(66) }),
    row(of, { ...near, model: 'm2', requestId: randomUUID(), settledAt: at(1) }),
    row(of, { ...near, model: null, requestId: randomUUID(), settledAt: at(1) }),
    row(of, { model: 'm1', requestId: randomUUID(), settledAt: at(1) }),
    row(await fresh(stack), { ...near, requestId: randomUUID(), settledAt: at(1) }),
    row(of, { ...near, requestId, outcome: 'refunded', settledAt: at(6) }),
  ];
  await stack.db.insert(ledger).values([one, ...similar, ...others]);
  const { data } = await ask<{ data: CallSummary[] }>(of, `/v1/calls/${requestId}/similar`);
  expect(data.map(({ request_id }) => request_id)).toEqual(similar.map((each) => each.requestId).reverse());
  refused(await send(of, { method: 'GET', path: `/v1/calls/${randomUUID()}/similar` }), 'not_found');
  const stranger = await fresh(stack);
  refused(await send(stranger, { method: 'GET', path: `/v1/calls/${requestId}/similar` }), 'not_found');

  const user = randomUUID();
  const { url } = await stack.issue({
    ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real', external_user: user },
    max_uses: 1,
  });
  const body = JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 10, messages: [] });
  const twice = async () => {
    const answered = await fetch(url, { method: 'POST', headers: json, body });
    await answered.text();
    return answered.headers.get('x-presign-request-id') ?? '';
  };
  const [first, second] = [await twice(), await twice()];
  await eventually(async () => (await list(stack, { external_user: user, outcome: 'all' })).length === 2);
  for (const [id, other] of [
    [first, second],
    [second, first],
  ])
    expect(
      (await ask<{ data: CallSummary[] }>(stack, `/v1/calls/${id}/similar`)).data.map(
        (each) => each.request_id,
      ),
    ).toEqual([other]);
});
