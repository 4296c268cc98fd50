import { randomUUID } from 'node:crypto';
import { keys } from '@presign/limits';
import { budgets, credentials, grants, pendingChanges, sessions, virtualKeys } from '@presign/schema/tables';
import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, least, send } from './ask.ts';
import { type Sweeps, startSweeps } from './sweeps.ts';
import { createVirtualKey } from './virtual-keys.ts';

let upstream: Upstream;
let stack: Stack;
let sweeps: Sweeps;
const sweep: Sweeps['sweep'] = (...of) => sweeps.sweep(...of);

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(async () => {
  sweeps = await startSweeps(stack);
});
afterEach(() => sweeps.close());

/** Issues a URL, calls it, and moves its expiry so many days into the past, in Postgres alone. */
async function agedUrl(days: number, fields: object = {}) {
  const issued = await stack.issue({ ...least, ...fields });
  const called = () => fetch(issued.url, { method: 'POST', body: '{}' });
  expect((await called()).status).toBe(200);
  const expiresAt = sql`now() - ${days} * interval '1 day'`;
  await stack.db.update(grants).set({ expiresAt }).where(eq(grants.sessionId, issued.session_id));
  const [grant] = await stack.db.select().from(grants).where(eq(grants.sessionId, issued.session_id));
  if (!grant) throw new Error('no grant');
  return { ...issued, called, grant, partition: claimsOf(stack, issued.url).prt };
}
const erase = (id: string | null) =>
  stack.db
    .update(credentials)
    .set({ sealed: '' })
    .where(eq(credentials.id, id ?? ''));
const isGone = (id: string) => async () => (await stack.db.$count(grants, eq(grants.id, id))) === 0;

test('a URL is deleted with its budget, credential and session, and stays refused when Redis has lost it too', async () => {
  const { grant, called, partition, session_id } = await agedUrl(40, {
    max_uses: 5,
    external_user: 'user-1',
  });
  await erase(grant.credentialId);
  await callsSettled(stack);
  await sweep({ grantDays: 30 });
  await eventually(isGone(grant.id));
  expect(await stack.db.$count(budgets, eq(budgets.id, grant.budgetId))).toBe(0);
  expect(await stack.db.$count(credentials, eq(credentials.id, grant.credentialId ?? ''))).toBe(0);
  expect(await stack.db.$count(sessions, eq(sessions.id, session_id))).toBe(0);
  const of = { method: 'GET', path: `/v1/sessions/${session_id}` };
  expect((await send(stack, of)).status).toBe(404);
  const files = { grants: grant.id, budgets: grant.budgetId, sessions: session_id };
  for (const [table, id] of Object.entries(files))
    expect((await sweeps.archived(table)).map((each) => each['id'])).toContain(id);
  expect((await sweeps.archived('grants')).find(({ id }) => id === grant.id)).toMatchObject({
    external_user: 'user-1',
  });

  // The token itself lives on here. A gateway that has never seen it must not open it again.
  await stack.redis.del(
    keys.grant(partition, grant.id),
    keys.budget(partition, grant.budgetId),
    keys.credential(partition, grant.credentialId ?? ''),
  );
  const answer = await called();
  expect([answer.status, await answer.json()]).toMatchObject([401, { error: { code: 'token_invalid' } }]);
  expect(await stack.redis.exists(keys.budget(partition, grant.budgetId))).toBe(0);
  const usage = await send(stack, { method: 'GET', path: `/v1/usage?from=0&session_id=${session_id}` });
  expect(JSON.parse(usage.text)).toMatchObject({ total: { calls: 1 } });
});

test('a URL is kept while it lives, while its credential is kept, and while a change has not reached Redis', async () => {
  const young = await agedUrl(29);
  const sealed = await agedUrl(40);
  const changing = await agedUrl(40);
  const living = await agedUrl(-1);
  const gone = await agedUrl(40);
  for (const { grant } of [young, changing, living, gone]) await erase(grant.credentialId);
  const pending = {
    changeId: randomUUID(),
    grantId: changing.grant.id,
    dueAt: sql`now() + interval '1 day'`,
  };
  await stack.db.insert(pendingChanges).values(pending);
  await sweep({ grantDays: 30 });
  await eventually(isGone(gone.grant.id));
  const kept = [young, sealed, changing, living].map(({ grant }) => grant.id);
  expect(await stack.db.$count(grants, inArray(grants.id, kept))).toBe(kept.length);
  await stack.db.delete(pendingChanges).where(eq(pendingChanges.grantId, changing.grant.id));
});

test('a virtual key keeps its budget and credential, and a session its other URLs', async () => {
  const { id } = await createVirtualKey(stack, { budget: { cost_limit: 1_000_000 } });
  const keyRow = async () => (await stack.db.select().from(virtualKeys).where(eq(virtualKeys.id, id)))[0];
  const key = await keyRow();
  const { client_api_key: _, ...ofKey } = least;
  const first = await stack.issue({ ...ofKey, virtual_key: id });
  const second = await stack.issue({ ...ofKey, virtual_key: id, session_id: first.session_id });
  const old = claimsOf(stack, first.url).jti;
  await stack.db.update(grants).set({ expiresAt: sql`now() - interval '40 days'` }).where(eq(grants.id, old));
  await sweep({ grantDays: 30 });
  await eventually(isGone(old));
  expect(await keyRow()).toEqual(key);
  expect(await stack.db.$count(budgets, eq(budgets.id, key?.budgetId ?? ''))).toBe(1);
  expect(await stack.db.$count(credentials, eq(credentials.id, key?.credentialId ?? ''))).toBe(1);
  const session = await send(stack, { method: 'GET', path: `/v1/sessions/${first.session_id}` });
  expect(session.status).toBe(200);
  expect(session.text).toContain(claimsOf(stack, second.url).jti);
});

test('a Postgres clock that is ahead deletes nothing that is alive by the clock of Redis', async () => {
  const aged = await agedUrl(40);
  await erase(aged.grant.credentialId);
  let asked = 0;
  const late = async () => {
    asked++;
    return [Math.floor(Date.now() / 1000) - 20 * 86_400, 0];
  };
  const behind = new Proxy(stack.redis, {
    get: (target, name) => (name === 'time' ? late : Reflect.get(target, name, target)),
  });
  const close = await sweep({ grantDays: 30 }, { redis: behind });
  await eventually(async () => asked > 0);
  await close();
  expect(await isGone(aged.grant.id)()).toBe(false);
  await sweep({ grantDays: 30 });
  await eventually(isGone(aged.grant.id));
});
