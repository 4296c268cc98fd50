import { type BudgetAnswer, budgetAnswer, type NewAccountAnswer } from '@presign/schema';
import { budgets } from '@presign/schema/tables';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { send } from '../issuer/ask.ts';
import { CREATE, codeOf, type HolderSocket, openSocket, type RefusedHandshake, statusOf } from './holder.ts';
import { eventsOf, type Json, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

let provider: ResponsesProvider;
let metrics: Metrics;
let stack: Stack;
let serve: ResponsesProvider['serve'];
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
  metrics = await serveMetrics('127.0.0.1', 0);
  stack = await startStack({
    providers: { openai: { base_url: provider.url } },
    gateway: { meter: metrics.meter },
  });
});
afterAll(async () => {
  await stack.close();
  await metrics.close();
  await provider.close();
});
/** Ends the responses that wait. */
let pending: (() => void)[] = [];
const holdBack: ResponsesProvider['serve'] = (event, { socket }) => {
  const [created, ...rest] = eventsOf(event);
  socket.send(JSON.stringify(created));
  pending.push(() => {
    for (const each of rest) socket.send(JSON.stringify(each));
  });
};
beforeEach(() => {
  provider.serve = serve;
  provider.sockets.length = 0;
  pending = [];
});

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
const urlOf = async (more: object = {}) => (await stack.issue({ ...ASK, ...more })).url;
const ask = async (method: string, path: string, body?: object) => {
  const sent = await send(stack, { method, path, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(300);
  return sent.text === '' ? undefined : (JSON.parse(sent.text) as unknown);
};
const budget = async (user: string, more: object): Promise<BudgetAnswer> =>
  budgetAnswer.parse(await ask('POST', '/v1/budgets', { scope: { external_user: user }, ...more }));

/** Sends turns until one is refused, at most so many. Returns the codes of all. */
async function turnsUntilRefused(holder: HolderSocket, most: number, event: Json = CREATE) {
  const codes: unknown[] = [];
  while (codes.length < most) {
    codes.push(codeOf(await holder.turn(event)));
    if (codes.at(-1) !== 'response.completed') break;
  }
  return codes;
}

/** Each limit that a second turn meets, and whether the socket closes. */
const LIMITS: readonly [string, () => Promise<string>, string, number | undefined][] = [
  ['max_uses', () => urlOf({ max_uses: 1 }), 'uses_exhausted', 4402],
  ['calls_per_minute', () => urlOf({ calls_per_minute: 1 }), 'rate_limited', undefined],
  ['calls_per_day', () => urlOf({ calls_per_day: 1 }), 'daily_rate_limited', undefined],
  [
    'tokens_per_minute',
    () => urlOf({ tokens_per_minute: 1_000, cost_limit: 1_000_000 }),
    'token_rate_limited',
    undefined,
  ],
  [
    'the uses of a shared budget',
    async () => {
      await budget('uses', { max_uses: 1, visible: false });
      return urlOf({ external_user: 'uses' });
    },
    'uses_exhausted',
    4402,
  ],
  [
    'the tokens of a shared budget',
    async () => {
      await budget('tokens', { tokens: 1_000, visible: false });
      return urlOf({ external_user: 'tokens' });
    },
    'token_limit_too_low',
    undefined,
  ],
  [
    'the money of a shared budget',
    async () => {
      await budget('money', { cost_limit: 200, visible: false });
      return urlOf({ external_user: 'money' });
    },
    'cost_limit_too_low',
    undefined,
  ],
];

describe('a turn meets', () => {
  test.each(LIMITS)('%s', async (_what, issue, code, close) => {
    const holder = await openSocket(await issue());
    const codes = await turnsUntilRefused(holder, 120);
    expect(codes.length).toBeGreaterThan(1);
    expect(codes.at(-1)).toBe(code);
    expect(provider.frames()).toHaveLength(codes.length - 1);
    if (close !== undefined) expect(await holder.closed).toEqual({ code: close, reason: code });
    else expect(holder.socket.readyState).toBe(1);
    holder.socket.close();
  });
});

describe('bind', () => {
  const refusalOf = (url: string, headers: Record<string, string>) =>
    openSocket(url, { headers }).then(
      (holder) => holder.socket.close(),
      (error: RefusedHandshake) => error,
    );

  test('a handshake from another address is refused', async () => {
    const url = await urlOf({ bind: { ip_ranges: ['192.0.2.0/24'] } });
    expect(await refusalOf(url, {})).toMatchObject({ status: 403, code: 'address_not_allowed' });
    expect(provider.sockets).toHaveLength(0);
  });

  test('a page of one of the origins opens a socket, and no other program', async () => {
    const url = await urlOf({ bind: { origins: ['https://app.example.com'] } });
    expect(await refusalOf(url, {})).toMatchObject({ status: 403, code: 'origin_not_allowed' });
    const holder = await openSocket(url, { headers: { origin: 'https://app.example.com' } });
    expect(codeOf(await holder.turn())).toBe('response.completed');
    expect(provider.sockets[0]?.request.headers.origin).toBeUndefined();
    holder.socket.close();
  });
});

describe('a change while a socket is open', () => {
  test('a suspended account: its turn is cut with 4403 and charged its hold, and no socket opens', async () => {
    const account = (await ask('POST', '/v1/accounts', { name: 'customer' })) as NewAccountAnswer;
    const sent = await send(stack, {
      apiKey: account.api_key.key,
      body: { ...ASK, cost_limit: 100_000 },
    });
    const { url } = JSON.parse(sent.text) as { url: string };
    provider.serve = holdBack;
    const holder = await openSocket(url);
    const idle = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    const { held } = await statusOf(url);
    await ask('POST', `/v1/accounts/${account.id}/suspend`);
    expect(codeOf(await holder.next('error'))).toBe('account_suspended');
    for (const each of [holder, idle])
      expect(await each.closed).toEqual({ code: 4403, reason: 'account_suspended' });
    await expect(openSocket(url)).rejects.toMatchObject({ status: 403, code: 'account_suspended' });
    await ask('POST', `/v1/accounts/${account.id}/resume`);
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
    provider.serve = serve;
    const again = await openSocket(url);
    expect(codeOf(await again.turn())).toBe('response.completed');
    again.socket.close();
  });

  test('a limit that is raised lets the next turn of the same socket pass', async () => {
    const { url, grant_id } = await stack.issue({ ...ASK, cost_limit: 1, max_uses: 10 });
    const holder = await openSocket(url);
    expect(codeOf(await holder.turn())).toBe('cost_limit_too_low');
    await ask('PATCH', `/v1/grants/${grant_id}`, { cost_limit: 100_000 });
    expect(codeOf(await holder.turn())).toBe('response.completed');
    holder.socket.close();
  });

  test('a limit that is lowered under what a running turn holds: the turn ends, and no other begins', async () => {
    const { url, grant_id } = await stack.issue({ ...ASK, cost_limit: 100_000 });
    provider.serve = holdBack;
    const holder = await openSocket(url);
    holder.send({ ...CREATE, stream_id: 'a' });
    await holder.next('response.created');
    await ask('PATCH', `/v1/grants/${grant_id}`, { cost_limit: 1 });
    holder.send({ ...CREATE, stream_id: 'b' });
    expect(['cost_held', 'cost_limit_too_low']).toContain(codeOf(await holder.next('error')));
    pending[0]?.();
    expect(codeOf(await holder.next('response.completed'))).toBe('response.completed');
    expect(provider.frames()).toHaveLength(1);
    holder.socket.close();
  });

  test('an end that is brought forward closes the socket once its turn is over', async () => {
    const { url, grant_id } = await stack.issue({ ...ASK, expires_in: 3600 });
    provider.serve = holdBack;
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    await ask('PATCH', `/v1/grants/${grant_id}`, { expires_at: Math.ceil(Date.now() / 1000) + 2 });
    provider.serve = serve;
    const refused = await eventually(async () => {
      const code = codeOf(await holder.turn({ ...CREATE, stream_id: 'b' }));
      return code !== 'response.completed' && code;
    });
    expect(refused).toBe('token_expired');
    pending[0]?.();
    await holder.next((each) => each.type === 'response.completed' && each.stream_id === undefined);
    expect(await holder.closed).toMatchObject({ code: 4401 });
  });

  test('a window of a shared budget that ends under a turn: the turn is of the window in which it began', async () => {
    const anchor = Math.ceil(Date.now() / 1000) + 12;
    const shared = await budget('window', { max_uses: 1, window: 'hour', anchor });
    const holder = await openSocket(await urlOf({ external_user: 'window' }));
    provider.serve = holdBack;
    holder.send({ ...CREATE, stream_id: 'first' });
    await holder.next('response.created');
    await eventually(async () => Date.now() > anchor * 1000 + 200);
    provider.serve = serve;
    expect(codeOf(await holder.turn({ ...CREATE, stream_id: 'second' }))).toBe('response.completed');
    pending[0]?.();
    await holder.next((each) => each.type === 'response.completed' && each.stream_id === 'first');
    const used = await eventually(async () => {
      await stack.issuer.ledger.drainAll();
      const rows = await stack.db
        .select()
        .from(budgets)
        .where(eq(budgets.sharedId, shared.id))
        .orderBy(budgets.startsAt);
      const uses = rows.map((row) => row.used);
      return uses.reduce((sum, each) => sum + each, 0) === 2 && uses;
    });
    expect(used).toEqual([1, 1]);
    expect(codeOf(await holder.turn({ ...CREATE, stream_id: 'third' }))).toBe('uses_exhausted');
    expect(await holder.closed).toMatchObject({ code: 4402 });
  });
});

test('a visible budget lowers the output bound of a turn, and a hidden one does not', async () => {
  const { max_output_tokens: _, ...unbounded } = CREATE;
  await budget('seen', { cost_limit: 2_000, visible: true });
  const holder = await openSocket(await urlOf({ external_user: 'seen' }));
  expect(codeOf(await holder.turn(unbounded))).toBe('response.completed');
  expect(provider.frames()[0]?.max_output_tokens).toBeGreaterThan(0);
  holder.socket.close();
  await budget('hidden', { cost_limit: 2_000, visible: false });
  const other = await openSocket(await urlOf({ external_user: 'hidden' }));
  expect(codeOf(await other.turn(unbounded))).toBe('cost_limit_too_low');
  other.socket.close();
});

test('the metrics state the open sockets as each bound counts them', async () => {
  const figures = async () => {
    const scraped = await scrape(metrics.port);
    return ['gateway', 'account', 'url'].map((bound) =>
      scraped.value(`presign_open_sockets{bound="${bound}"}`),
    );
  };
  await eventually(async () => (await figures()).join() === '0,0,0');
  const [first, second] = [await urlOf(), await urlOf()];
  const holders = [await openSocket(first), await openSocket(first), await openSocket(second)];
  expect(await figures()).toEqual([3, 3, 2]);
  for (const { socket } of holders) socket.close();
  await eventually(async () => (await figures()).join() === '0,0,0');
});
