import { randomUUID } from 'node:crypto';
import { createPresign } from '@presign/client';
import { connectRedis, keys } from '@presign/limits';
import { budgets, grants, pendingChanges, sessions, virtualKeys } from '@presign/schema/tables';
import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { ownAccount } from './accounts.ts';
import { claimsOf, issue, least, refused, send } from './ask.ts';
import { startCutOffIssuer } from './issuer-process.ts';
import { EAGER, startOwnIssuer } from './own-issuer.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';
import { askVirtualKeys, createVirtualKey } from './virtual-keys.ts';

let upstream: Upstream;
let stack: Stack;
let takeAway = async () => {};

beforeAll(async () => {
  if (canReachDatabase) takeAway = await reachableDatabase();
  upstream = await startUpstream((seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ key: seen.headers.authorization }));
  });
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await takeAway();
});

/** How a call ends: with the provider's key that it was made with, or the code of its refusal. */
async function outcomeOf(url: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: '{"model":"m","messages":[]}' });
  const body = (await answer.json()) as { key?: string; error?: { code: string } };
  return body.key ?? body.error?.code ?? '';
}
const becomes = (url: string, outcome: string) =>
  eventually(async () => ((await outcomeOf(url)) === outcome ? true : undefined));
const ofVirtualKey = async (id: string) =>
  (await stack.issue({ provider: 'openai', path: least.path, virtual_key: id })).url;
/** Calls a URL, so that Redis and the gateway know it. */
async function called(url: string): Promise<string> {
  expect(await outcomeOf(url)).toMatch(/^Bearer /);
  return url;
}

/** A URL to revoke, one whose virtual key is to be deleted, and one whose virtual key is to be rotated. */
async function threeUrls() {
  const [deleted, rotated] = [await createVirtualKey(stack), await createVirtualKey(stack)];
  return {
    deleted: { id: deleted.id, url: await called(await ofVirtualKey(deleted.id)) },
    rotated: { id: rotated.id, url: await called(await ofVirtualKey(rotated.id)) },
    revoked: await called((await issue(stack, {})).url),
  };
}
type Urls = Awaited<ReturnType<typeof threeUrls>>;
type To = Pick<Stack, 'issuerUrl' | 'apiKey'>;

const change = (to: To, { deleted, rotated, revoked }: Urls) =>
  Promise.all([
    send(to, { method: 'DELETE', path: `/v1/grants/${claimsOf(stack, revoked).jti}` }),
    askVirtualKeys(to, 'DELETE', `/${deleted.id}`),
    askVirtualKeys(to, 'POST', `/${rotated.id}/rotate`, { key: 'sk-second' }),
  ]);
async function areChanged({ deleted, rotated, revoked }: Urls): Promise<void> {
  await becomes(revoked, 'grant_revoked');
  await becomes(deleted.url, 'grant_revoked');
  await becomes(rotated.url, 'Bearer sk-second');
}

