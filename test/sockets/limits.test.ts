import {
  type BudgetAnswer,
  budgetAnswer,
  type NewAccountAnswer,
  type VirtualKeyAnswer,
} from '@presign/schema';
import { budgets } from '@presign/schema/tables';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { send } from '../issuer/ask.ts';
import { type HolderSocket, type RefusedHandshake, statusOf } from './holder.ts';
import { begins, createsOf, ends, PROTOCOLS, type Served, type SocketProtocol, turn } from './protocols.ts';

let protocol: SocketProtocol;
let served: Served;
let metrics: Metrics;
let stack: Stack;

const issue = (more: object = {}) => {
  const key = 'virtual_key' in more ? {} : { client_api_key: 'sk-real' };
  return stack.issue({ ...protocol.asked, ...key, ...more });
};
const urlOf = async (more: object = {}) => (await issue(more)).url;
const open = (url: string, headers?: Record<string, string>) => protocol.open(url, headers);
const ask = async (method: string, path: string, body?: object) => {
  const sent = await send(stack, { method, path, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(300);
  return sent.text === '' ? undefined : (JSON.parse(sent.text) as unknown);
};
const budget = async (user: string, more: object): Promise<BudgetAnswer> =>
  budgetAnswer.parse(await ask('POST', '/v1/budgets', { scope: { external_user: user }, ...more }));
const frames = () => createsOf(served);

/** A socket with a turn under way, what the turn holds, and the functions that end such turns. */
async function withTurn(url: string, lane?: string) {
  const pending = served.holdBack();
  const holder = await open(url);
  holder.send(protocol.create(lane));
  await begins(protocol, holder, lane);
  const { held } = await statusOf(url);
  return { holder, pending, held };
}

/** Sends turns until one is refused, at most so many. Returns the outcomes of all. */
async function turnsUntilRefused(holder: HolderSocket, most: number) {
  const outcomes: unknown[] = [];
  while (outcomes.length < most) {
    outcomes.push(await turn(protocol, holder));
    if (outcomes.at(-1) !== 'done') break;
  }
  return outcomes;
}

/** A URL of a user with such a budget. */
const withBudget = async (user: string, limits: object) => {
  await budget(user, { ...limits, visible: false });
  return urlOf({ external_user: user });
};

/** Each limit that a later turn meets, and the code with which the socket closes. Undefined: it stays open. */
const LIMITS: readonly [string, () => Promise<string>, string, number | undefined][] = [
  ['max_uses', () => urlOf({ max_uses: 1 }), 'uses_exhausted', 4402],
  ['cost_limit', () => urlOf({ cost_limit: protocol.money }), 'cost_limit_too_low', undefined],
  ['calls_per_minute', () => urlOf({ calls_per_minute: 1 }), 'rate_limited', undefined],
  ['calls_per_day', () => urlOf({ calls_per_day: 1 }), 'daily_rate_limited', undefined],
  [
    'tokens_per_minute',
    () => urlOf({ tokens_per_minute: protocol.tokens, cost_limit: protocol.muchMoney }),
    'token_rate_limited',
    undefined,
  ],
  ['the uses of a shared budget', () => withBudget('uses', { max_uses: 1 }), 'uses_exhausted', 4402],
  [
    'the tokens of a shared budget',
    () => withBudget('tokens', { tokens: protocol.tokens }),
    'token_limit_too_low',
    undefined,
  ],
  [
    'the money of a shared budget',
    () => withBudget('money', { cost_limit: protocol.money }),
    'cost_limit_too_low',
    undefined,
  ],
  [
    'the budget of a virtual key',
    async () => {
      const asked = { name: 'k', provider: 'openai', key: 'sk-real', budget: { max_uses: 1 } };
      const { id } = (await ask('POST', '/v1/virtual-keys', asked)) as VirtualKeyAnswer;
      return urlOf({ virtual_key: id });
    },
    'uses_exhausted',
    4402,
  ],
];

describe.each(PROTOCOLS)('$name', (each) => {
  beforeAll(async () => {
    protocol = each;
    served = await protocol.start();
    metrics = await serveMetrics('127.0.0.1', 0);
    stack = await startStack({
      providers: { openai: { base_url: served.provider.url } },
      gateway: { meter: metrics.meter },
    });
  });
  afterAll(async () => {
    await stack.close();
    await metrics.close();
    await served.provider.close();
  });
  beforeEach(() => {
    served.endAtOnce();
    served.provider.sockets.length = 0;
  });

  describe('a turn is limited by', () => {
    test.each(LIMITS)('%s', async (_what, issue, code, close) => {
      const holder = await open(await issue());
      const outcomes = await turnsUntilRefused(holder, 120);
      expect(outcomes.length).toBeGreaterThan(1);
      expect(outcomes.at(-1)).toBe(code);
      expect(frames()).toHaveLength(outcomes.length - 1);
      if (close !== undefined) expect(await holder.closed).toEqual({ code: close, reason: code });
      else expect(holder.socket.readyState).toBe(1);
      holder.socket.close();
    });

    test('money that another turn holds, and the socket stays open', async () => {
      const rich = await withTurn(await urlOf({ cost_limit: protocol.muchMoney }));
      rich.holder.socket.terminate();
      rich.pending[0]?.();
      const { holder, pending } = await withTurn(
        await urlOf({ cost_limit: Math.ceil(rich.held * 1.2) }),
        'a',
      );
      expect(await turn(protocol, holder, 'b')).toBe('cost_held');
      pending[0]?.();
      expect(await ends(protocol, holder, 'a')).toBe('done');
      served.endAtOnce();
      expect(await turn(protocol, holder, 'b')).toBe('done');
      holder.socket.close();
    });

    test('the rate limit of its URL, which counts the turns of all its sockets, and no handshakes', async () => {
      const url = await urlOf({ calls_per_minute: 2 });
      const [holder, other] = [await open(url), await open(url)];
      expect([await turn(protocol, holder), await turn(protocol, other)]).toEqual(['done', 'done']);
      expect(await turn(protocol, holder)).toBe('rate_limited');
      for (const { socket } of [holder, other]) socket.close();
    });
  });

  test('a connection takes a place in concurrent_calls until it closes, and its turns take none', async () => {
    const url = await urlOf({ concurrent_calls: 1 });
    const pending = served.holdBack();
    const holder = await open(url);
    const lanes = ['a', 'b', 'c'];
    for (const lane of lanes) holder.send(protocol.create(lane));
    await eventually(async () => pending.length === 3);
    await expect(open(url)).rejects.toMatchObject({ status: 429, code: 'concurrency_limited' });
    for (const end of pending) end();
    for (const lane of lanes) expect(await ends(protocol, holder, lane)).toBe('done');
    await expect(open(url)).rejects.toMatchObject({ status: 429 });
    holder.socket.close();
    await holder.closed;
    const again = await eventually(() => open(url).catch(() => undefined));
    again.socket.close();
  });

  describe('bind', () => {
    const refusalOf = (url: string) =>
      open(url).then(
        (holder) => holder.socket.close(),
        (error: RefusedHandshake) => error,
      );

    test('refuses a handshake from another address', async () => {
      const url = await urlOf({ bind: { ip_ranges: ['192.0.2.0/24'] } });
      expect(await refusalOf(url)).toMatchObject({ status: 403, code: 'address_not_allowed' });
      expect(served.provider.sockets).toHaveLength(0);
    });

    test('lets only a page of a listed origin open a socket, and no other program', async () => {
      const url = await urlOf({ bind: { origins: ['https://app.example.com'] } });
      expect(await refusalOf(url)).toMatchObject({ status: 403, code: 'origin_not_allowed' });
      const holder = await open(url, { origin: 'https://app.example.com' });
      expect(await turn(protocol, holder)).toBe('done');
      expect(served.provider.sockets[0]?.request.headers.origin).toBeUndefined();
      holder.socket.close();
    });
  });

  describe('a change while a socket is open', () => {
    test('suspends its account: its turn is cut with 4403 and charged its hold, and no socket opens', async () => {
      const account = (await ask('POST', '/v1/accounts', { name: 'customer' })) as NewAccountAnswer;
      const sent = await send(stack, {
        apiKey: account.api_key.key,
        body: { ...protocol.asked, client_api_key: 'sk-real', cost_limit: protocol.muchMoney },
      });
      const { url } = JSON.parse(sent.text) as { url: string };
      const idle = await open(url);
      const { holder, held } = await withTurn(url);
      await ask('POST', `/v1/accounts/${account.id}/suspend`);
      expect(await ends(protocol, holder)).toBe('account_suspended');
      for (const each of [holder, idle])
        expect(await each.closed).toEqual({ code: 4403, reason: 'account_suspended' });
      await expect(open(url)).rejects.toMatchObject({ status: 403, code: 'account_suspended' });
      await ask('POST', `/v1/accounts/${account.id}/resume`);
      expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
      served.endAtOnce();
      const again = await open(url);
      expect(await turn(protocol, again)).toBe('done');
      again.socket.close();
    });

    test('that raises a limit lets the next turn of the same socket pass', async () => {
      const { url, grant_id } = await issue({ cost_limit: 1, max_uses: 10 });
      const holder = await open(url);
      expect(await turn(protocol, holder)).toBe('cost_limit_too_low');
      await ask('PATCH', `/v1/grants/${grant_id}`, { cost_limit: protocol.muchMoney });
      expect(await turn(protocol, holder)).toBe('done');
      holder.socket.close();
    });

    test('that sets a limit below the spending refuses the next turn', async () => {
      const { url, grant_id } = await issue({ cost_limit: protocol.muchMoney });
      const holder = await open(url);
      expect(await turn(protocol, holder)).toBe('done');
      await ask('PATCH', `/v1/grants/${grant_id}`, { cost_limit: 1 });
      expect(await turn(protocol, holder)).toBe('cost_limit_reached');
      expect(await holder.closed).toEqual({ code: 4402, reason: 'cost_limit_reached' });
    });

    test("that lowers a limit below a running turn's hold lets the turn end, and starts no other", async () => {
      const { url, grant_id } = await issue({ cost_limit: protocol.muchMoney });
      const { holder, pending } = await withTurn(url, 'a');
      await ask('PATCH', `/v1/grants/${grant_id}`, { cost_limit: 1 });
      expect(['cost_held', 'cost_limit_too_low']).toContain(await turn(protocol, holder, 'b'));
      pending[0]?.();
      expect(await ends(protocol, holder, 'a')).toBe('done');
      expect(frames()).toHaveLength(1);
      holder.socket.close();
    });

    test("that moves the end before a running turn's end lets the turn end, starts no other, and the socket closes", async () => {
      const { url, grant_id } = await issue({ expires_in: 3600, cost_limit: protocol.muchMoney });
      const { holder, pending, held } = await withTurn(url, 'a');
      const end = Math.ceil(Date.now() / 1000) + 4;
      await ask('PATCH', `/v1/grants/${grant_id}`, { expires_at: end });
      await eventually(async () => Date.now() > end * 1000);
      expect(await turn(protocol, holder, 'b')).toBe('token_expired');
      expect(held).toBeGreaterThan(0);
      expect(holder.socket.readyState).toBe(1);
      pending[0]?.();
      expect(await ends(protocol, holder, 'a')).toBe('done');
      expect(await holder.closed).toEqual({ code: 4401, reason: 'token_expired' });
      expect(frames()).toHaveLength(1);
    });

    test("of a shared budget's window during a turn: the turn belongs to the window in which it began", async () => {
      const anchor = Math.ceil(Date.now() / 1000) + 12;
      const shared = await budget('window', { max_uses: 1, window: 'hour', anchor });
      const { holder, pending } = await withTurn(await urlOf({ external_user: 'window' }), 'first');
      await eventually(async () => Date.now() > anchor * 1000 + 200);
      served.endAtOnce();
      expect(await turn(protocol, holder, 'second')).toBe('done');
      pending[0]?.();
      expect(await ends(protocol, holder, 'first')).toBe('done');
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
      expect(await turn(protocol, holder, 'third')).toBe('uses_exhausted');
      expect(await holder.closed).toMatchObject({ code: 4402 });
    });
  });

  test('a visible budget lowers the output bound of a turn, and a hidden one does not', async () => {
    const unbounded = { max_output_tokens: undefined };
    await budget('seen', { cost_limit: protocol.littleMoney, visible: true });
    const holder = await open(await urlOf({ external_user: 'seen' }));
    expect(await turn(protocol, holder, undefined, unbounded)).toBe('done');
    expect(protocol.boundOf(frames()[0] ?? {})).toBeGreaterThan(0);
    holder.socket.close();
    await budget('hidden', { cost_limit: protocol.littleMoney, visible: false });
    const other = await open(await urlOf({ external_user: 'hidden' }));
    expect(await turn(protocol, other, undefined, unbounded)).toBe('cost_limit_too_low');
    other.socket.close();
  });

  test('the metrics report the open sockets as each bound counts them', async () => {
    const figures = async () => {
      const scraped = await scrape(metrics.port);
      return ['gateway', 'account', 'url'].map((bound) =>
        scraped.value(`presign_open_sockets{bound="${bound}"}`),
      );
    };
    await eventually(async () => (await figures()).join() === '0,0,0');
    const [first, second] = [await urlOf(), await urlOf()];
    const holders = [await open(first), await open(first), await open(second)];
    expect(await figures()).toEqual([3, 3, 2]);
    for (const { socket } of holders) socket.close();
    await eventually(async () => (await figures()).join() === '0,0,0');
  });
});
