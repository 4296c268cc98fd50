import { randomBytes } from 'node:crypto';
import { keys } from '@presign/limits';
import { sessionAnswer, type WebhookEvent } from '@presign/schema';
import { grants, sessions, virtualKeys } from '@presign/schema/tables';
import { pendingUsage, webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addVirtualKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, send } from './ask.ts';
import { EAGER, type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import { askVirtualKeys, createVirtualKey } from './virtual-keys.ts';
import { addEndpoint, arrived, type Endpoint, quiet } from './webhook-receiver.ts';

let stack: Stack;
let second: OwnIssuer;
let upstream: Upstream;
const endpoints: Endpoint[] = [];

/** Two issuers drain and deliver. */
beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
  second = await startOwnIssuer(stack, EAGER);
});
afterEach(async () => {
  for (const endpoint of endpoints.splice(0)) {
    await send(stack, { method: 'DELETE', path: `/v1/webhooks/${endpoint.id}` });
    await endpoint.upstream.close();
  }
});
afterAll(async () => {
  await second.close();
  await stack.close();
  await upstream.close();
});

const listen = async (...events: string[]) => {
  const endpoint = await addEndpoint(stack, events.length > 0 ? { events } : {});
  endpoints.push(endpoint);
  return endpoint;
};

/** Adds settled calls to a grant's stream as `settle` writes them. */
async function settle(
  url: string,
  calls: readonly { readonly uses?: number; readonly cost?: number; readonly ovr?: number }[],
): Promise<void> {
  const { prt, jti, sub } = claimsOf(stack, url);
  const [grant] = await stack.db.select().from(grants).where(eq(grants.id, jti));
  const budgets = [grant?.budgetId];
  const together = stack.redis.multi();
  for (const { uses = 1, cost, ovr } of calls) {
    const record = {
      acc: grant?.accountId,
      ses: sub,
      grt: jti,
      prv: 'openai',
      mod: 'm',
      beg: Date.now(),
      ovr,
    };
    const fields = {
      ...{
        hold: randomBytes(16).toString('hex'),
        grant: jti,
        budgets: budgets.join(','),
        uses: String(uses),
      },
      ...{ cost: cost === undefined ? '' : String(cost), outcome: 'settled', record: JSON.stringify(record) },
    };
    together.xadd(keys.usage(prt), '*', ...Object.entries(fields).flat());
  }
  await together.exec();
}

type Data<T extends WebhookEvent['type']> = Extract<WebhookEvent, { type: T }>['data'];
/** The events of one type that an endpoint got, without repeats. */
function told<T extends WebhookEvent['type']>(endpoint: Endpoint, type: T): Data<T>[] {
  const byId = new Map(endpoint.events().map((event, i) => [endpoint.ids()[i], event]));
  return [...byId.values()].filter((event) => event.type === type).map((event) => event.data as Data<T>);
}

describe('a threshold', () => {
  test('announces 50, 80 and 100 percent of each limit once, while two issuers drain', async () => {
    const endpoint = await listen('grant.threshold');
    const { url, session_id } = await issue(stack, {
      max_uses: 10,
      cost_limit: 1_000,
      external_user: 'user-7',
      external_session: 'chat-1',
    });
    await settle(url, [{ uses: 4, cost: 400 }]);
    await settle(url, [{ cost: 99 }]);
    await arrived(endpoint, 1);
    await settle(url, [{ cost: 1 }]);
    await arrived(endpoint, 2);
    // Given back, and used again.
    await settle(url, [
      { uses: -2, cost: -200 },
      { uses: 6, cost: 700 },
    ]);
    await quiet(stack);
    const seen = told(endpoint, 'grant.threshold');
    expect(seen.map(({ limit, percent }) => `${limit} ${percent}`).sort()).toEqual([
      'cost_limit 100',
      'cost_limit 50',
      'cost_limit 80',
      'max_uses 100',
      'max_uses 50',
      'max_uses 80',
    ]);
    expect(seen[0]).toEqual({
      session_id,
      grant_id: claimsOf(stack, url).jti,
      external_session: 'chat-1',
      external_user: 'user-7',
      percent: 50,
      limit: 'max_uses',
      max_uses: 10,
      cost_limit: 1_000,
      settled: expect.objectContaining({ used: 5 }),
    });
  });

  test('announces the budget of a virtual key, and nothing for a URL without limits', async () => {
    const endpoint = await listen('virtual_key.threshold', 'grant.threshold');
    const virtualKey = await addVirtualKey(stack, await ownAccount(stack), { budget: 2 });
    const { url } = await stack.issue({
      provider: 'openai',
      path: '/v1/models',
      method: 'GET',
      virtual_key: virtualKey,
    });
    expect((await fetch(url)).status).toBe(200);
    await arrived(endpoint, 1);
    const [seen] = told(endpoint, 'virtual_key.threshold');
    expect(seen).toEqual({
      virtual_key: virtualKey,
      percent: 50,
      limit: 'max_uses',
      max_uses: 2,
      cost_limit: null,
      settled: { used: 1, spent: expect.any(Number) },
    });
  });
});