describe('a revocation, a deletion and a rotation', () => {
  test('answer 202 when Redis is down, and take effect without a retry', async () => {
    const urls = await threeUrls();
    const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
    const cutOff = await startOwnIssuer(stack, { redis });
    for (const { status, text } of await change(cutOff, urls))
      expect([status, text]).toEqual([202, '{"status":"pending"}']);
    await areChanged(urls);
    const client = createPresign({ url: cutOff.issuerUrl, apiKey: stack.apiKey });
    const again = await client.revokeGrant({ id: claimsOf(stack, urls.revoked).jti });
    expect(again).toEqual({ status: 'pending' });
    for (const { status } of (await change(stack, urls)).slice(0, 1)) expect(status).toBe(204);
    await cutOff.close();
    redis.disconnect();
  });

  test.runIf(canReachDatabase && thorough)(
    'take effect after a 503 if their transactions commit after the request timed out',
    async () => {
      const urls = await threeUrls();
      await stack.db.transaction(async (tx) => {
        const id = claimsOf(stack, urls.revoked).jti;
        await tx.select().from(grants).where(eq(grants.id, id)).for('update');
        const keyIds = [urls.deleted.id, urls.rotated.id];
        const found = await tx
          .select()
          .from(virtualKeys)
          .where(inArray(virtualKeys.id, keyIds))
          .for('update');
        const ids = found.map(({ credentialId }) => credentialId);
        await tx.execute(sql`select from credentials where id in ${ids} for update`);
        const asked = change(stack, urls);
        await othersWait(stack, tx, 3);
        for (const sent of await asked) refused(sent, 'database_unavailable');
      });
      await areChanged(urls);
    },
  );

  test.skipIf(!canReachDatabase)(
    'take effect although their issuer is killed between Postgres and Redis',
    async () => {
      const urls = await threeUrls();
      const isWaiting = eq(pendingChanges.done, false);
      const due = async (interval: string) => {
        const dueAt = sql`now() + ${interval}::interval`;
        return stack.db.update(pendingChanges).set({ dueAt }).where(isWaiting).returning();
      };
      // Changes of earlier tests.
      await eventually(
        async () => (await stack.db.select().from(pendingChanges).where(isWaiting)).length === 0,
      );
      const issuer = await startCutOffIssuer(stack);
      const asked = change(issuer, urls);
      const cut = expect(asked).rejects.toThrow();
      // The other issuer takes over a change after two seconds, in which a busy machine may not have asked for all three.
      await eventually(async () => (await due('1 hour')).length === 3);
      await issuer.kill('SIGKILL');
      await cut;
      await due('0');
      await areChanged(urls);
      issuer.close();
    },
  );

  test('are applied again when Redis loses what it had applied', async () => {
    const { url } = await issue(stack, {});
    const { jti, prt } = claimsOf(stack, url);
    const sent = await send(stack, { method: 'DELETE', path: `/v1/grants/${jti}` });
    expect(sent.status).toBe(204);
    await flush(stack.redis);
    const stands = () => stack.redis.hget(keys.grant(prt, jti), 'revoked');
    await eventually(async () => ((await stands()) === '1' ? true : undefined));
    await becomes(url, 'grant_revoked');
  });
});

test('1,100 grants of one user are revoked in parts if the request could not revoke them', async () => {
  const external_user = randomUUID();
  const rows = await insertGrants(1_100, external_user);
  const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
  const cutOff = await startOwnIssuer(stack, { redis });
  const path = `/v1/sessions?external_user=${external_user}`;
  expect((await send(cutOff, { method: 'DELETE', path })).status).toBe(202);
  await cutOff.close();
  redis.disconnect();
  await eventually(async () => {
    const stones = await Promise.all(
      rows.map(({ id, partition }) => stack.redis.hget(keys.grant(partition, id), 'revoked')),
    );
    return stones.every((stone) => stone === '1') ? true : undefined;
  });
});

test('changes that Redis has applied are deleted, and others are kept', async () => {
  const [first, second] = [await issue(stack, {}), await issue(stack, {})];
  const [old, recent] = [claimsOf(stack, first.url).jti, claimsOf(stack, second.url).jti];
  for (const id of [old, recent])
    expect((await send(stack, { method: 'DELETE', path: `/v1/grants/${id}` })).status).toBe(204);
  await stack.db.update(pendingChanges).set({ dueAt: sql`now()` }).where(eq(pendingChanges.grantId, old));
  // A sweep begins with its deletions.
  const other = await startOwnIssuer(stack);
  const count = (id: string) => stack.db.$count(pendingChanges, eq(pendingChanges.grantId, id));
  await eventually(async () => ((await count(old)) === 0 ? true : undefined));
  expect(await count(recent)).toBe(1);
  await other.close();
});

async function insertGrants(count: number, externalUser: string) {
  const accountId = await ownAccount(stack);
  const issuedAt = new Date();
  const expiresAt = new Date(issuedAt.getTime() + 60_000);
  const rows = Array.from({ length: count }, (_, i) => ({
    id: randomUUID(),
    budgetId: randomUUID(),
    partition: i % 64,
  }));
  const sessionId = randomUUID();
  await stack.db.insert(sessions).values({ id: sessionId, accountId });
  await stack.db.insert(budgets).values(rows.map(({ budgetId: id, partition }) => ({ id, partition })));
  const common = { accountId, sessionId, kind: 'llm', provider: 'openai', issuedAt, expiresAt } as const;
  await stack.db
    .insert(grants)
    .values(rows.map(({ id, budgetId }) => ({ ...common, id, budgetId, externalUser })));
  return rows;
}
