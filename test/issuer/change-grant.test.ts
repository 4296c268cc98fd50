import { randomInt, randomUUID } from 'node:crypto';
import { connectRedis, keys } from '@presign/limits';
import { changedGrant, type GrantChange, grantAnswer, LIMIT_NAMES, limitKind } from '@presign/schema';
import { audit, budgets, grants, pendingChanges } from '@presign/schema/tables';
import { desc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { thorough } from '../harness/thorough.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, refused, type Sent, send } from './ask.ts';
import { startCutOffIssuer } from './issuer-process.ts';
import { EAGER, startOwnIssuer } from './own-issuer.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';

let upstream: Upstream;
let stack: Stack;
let takeAway = async () => {};
/** Resolves when the upstream may answer a call whose body says `hold`. */
let held = deferred();

beforeAll(async () => {
  if (canReachDatabase) takeAway = await reachableDatabase();
  upstream = await startUpstream(async (seen, response, request) => {
    if (seen.body.includes('"hold"')) await held.promise;
    await answerChat(seen, response, request);
  });
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await takeAway();
});

type To = Pick<Stack, 'issuerUrl' | 'apiKey'>;
const idOf = (url: string) => claimsOf(stack, url).jti;
const patch = (id: string, body: GrantChange | object, more: object = {}, to: To = stack): Promise<Sent> =>
  send(to, { method: 'PATCH', path: `/v1/grants/${id}`, body, ...more });
const read = async (id: string) => {
  const sent = await send(stack, { method: 'GET', path: `/v1/grants/${id}` });
  expect(sent.status, sent.text).toBe(200);
  expect(sent.headers.get('etag')).toBe(`"${grantAnswer.parse(JSON.parse(sent.text)).revision}"`);
  return grantAnswer.parse(JSON.parse(sent.text));
};
/** A change that must succeed. */
const change = async (url: string, body: GrantChange) => {
  const sent = await patch(idOf(url), body);
  expect(sent.status, sent.text).toBe(200);
  return changedGrant.parse(JSON.parse(sent.text));
};

type Failed = { readonly error?: { readonly code: string; readonly message: string } };

/** Calls a URL through a gateway. */
async function ask(url: string, gateway = 0, content = 'hello'): Promise<Failed> {
  const at = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
  const answer = await fetch(at, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 100, messages: [{ role: 'user', content }] }),
  });
  return (await answer.json()) as Failed;
}
/** `ok`, or the code of the refusal. */
const call = async (...args: Parameters<typeof ask>) => (await ask(...args)).error?.code ?? 'ok';
const messageOf = async (url: string) => (await ask(url)).error?.message;
const onBoth = async (url: string) => [await call(url, 0), await call(url, 1)];
const statusOf = async (url: string) => (await fetch(url.slice(0, url.indexOf('/v1/')))).json();
const seconds = (ahead: number) => Math.floor(Date.now() / 1000) + ahead;