describe('session.exhausted', () => {
  test('is announced when the last active grant of a session reaches a limit, and not before', async () => {
    const endpoint = await listen('session.exhausted');
    const first = await issue(stack, { max_uses: 2 });
    const { url } = await issue(stack, { cost_limit: 100, session_id: first.session_id });
    await settle(first.url, [{}, {}]);
    await quiet(stack);
    expect(endpoint.ids()).toEqual([]);
    await settle(url, [{ cost: 100 }]);
    await quiet(stack);
    expect(told(endpoint, 'session.exhausted')).toMatchObject([
      { session_id: first.session_id, grant_id: claimsOf(stack, url).jti, limit: 'cost_limit' },
    ]);
  });

  test('is announced when the only other grant of the session ended with its deleted virtual key', async () => {
    const endpoint = await listen('session.exhausted');
    const { id } = await createVirtualKey(stack);
    const first = await issue(stack, { max_uses: 1 });
    await issue(stack, { client_api_key: undefined, virtual_key: id, session_id: first.session_id });
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    await settle(first.url, [{}]);
    await quiet(stack);
    expect(told(endpoint, 'session.exhausted')).toMatchObject([{ session_id: first.session_id }]);
  });

  test('is announced once when two grants reach their limits at the same moment', async () => {
    const endpoint = await listen('session.exhausted');
    const sessions: string[] = [];
    for (let i = 0; i < 8; i++) {
      const first = await issue(stack, { max_uses: 1 });
      const other = await issue(stack, { max_uses: 1, session_id: first.session_id });
      await Promise.all([settle(first.url, [{}]), settle(other.url, [{}])]);
      sessions.push(first.session_id);
    }
    await quiet(stack);
    expect(
      told(endpoint, 'session.exhausted')
        .map((data) => data.session_id)
        .sort(),
    ).toEqual(sessions.sort());
  });
});

describe('grant.revoked', () => {
  test('announces each grant of a revoked session once, and a bundle by its own grant', async () => {
    const endpoint = await listen('grant.revoked');
    const { url, session_id } = await issue(stack, { max_uses: 3, external_user: 'user-8' });
    await stack.issueMcp({
      session_id,
      servers: [
        { name: 'a', url: 'https://a.example/mcp' },
        { name: 'b', url: 'https://b.example/mcp' },
      ],
    });
    for (let times = 0; times < 2; times++) {
      const revoked = await send(stack, { method: 'DELETE', path: `/v1/sessions/${session_id}` });
      expect(revoked.status, revoked.text).toBe(204);
    }
    await quiet(stack);
    const seen = told(endpoint, 'grant.revoked');
    expect(seen.map((data) => data.kind).sort()).toEqual(['llm', 'mcp_bundle']);
    expect(seen.find((data) => data.kind === 'llm')).toMatchObject({
      grant_id: claimsOf(stack, url).jti,
      session_id,
      provider: 'openai',
      external_user: 'user-8',
      max_uses: 3,
      cost_limit: null,
      settled: { used: 0, spent: 0 },
      reason: 'revoked',
    });
  });

  test('announces a grant that the service ended because a call cost more than its hold', async () => {
    const endpoint = await listen('grant.revoked');
    const { url } = await issue(stack, { cost_limit: 1_000 });
    await settle(url, [
      { cost: 10, ovr: 5 },
      { cost: 10, ovr: 5 },
    ]);
    await quiet(stack);
    expect(told(endpoint, 'grant.revoked')).toMatchObject([
      { grant_id: claimsOf(stack, url).jti, reason: 'overrun', settled: { used: 2, spent: 20 } },
    ]);
  });

  test('is not announced for a grant that its deleted virtual key had ended, if it is revoked again or overrun', async () => {
    const endpoint = await listen('grant.revoked');
    const { id } = await createVirtualKey(stack);
    const fields = { client_api_key: undefined, virtual_key: id, cost_limit: 1_000, external_user: 'user-9' };
    const ways = ['grants', 'sessions', 'users', 'overrun'] as const;
    const [one, session, user, over] = await Promise.all(ways.map(() => issue(stack, fields)));
    if (!one || !session || !user || !over) throw new Error('not issued');
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    await settle(over.url, [{ cost: 10, ovr: 5 }]);
    await quiet(stack);
    for (const path of [
      `/v1/grants/${claimsOf(stack, one.url).jti}`,
      `/v1/sessions/${session.session_id}`,
      '/v1/sessions?external_user=user-9',
    ])
      expect((await send(stack, { method: 'DELETE', path })).status).toBe(204);
    const fence = await issue(stack, {});
    await send(stack, { method: 'DELETE', path: `/v1/sessions/${fence.session_id}` });
    await quiet(stack);
    expect(told(endpoint, 'grant.revoked').map((data) => data.session_id)).toEqual([fence.session_id]);
    for (const { session_id } of [one, session, user, over])
      expect(await statusOf(session_id)).toBe('revoked');
  });
});

