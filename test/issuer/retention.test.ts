import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { IssuerOptions } from '@presign/issuer';
import { keys } from '@presign/limits';
import {
  budgets,
  credentials,
  grants,
  ledger,
  pendingChanges,
  sessions,
  usageDays,
  virtualKeys,
} from '@presign/schema/tables';
import { pendingUsage } from '@presign/schema/webhook-tables';
import { and, eq, inArray, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { seeded } from '../chaos/random.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, least, refused, send } from './ask.ts';
import { csv, fresh, get, parseCsv, type Query, type Reader, row } from './ask-usage.ts';
import { type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import { randomLedger, randomQuery } from './random-ledger.ts';
import { createVirtualKey } from './virtual-keys.ts';

const DAY_MS = 86_400_000;
let upstream: Upstream;
let stack: Stack;
let folder: string;
let running: OwnIssuer[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'presign-archive-'));
});
afterEach(async () => {
  await Promise.all(running.map((issuer) => issuer.close()));
  running = [];
  await rm(folder, { recursive: true });
});

/** An issuer whose sweep deletes at its start. */
async function sweep(retention: Partial<IssuerOptions['retention']>, changed: Partial<IssuerOptions> = {}) {
  const kept = { ledgerDays: 0, grantDays: 0, archiveFolder: folder, ...retention };
  running.push(await startOwnIssuer(stack, { ...changed, retention: kept }));
}
async function sweepCalls(of: Reader, ledgerDays: number): Promise<void> {
  await sweep({ ledgerDays });
  const cutoff = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - ledgerDays * DAY_MS);
  const old = and(eq(ledger.accountId, of.account), sql`${ledger.settledAt} < ${cutoff.toISOString()}`);
  await eventually(async () => (await stack.db.$count(ledger, old)) === 0);
}

async function archived(table: string): Promise<Record<string, string>[]> {
  const names = await readdir(join(folder, table)).catch(() => []);
  const files = names.filter((name) => /^\w.*\.csv\.gz$/.test(name));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, table, name))));
  return texts.flatMap((text) => {
    const [head = [], ...rows] = parseCsv(gunzipSync(text).toString());
    return rows.map((cells) => Object.fromEntries(head.map((name, i) => [name, cells[i] ?? ''])));
  });
}

test.each([1, 2, 3, 4, 5, 6])(
  'reports of whole days answer the same once calls and URLs are deleted, others say why not (seed %i)',
  async (seed) => {
    const random = seeded(seed);
    const of = await fresh(stack);
    const made = await randomLedger(stack, of, random);
    const days = Math.floor((Date.now() - Date.parse('2026-02-01T00:00:00Z')) / DAY_MS);
    const midnight = (time = '', round = Math.floor) =>
      new Date(round(Date.parse(time) / DAY_MS) * DAY_MS).toISOString();
    const queries = Array.from({ length: 24 }, () => randomQuery(random, made));
    const whole = queries.map(
      ({ session_id: _, group_by: by, ...query }): Query => ({
        ...query,
        ...{ from: midnight(query.from), to: midnight(query.to, Math.ceil) },
        ...(by && by !== 'session' ? { group_by: by.replace(/(^|,)session/, '').replace(/^,/, '') } : {}),
      }),
    );
    const before = await Promise.all([...whole, ...queries].map((query) => csv(of, query)));
    const [{ total }] = (await stack.db
      .select({ total: sql<number>`count(*)::int` })
      .from(ledger)
      .where(eq(ledger.accountId, of.account))) as [{ total: number }];

    await sweepCalls(of, days);
    await sweep({ grantDays: 2 });
    const ofAccount = eq(grants.accountId, of.account);
    await eventually(async () => (await stack.db.$count(grants, ofAccount)) === 0);

    const [{ calls }] = (await stack.db
      .select({ calls: sql<number>`coalesce(sum(${usageDays.calls}), 0)::int` })
      .from(usageDays)
      .where(eq(usageDays.accountId, of.account))) as [{ calls: number }];
    const left = await stack.db.$count(ledger, eq(ledger.accountId, of.account));
    const refunds = made.rows.filter(
      ({ outcome, settledAt }) => outcome === 'refunded' && settledAt < new Date(midnight('2026-02-01')),
    );
    expect(total - left - refunds.length).toBe(calls);

    for (const [i, query] of whole.entries())
      expect(await csv(of, query), JSON.stringify(query)).toBe(before[i]);
    for (const [i, query] of queries.entries()) {
      const sent = await get(of, { ...query, format: 'csv' });
      if (sent.status === 200) expect(sent.text, JSON.stringify(query)).toBe(before[whole.length + i]);
      else expect([sent.status, sent.text]).toEqual([400, expect.stringContaining('kept as sums by day')]);
    }
  },
);

test('a question about parts of a day, sessions or requests is refused for days of which only sums are left', async () => {
  const of = await fresh(stack);
  const sessionId = randomUUID();
  const old = row(of, { sessionId, settledAt: new Date('2026-01-01T12:00:00Z') });
  await stack.db.insert(ledger).values([old, row(of, { settledAt: new Date() })]);
  await sweepCalls(of, 32);
  const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' };
  for (const [param, query] of [
    ['from', { ...range, from: '2026-01-01T12:00:00Z' }],
    ['to', { ...range, to: '2026-01-01T12:00:01Z' }],
    ['session_id', { ...range, session_id: sessionId }],
    ['request_id', { ...range, request_id: randomUUID() }],
    ['group_by', { ...range, group_by: 'session' }],
  ] as const)
    expect(refused(await get(of, query), 'invalid_request', param)).toContain('2026-01-02');
  for (const query of [range, { from: '0' }, { from: '2026-01-02T00:00:01Z', group_by: 'session' }])
    expect((await get(of, query)).status).toBe(200);
});