describe('a changed URL', () => {
  test('that was spent passes its next call on every gateway once its limit is raised', async () => {
    const { url } = await issue(stack, { max_uses: 2 });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    expect(await onBoth(url)).toEqual(['uses_exhausted', 'uses_exhausted']);
    const changed = await change(url, { max_uses: 4, metadata: { plan: 'more' } });
    expect(changed).toMatchObject({ max_uses: 4, revision: 2, metadata: { plan: 'more' }, url: null });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    expect(await call(url)).toBe('uses_exhausted');
  });

  test('that is lowered to 0 lets the call in flight finish, and starts no other', async () => {
    held = deferred();
    const { url } = await issue(stack, { max_uses: 9, cost_limit: 1_000_000 });
    const before = upstream.seen.length;
    const running = call(url, 0, 'hold');
    await eventually(async () => upstream.seen.length > before);
    await change(url, { cost_limit: 0 });
    expect(await onBoth(url)).toEqual(['cost_limit_reached', 'cost_limit_reached']);
    await change(url, { max_uses: 0 });
    expect(await onBoth(url)).toEqual(['uses_exhausted', 'uses_exhausted']);
    held.resolve();
    expect(await running).toBe('ok');
    expect(upstream.seen.length).toBe(before + 1);
  });

  test.each(LIMIT_NAMES)('can get a first %s, a higher and a lower one, and lose it', async (name) => {
    const { url } = await issue(stack, {});
    expect(await call(url)).toBe('ok');
    const asked = name === 'max_uses' ? [null, -1] : [null];
    for (const limit of [5, 7, limitKind(name).least, ...asked]) {
      const shown = limit === -1 ? null : limit;
      expect(await change(url, { [name]: limit })).toMatchObject({ [name]: shown });
      expect(await read(idOf(url))).toMatchObject({ [name]: shown });
      expect(await statusOf(url)).toMatchObject({ [name]: shown });
    }
    expect(await call(url)).toBe('ok');
  });

  test('that is shortened ends on every gateway at its new end, and shows its holder the new end', async () => {
    const { url } = await issue(stack, { expires_in: 600 });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    const end = seconds(3);
    expect(await change(url, { expires_at: end })).toMatchObject({ expires_at: end, url: null });
    const status = await fetch(url.slice(0, url.indexOf('/v1/')));
    expect(await status.json()).toMatchObject({ expires_at: end });
    await eventually(async () => (await call(url)) === 'token_expired');
    expect(Date.now()).toBeGreaterThanOrEqual(end * 1000);
    expect(await call(url, 1)).toBe('token_expired');
    refused(await patch(idOf(url), { expires_at: seconds(60) }), 'grant_ended');
  });

  test('that is shortened can, before it ends, be extended again up to the end of its token', async () => {
    const { url, expires_at: end } = await issue(stack, { expires_in: 600 });
    await change(url, { expires_at: seconds(60) });
    expect(await change(url, { expires_at: end })).toMatchObject({ expires_at: end, url });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
  });

  test("that is extended beyond its token gets a new URL for the same budget; the old URL ends at its token's end", async () => {
    const { url } = await issue(stack, { expires_in: 4, max_uses: 3 });
    expect(await call(url)).toBe('ok');
    const end = seconds(600);
    const { url: next, id } = await change(url, { expires_at: end });
    expect(next).not.toBe(url);
    expect(idOf(next ?? '')).toBe(id);
    expect((await change(next ?? '', { expires_at: end })).url).toBe(next);
    expect(await call(next ?? '', 1)).toBe('ok');
    const statusUrl = url.slice(0, url.indexOf('/v1/'));
    await eventually(async () => (await fetch(statusUrl)).status === 401);
    expect(await onBoth(url)).toEqual(['token_expired', 'token_expired']);
    expect(await onBoth(next ?? '')).toEqual(['ok', 'uses_exhausted']);
    const row = await stack.db.select().from(grants).where(eq(grants.id, id));
    const lives = await stack.redis.pttl(keys.budget(claimsOf(stack, url).prt, row[0]?.budgetId ?? ''));
    expect(lives).toBeGreaterThan(25 * 3_600_000);
  });

  test('that gets a first tokens_per_minute obeys it for calls with a bound', async () => {
    const { url } = await issue(stack, {});
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    await change(url, { tokens_per_minute: 1 });
    expect(await onBoth(url)).toEqual(['limits_unavailable', 'limits_unavailable']);
    expect(await onBoth(url)).toEqual(['token_rate_too_low', 'token_rate_too_low']);
    await change(url, { tokens_per_minute: 10_000 });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    const { url: uncounted } = await issue(stack, { path: '/v1/batches' });
    refused(await patch(idOf(uncounted), { tokens_per_minute: 5 }), 'invalid_request', 'tokens_per_minute');
  });

  test('whose concurrent_calls are lowered below the calls in flight lets them finish, and starts none', async () => {
    held = deferred();
    const { url } = await issue(stack, { concurrent_calls: 3 });
    const before = upstream.seen.length;
    const running = [call(url, 0, 'hold'), call(url, 1, 'hold')];
    await eventually(async () => upstream.seen.length > before + 1);
    await change(url, { concurrent_calls: 1 });
    expect(await onBoth(url)).toEqual(['concurrency_limited', 'concurrency_limited']);
    await change(url, { concurrent_calls: 3 });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    held.resolve();
    expect(await Promise.all(running)).toEqual(['ok', 'ok']);
  });

  test('that gateways have cached without a limit obeys its first limit, and no limit once it is removed', async () => {
    const { url } = await issue(stack, {});
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    await change(url, { cost_limit: 1_000_000 });
    // Each gateway plans the next call with the limit.
    expect(await onBoth(url)).toEqual(['limits_unavailable', 'limits_unavailable']);
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
    await change(url, { cost_limit: 1 });
    expect(await onBoth(url)).toEqual(['cost_limit_reached', 'cost_limit_reached']);
    await change(url, { cost_limit: null });
    expect(await onBoth(url)).toEqual(['ok', 'ok']);
  });

  test('does not apply its first limit until the gateway has read it', async () => {
    const { url } = await issue(stack, {});
    expect(await call(url)).toBe('ok');
    await change(url, { cost_limit: 1_000_000 });
    const [row] = await stack.db
      .select()
      .from(grants)
      .where(eq(grants.id, idOf(url)));
    const budget = keys.budget(claimsOf(stack, url).prt, row?.budgetId ?? '');
    const revision = await stack.redis.hget(budget, 'revision');
    // As when a gateway has read Postgres before a change, or before the ledger went on.
    await stack.redis.hset(budget, 'revision', 99);
    expect(await messageOf(url)).not.toContain('limits of this URL changed');
    await stack.redis.hset(budget, 'revision', revision ?? '');
    expect(await messageOf(url)).toContain('limits of this URL changed');
    expect(await call(url)).toBe('ok');
  });

  test('that no gateway has loaded is called within the new limits, not those of its seed', async () => {
    const { url } = await issue(stack, { max_uses: 5 });
    await change(url, { max_uses: 1 });
    expect(await onBoth(url)).toEqual(['ok', 'uses_exhausted']);
  });
});