describe('grant.expired', () => {
  test('announces each expired grant once, a bundle by its own, and no grant that was revoked or expired before', async () => {
    const expire = (sessionId: string) =>
      stack.db.update(grants).set({ expiresAt: sql`now()` }).where(eq(grants.sessionId, sessionId));
    const before = await issue(stack, {});
    await expire(before.session_id);
    const endpoint = await listen('grant.expired');
    const revoked = await issue(stack, {});
    await send(stack, { method: 'DELETE', path: `/v1/sessions/${revoked.session_id}` });
    await expire(revoked.session_id);
    const { url, session_id } = await issue(stack, { expires_in: 2 });
    const { jti, exp } = claimsOf(stack, url);
    const bundle = await stack.issueMcp({ servers: [{ name: 'a', url: 'https://a.example/mcp' }] });
    await expire(bundle.session_id);
    await arrived(endpoint, 2);
    await quiet(stack);
    const seen = told(endpoint, 'grant.expired');
    expect(seen.map((data) => data.session_id).sort()).toEqual([session_id, bundle.session_id].sort());
    const one = seen.find((data) => data.kind === 'llm');
    expect(one).toMatchObject({ grant_id: jti, expires_at: new Date(exp).toISOString() });
    expect(seen.filter((data) => data.kind === 'mcp_bundle')).toHaveLength(1);
  });
});

/** The expiry of a session's grants, without waiting for it. */
const expireAt = (sessionId: string, at: Date) =>
  stack.db.update(grants).set({ expiresAt: at }).where(eq(grants.sessionId, sessionId));

describe('grant.expired', () => {
  test('is not announced for a grant that its deleted virtual key had revoked before', async () => {
    const endpoint = await listen('grant.expired');
    const { id } = await createVirtualKey(stack);
    const { session_id } = await issue(stack, { client_api_key: undefined, virtual_key: id });
    expect((await askVirtualKeys(stack, 'DELETE', `/${id}`)).status).toBe(204);
    const [key] = await stack.db.select().from(virtualKeys).where(eq(virtualKeys.id, id));
    const after = new Date((key?.revokedAt?.getTime() ?? 0) + 1);
    await eventually(async () => (Date.now() > after.getTime() ? true : undefined));
    await expireAt(session_id, after);
    const fence = await issue(stack, {});
    await expireAt(fence.session_id, after);
    await quiet(stack);
    expect(told(endpoint, 'grant.expired').map((data) => data.session_id)).toEqual([fence.session_id]);
    expect(await statusOf(session_id)).toBe('revoked');
  });

  test('is announced for a grant that expired just before its session was revoked', async () => {
    const endpoint = await listen('grant.expired');
    const { session_id } = await issue(stack, {});
    await stack.db.transaction(async (tx) => {
      await tx.update(grants).set({ expiresAt: sql`now()` }).where(eq(grants.sessionId, session_id));
      await tx.update(sessions).set({ revokedAt: sql`now()` }).where(eq(sessions.id, session_id));
    });
    await arrived(endpoint, 1);
    expect(told(endpoint, 'grant.expired')).toMatchObject([{ session_id }]);
    expect(await statusOf(session_id)).toBe('expired');
  });
});