test('two issuers delete each call once, and archive it whole', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const texts = [null, '', 'a"b,c', 'line\r\nline', '=1+1'];
  const rows = Array.from({ length: 11_000 }, (_, i) =>
    row(of, { settledAt, model: texts[i % texts.length] ?? null, costMicrousd: i % 7 === 0 ? null : i }),
  );
  for (let i = 0; i < rows.length; i += 1_000) await stack.db.insert(ledger).values(rows.slice(i, i + 1_000));
  const question = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', group_by: 'model,day' };
  const before = await csv(of, question);
  await Promise.all([sweep({ ledgerDays: 32 }), sweep({ ledgerDays: 32 })]);
  const ofAccount = eq(ledger.accountId, of.account);
  await eventually(async () => (await stack.db.$count(ledger, ofAccount)) === 0);
  expect(await csv(of, question)).toBe(before);
  const found = (await archived('ledger')).filter((each) => each['account_id'] === of.account);
  expect(found).toHaveLength(rows.length);
  const byId = new Map(found.map((each) => [each['hold_id'], each]));
  for (const { holdId, model, costMicrousd } of rows)
    expect(byId.get(holdId)).toMatchObject({
      model: model ?? '',
      cost_microusd: costMicrousd === null ? '' : String(costMicrousd),
    });
  const [name = ''] = await readdir(join(folder, 'ledger'));
  expect((await stat(join(folder, 'ledger', name))).mode & 0o777).toBe(0o600);
});

test('calls stay where their archive cannot be written', async () => {
  const of = await fresh(stack);
  await stack.db.insert(ledger).values(row(of, { settledAt: new Date('2026-01-01T12:00:00Z') }));
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const file = join(folder, 'file');
  await writeFile(file, '');
  await sweep({ ledgerDays: 32, archiveFolder: file }, { log });
  await eventually(async () => lines.some((line) => line.includes('old calls are not deleted')));
  expect(await stack.db.$count(ledger, eq(ledger.accountId, of.account))).toBe(1);
  expect(await stack.db.$count(usageDays, eq(usageDays.accountId, of.account))).toBe(0);
});

test('a call that its webhook event still needs stays', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const [waits, other] = [row(of, { settledAt }), row(of, { settledAt })];
  await stack.db.insert(ledger).values([waits, other]);
  await stack.db.insert(pendingUsage).values({ holdId: waits.holdId, accountId: of.account });
  await sweep({ ledgerDays: 32 });
  const ids = async () =>
    (await stack.db.select().from(ledger).where(eq(ledger.accountId, of.account))).map((each) => each.holdId);
  await eventually(async () => (await ids()).length === 1);
  expect(await ids()).toEqual([waits.holdId]);
});

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
  await stack.issuer.ledger.drainAll();
  await sweep({ grantDays: 30 });
  await eventually(isGone(grant.id));
  expect(await stack.db.$count(budgets, eq(budgets.id, grant.budgetId))).toBe(0);
  expect(await stack.db.$count(credentials, eq(credentials.id, grant.credentialId ?? ''))).toBe(0);
  expect(await stack.db.$count(sessions, eq(sessions.id, session_id))).toBe(0);
  const of = { method: 'GET', path: `/v1/sessions/${session_id}` };
  expect((await send(stack, of)).status).toBe(404);
  const files = { grants: grant.id, budgets: grant.budgetId, sessions: session_id };
  for (const [table, id] of Object.entries(files))
    expect((await archived(table)).map((each) => each['id'])).toContain(id);
  expect((await archived('grants')).find(({ id }) => id === grant.id)).toMatchObject({
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

test('a URL stays while it lives, while its credential is kept, and while Redis has yet to take over a change', async () => {
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

test('a virtual key keeps its budget and credential, a session its other URLs, and a call its virtual key', async () => {
  const { id } = await createVirtualKey(stack, { budget: { cost_limit: 1_000_000 } });
  const keyRow = async () => (await stack.db.select().from(virtualKeys).where(eq(virtualKeys.id, id)))[0];
  const key = await keyRow();
  const { client_api_key: _, ...ofKey } = least;
  const first = await stack.issue({ ...ofKey, virtual_key: id });
  const second = await stack.issue({ ...ofKey, virtual_key: id, session_id: first.session_id });
  const old = claimsOf(stack, first.url).jti;
  const call = row({ ...stack, account: key?.accountId ?? '' }, { grantId: old, settledAt: new Date() });
  await stack.db.insert(ledger).values(call);
  await stack.db.update(grants).set({ expiresAt: sql`now() - interval '40 days'` }).where(eq(grants.id, old));
  await sweep({ grantDays: 30 });
  await eventually(isGone(old));
  expect(await keyRow()).toEqual(key);
  expect(await stack.db.$count(budgets, eq(budgets.id, key?.budgetId ?? ''))).toBe(1);
  expect(await stack.db.$count(credentials, eq(credentials.id, key?.credentialId ?? ''))).toBe(1);
  const session = await send(stack, { method: 'GET', path: `/v1/sessions/${first.session_id}` });
  expect(session.status).toBe(200);
  expect(session.text).toContain(claimsOf(stack, second.url).jti);
  const [settled] = await stack.db.select().from(ledger).where(eq(ledger.holdId, call.holdId));
  expect(settled?.virtualKeyId).toBe(id);
});

test('a clock of Postgres that is ahead deletes nothing that lives by the clock of Redis', async () => {
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
  await sweep({ grantDays: 30 }, { redis: behind });
  await eventually(async () => asked > 0);
  await running.pop()?.close();
  expect(await isGone(aged.grant.id)()).toBe(false);
  await sweep({ grantDays: 30 });
  await eventually(isGone(aged.grant.id));
});