describe('a change', () => {
  test('is refused if it names another revision, and changes nothing', async () => {
    const { url } = await issue(stack, { max_uses: 5 });
    const id = idOf(url);
    expect((await patch(id, { max_uses: 6 }, { headers: { 'if-match': '"1"' } })).status).toBe(200);
    const late = await patch(id, { max_uses: 7 }, { headers: { 'if-match': '"1"' } });
    refused(late, 'revision_mismatch', 'If-Match');
    expect(await read(id)).toMatchObject({ max_uses: 6, revision: 2 });
    for (const tags of ['*', '"9", "2"'])
      expect((await patch(id, { max_uses: 6 }, { headers: { 'if-match': tags } })).status).toBe(200);
    // The same values again are no change.
    expect(await read(id)).toMatchObject({ max_uses: 6, revision: 2 });
  });

  test("of an ended URL, of another account's URL, or by a key that may not issue, is refused", async () => {
    const { url } = await issue(stack, {});
    const id = idOf(url);
    refused(await patch(id, { max_uses: 1 }, { apiKey: (await addAccount(stack)).apiKey }), 'not_found');
    const reader = await addApiKey(stack, await ownAccount(stack), { scopes: ['read'] });
    refused(await patch(id, { max_uses: 1 }, { apiKey: reader }), 'forbidden');
    refused(await patch(randomUUID(), { max_uses: 1 }), 'not_found');
    await send(stack, { method: 'DELETE', path: `/v1/grants/${id}` });
    refused(await patch(id, { max_uses: 9 }), 'grant_ended');
    expect(await call(url)).toBe('grant_revoked');
    expect(await read(id)).toMatchObject({ status: 'revoked', revision: 1 });
  });

  test('by an API key with a policy can lower and shorten, but not raise and extend', async () => {
    const { url } = await issue(stack, { max_uses: 5, expires_in: 600 });
    const id = idOf(url);
    const policy = { required: ['max_uses'] } as never;
    const scopes = ['presign', 'read'];
    const apiKey = await addApiKey(stack, await ownAccount(stack), { policy, scopes });
    const raises = { max_uses: 6, expires_at: seconds(900) };
    for (const [name, value] of Object.entries(raises))
      refused(await patch(id, { [name]: value }, { apiKey }), 'policy_forbids', name);
    for (const max_uses of [-1, null])
      refused(await patch(id, { max_uses }, { apiKey }), 'policy_forbids', 'max_uses');
    expect((await patch(id, { max_uses: 4, cost_limit: 9 }, { apiKey })).status).toBe(200);
    refused(await patch(id, { cost_limit: null }, { apiKey }), 'policy_forbids', 'cost_limit');
    expect(await read(id)).toMatchObject({ max_uses: 4, cost_limit: 9, revision: 2 });
  });

  test('with a wrong value names the field', async () => {
    const id = idOf((await issue(stack, {})).url);
    const wrong = {
      ...Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitKind(name).least - 1])),
      max_uses: -2,
      expires_at: seconds(-5),
      metadata: [],
    };
    for (const [name, value] of Object.entries(wrong))
      refused(await patch(id, { [name]: value }), 'invalid_request', name);
    refused(await patch(id, { expires_at: seconds(400 * 86_400) }), 'invalid_request', 'expires_at');
    refused(await patch(id, { external_user: 'x' }), 'invalid_request', 'external_user');
    refused(await patch(id, {}), 'invalid_request');
    expect(await read(id)).toMatchObject({ revision: 1 });
  });

  test('of a bundle accepts the limits that a bundle can have', async () => {
    const bundle = async (...transports: string[]) => {
      const servers = transports.map((transport, i) => ({
        name: `${i}`,
        url: 'https://mcp.example.com/',
        transport,
      }));
      return (await stack.issueMcp({ servers })).grant_id;
    };
    const [http, mixed] = [await bundle('http', 'http'), await bundle('http', 'sse')];
    for (const name of LIMIT_NAMES) {
      const sent = await patch(http, { [name]: 2 });
      if (limitKind(name).urls === 'all') expect(sent.status, sent.text).toBe(200);
      else refused(sent, 'invalid_request', name);
    }
    refused(await patch(mixed, { concurrent_calls: 2 }), 'invalid_request', 'concurrent_calls');
    expect((await patch(mixed, { concurrent_calls: null, max_uses: 2 })).status).toBe(200);
  });

  test('records its limits and its end before and after in the audit log, without the metadata', async () => {
    const { url } = await issue(stack, { max_uses: 5 });
    await change(url, { max_uses: 6, metadata: { secret: 'sk-in-metadata' } });
    const [row] = await stack.db.select().from(audit).orderBy(desc(audit.at)).limit(1);
    expect(row).toMatchObject({ action: 'grant.changed', targetId: idOf(url) });
    expect(row).toMatchObject({ before: { max_uses: 5 }, after: { max_uses: 6, metadata: 'changed' } });
    expect(JSON.stringify(row)).not.toContain('sk-in-metadata');
  });

  test('answers 202 when Redis is down, and takes effect without a retry', async () => {
    const { url } = await issue(stack, { max_uses: 9 });
    expect(await call(url)).toBe('ok');
    const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
    const cutOff = await startOwnIssuer(stack, { redis });
    const sent = await patch(idOf(url), { max_uses: 1 }, {}, cutOff);
    expect([sent.status, sent.text]).toEqual([202, '{"status":"pending"}']);
    await eventually(async () => (await call(url)) === 'uses_exhausted');
    await cutOff.close();
    redis.disconnect();
  });

  test.skipIf(!canReachDatabase)(
    'takes effect although its issuer is killed between Postgres and Redis',
    async () => {
      const { url } = await issue(stack, { max_uses: 1_000 });
      expect(await call(url)).toBe('ok');
      const issuer = await startCutOffIssuer(stack);
      const cut = expect(patch(idOf(url), { max_uses: 0 }, {}, issuer)).rejects.toThrow();
      const [grant] = await stack.db
        .select()
        .from(grants)
        .where(eq(grants.id, idOf(url)));
      // Changes of other tests may be on their way, too.
      const own = eq(pendingChanges.budgetId, grant?.budgetId ?? '');
      await eventually(async () => (await stack.db.$count(pendingChanges, own)) > 0);
      await issuer.kill('SIGKILL');
      await cut;
      await eventually(async () => (await call(url)) === 'uses_exhausted');
      expect(await call(url, 1)).toBe('uses_exhausted');
      issuer.close();
    },
  );
});