/** The status that the API shows for the only grant of a session. */
async function statusOf(sessionId: string): Promise<string | undefined> {
  const sent = await send(stack, { method: 'GET', path: `/v1/sessions/${sessionId}` });
  return sessionAnswer.parse(JSON.parse(sent.text)).grants[0]?.status;
}

describe('usage.settled', () => {
  test("announces every settled call in one event, with many calls in each, and with the ledger's figures", async () => {
    const endpoint = await listen('usage.settled');
    const { url, session_id } = await issue(stack, {});
    const costs = Array.from({ length: 130 }, (_, i) => ({ cost: i }));
    await settle(url, [...costs, { uses: -1, cost: -7 }, {}]);
    await quiet(stack);
    const events = told(endpoint, 'usage.settled');
    const calls = events.flatMap((event) => event.calls);
    expect(calls).toHaveLength(132);
    expect(new Set(calls.map((call) => call.id)).size).toBe(132);
    expect(calls.reduce((sum, call) => sum + (call.cost ?? 0), 0)).toBe((129 * 130) / 2 - 7);
    expect(calls.filter((call) => call.cost === null)).toHaveLength(1);
    expect(calls.every((call) => call.session_id === session_id && call.model === 'm')).toBe(true);
    expect(events.length).toBeLessThan(20);
    const longest = Math.max(...endpoint.upstream.seen.map((seen) => seen.body.length));
    expect(longest).toBeLessThan(20_000);
  });
});

describe('an account', () => {
  const rowsOf = (accountId: string) =>
    stack.db.select().from(webhookEvents).where(eq(webhookEvents.accountId, accountId));

  test('without an endpoint leaves no rows, and gets no event from before its first endpoint', async () => {
    const own = await ownAccount(stack);
    const before = (await rowsOf(own)).length;
    const { url, session_id } = await issue(stack, { max_uses: 2, expires_in: 1 });
    await settle(url, [{}, {}]);
    await callsSettled(stack);
    await send(stack, { method: 'DELETE', path: `/v1/sessions/${session_id}` });
    expect(await rowsOf(own)).toHaveLength(before);
    expect(await stack.db.select().from(pendingUsage)).toEqual([]);
    const endpoint = await listen();
    await quiet(stack);
    expect(endpoint.ids()).toEqual([]);
  });

  test('gets only its own events, and each endpoint only its subscribed types', async () => {
    const other = await addAccount(stack);
    const usage = await listen('usage.settled');
    const thresholds = await listen('grant.threshold', 'session.exhausted');
    const all = await listen();
    const body = { provider: 'openai', path: '/v1/models', client_api_key: 'sk-1', max_uses: 1 };
    const foreign = await send(stack, { apiKey: other.apiKey, body });
    expect(foreign.status, foreign.text).toBe(200);
    await settle((JSON.parse(foreign.text) as { url: string }).url, [{}]);
    const { url } = await issue(stack, { max_uses: 1 });
    await settle(url, [{}]);
    await quiet(stack);
    const types = (endpoint: Endpoint) =>
      endpoint
        .events()
        .map((event) => event.type)
        .sort();
    expect(types(usage)).toEqual(['usage.settled']);
    const levels = Array.from({ length: 3 }, () => 'grant.threshold');
    expect(types(thresholds)).toEqual([...levels, 'session.exhausted']);
    expect(types(all)).toEqual([...levels, 'session.exhausted', 'usage.settled']);
    expect(await rowsOf(other.id)).toEqual([]);
  });

  test('whose endpoint is being deleted blocks neither a revocation nor the ledger', async () => {
    const endpoint = await listen();
    const [url, other] = [
      (await issue(stack, { max_uses: 9 })).url,
      (await issue(stack, { max_uses: 1 })).url,
    ];
    await settle(other, [{}]);
    let asked = Promise.resolve<unknown>(undefined);
    await stack.db.transaction(async (tx) => {
      await tx.delete(webhooks).where(eq(webhooks.id, endpoint.id));
      // It sees the endpoint, and can write for it only once the endpoint is gone.
      asked = send(stack, { method: 'DELETE', path: `/v1/grants/${claimsOf(stack, url).jti}` });
      await othersWait(stack, tx);
    });
    expect(await asked).toMatchObject({ status: 204 });
    await stack.issuer.ledger.drainAll();
    expect(stack.logs.filter((line) => line.includes('ledger is behind'))).toEqual([]);
  });
});