type Span = { readonly began: number; readonly ended: number };

test('a random change is obeyed during calls over two gateways: each call that passes is within a limit in force at that time', async () => {
  const { url } = await issue(stack, { max_uses: 10 });
  const changes: (Span & { readonly limit: number })[] = [{ began: 0, ended: 0, limit: 10 }];
  const calls: (Span & { readonly outcome: string })[] = [];
  let stop = false;
  const caller = async (gateway: number) => {
    while (!stop) {
      const began = performance.now();
      const outcome = await call(url, gateway);
      calls.push({ began, ended: performance.now(), outcome });
    }
  };
  const callers = [0, 1, 0, 1, 0, 1].map(caller);
  for (let i = 0; i < (thorough ? 20 : 8); i++) {
    const used = calls.filter(({ outcome }) => outcome === 'ok').length;
    // Raised, lowered below what is used, and zero.
    const limit = [used + randomInt(1, 9), Math.max(0, used - randomInt(0, 5)), 0][randomInt(0, 3)] ?? 0;
    const began = performance.now();
    await change(url, { max_uses: limit });
    changes.push({ began, ended: performance.now(), limit });
  }
  stop = true;
  await Promise.all(callers);
  const passed = calls.filter(({ outcome }) => outcome === 'ok');
  expect(new Set(calls.map(({ outcome }) => outcome))).toEqual(new Set(['ok', 'uses_exhausted']));
  for (const each of calls) {
    // The last one answered before the call began, and all that were under way with it.
    const known = changes.filter(({ ended }) => ended <= each.began).at(-1)?.limit ?? 0;
    const during = changes.filter(({ began, ended }) => began <= each.ended && ended > each.began);
    const limits = [known, ...during.map(({ limit }) => limit)];
    const others = passed.filter((other) => other !== each);
    if (each.outcome === 'ok') {
      const surelyBefore = others.filter(({ ended }) => ended <= each.began).length;
      expect(surelyBefore + 1).toBeLessThanOrEqual(Math.max(...limits));
    } else {
      const perhapsBefore = others.filter(({ began }) => began <= each.ended).length;
      expect(perhapsBefore + 1).toBeGreaterThan(Math.min(...limits));
    }
  }
  const [budget] = await stack.db
    .select({ revision: budgets.revision })
    .from(budgets)
    .innerJoin(grants, eq(grants.budgetId, budgets.id))
    .where(eq(grants.id, idOf(url)));
  const { prt } = claimsOf(stack, url);
  const [grant] = await stack.db
    .select()
    .from(grants)
    .where(eq(grants.id, idOf(url)));
  const inRedis = await stack.redis.hget(keys.budget(prt, grant?.budgetId ?? ''), 'revision');
  expect(Number(inRedis)).toBe(budget?.revision);
  expect(passed.length).toBeGreaterThan(0);
});

test('a change survives the loss of all data in Redis: no call passes on the old limit', async () => {
  const { url } = await issue(stack, { max_uses: 1_000 });
  expect(await onBoth(url)).toEqual(['ok', 'ok']);
  await callsSettled(stack);
  await change(url, { max_uses: 2 });
  await flush(stack.redis);
  const before = upstream.seen.length;
  await eventually(async () => {
    const answers = await onBoth(url);
    expect(answers).not.toContain('ok');
    return answers.every((answer) => answer === 'uses_exhausted');
  });
  expect(upstream.seen.length).toBe(before);
});
