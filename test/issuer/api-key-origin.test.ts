import { randomUUID } from 'node:crypto';
import { hashApiKey } from '@presign/crypto';
import { connectRedis, keys } from '@presign/limits';
import { sessionAnswer, sessionPage, usageReport, type WebhookEvent } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { apiKeys, budgets, grants, sessions } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { issue, refused, send } from './ask.ts';
import { issueMcp } from './ask-mcp.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { addEndpoint } from './webhook-receiver.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    const { method, id } = JSON.parse(String(seen.body)) as { method?: string; id?: number };
    const error = { code: -32601, message: 'no such tool' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(method === undefined ? { ok: true } : { jsonrpc: '2.0', id, error }));
  });
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** A caller of the same account with an API key of its own. */
async function another(): Promise<Stack & { readonly keyId: string }> {
  const apiKey = await addApiKey(stack, await ownAccount(stack), { scopes: ['presign', 'read'] });
  const [row] = await stack.db
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.hash, hashApiKey(apiKey)));
  return { ...stack, apiKey, keyId: row?.id ?? '' };
}

async function get<T>(schema: { parse: (value: unknown) => T }, path: string): Promise<T> {
  const sent = await send(await reader(), { method: 'GET', path });
  expect(sent.status, sent.text).toBe(200);
  return schema.parse(JSON.parse(sent.text));
}
const reader = async () => ({
  ...stack,
  apiKey: await addApiKey(stack, await ownAccount(stack), { scopes: ['read'] }),
});
const post = (url: string, body: object) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
/** Calls a URL. Returns the code of its refusal, or 'passed'. */
async function outcomeOf(url: string): Promise<string> {
  const answer = await post(url, { model: 'm', messages: [] });
  const body = (await answer.json()) as { error?: { code: string } };
  return body.error?.code ?? 'passed';
}
const revokeIssued = (to: Pick<Stack, 'issuerUrl' | 'apiKey'>, keyId: string) =>
  send(to, { method: 'DELETE', path: `/v1/sessions?api_key=${keyId}` });

describe('the API key that issued a URL', () => {
  test('is shown with each grant of the session, and filters sessions', async () => {
    const [one, two] = [await another(), await another()];
    const { session_id } = await issue(one, {});
    await issue(two, { session_id });
    const { session_id: bundle } = await issueMcp(one, {});
    const session = await get(sessionAnswer, `/v1/sessions/${session_id}`);
    expect(session.grants.map((grant) => grant.api_key).sort()).toEqual([one.keyId, two.keyId].sort());
    const ofBundle = await get(sessionAnswer, `/v1/sessions/${bundle}`);
    expect(ofBundle.grants.map((grant) => [grant.kind, grant.api_key])).toEqual(
      expect.arrayContaining([
        ['mcp_bundle', one.keyId],
        ['mcp', one.keyId],
      ]),
    );
    const found = async (keyId: string) =>
      (await get(sessionPage, `/v1/sessions?api_key=${keyId}`)).data.map(({ id }) => id).sort();
    expect(await found(one.keyId.toUpperCase())).toEqual([session_id, bundle].sort());
    expect(await found(two.keyId)).toEqual([session_id]);
    const stranger = { ...stack, apiKey: (await addAccount(stack)).apiKey };
    await stack.db
      .update(apiKeys)
      .set({ scopes: ['read'] })
      .where(eq(apiKeys.hash, hashApiKey(stranger.apiKey)));
    const sent = await send(stranger, { method: 'GET', path: `/v1/sessions?api_key=${one.keyId}` });
    expect(JSON.parse(sent.text)).toEqual({ data: [], next_cursor: null });
  });

  test('is with the request id of each call, refunds included, in the ledger, in usage and in usage.settled', async () => {
    const endpoint = await addEndpoint(stack, { events: ['usage.settled'] });
    const own = await another();
    const { url } = await issue(own, {});
    const called = await post(url, { model: 'm', messages: [] });
    const llmId = called.headers.get('x-presign-request-id') ?? '';
    const server = { name: 's', url: `${upstream.url}/mcp`, transport: 'http' };
    const bundle = await issueMcp(own, { servers: [server] });
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'none' } };
    const refunded = await post(bundle.servers['s']?.url ?? '', call);
    const mcpId = refunded.headers.get('x-presign-request-id') ?? '';
    await callsSettled(stack);
    const rows = await stack.db.select().from(ledger).where(eq(ledger.apiKeyId, own.keyId));
    const shown = rows.map(({ requestId, outcome }) => [requestId, outcome]).sort();
    const expected = [
      [llmId, 'settled'],
      [mcpId, 'settled'],
      [mcpId, 'refunded'],
    ].sort();
    expect(shown).toEqual(expected);
    const usage = (query: string) => get(usageReport, `/v1/usage?from=0&${query}`);
    expect((await usage(`api_key=${own.keyId}&group_by=api_key,provider`)).data).toMatchObject([
      { api_key: own.keyId, provider: 'mcp', calls: 1, uses: 0 },
      { api_key: own.keyId, provider: 'openai', calls: 1, uses: 1 },
    ]);
    expect((await usage(`request_id=${llmId}&group_by=api_key`)).data).toMatchObject([
      { api_key: own.keyId, calls: 1 },
    ]);
    const settled = await eventually(async () => {
      const events = endpoint.events() as WebhookEvent[];
      const calls = events.flatMap((event) => (event.type === 'usage.settled' ? event.data.calls : []));
      const ofKey = calls.filter((each) => each.api_key === own.keyId);
      return ofKey.length >= 3 ? ofKey : undefined;
    });
    // An MCP call is charged when it begins, so it may be announced before its end is known.
    const announced = settled.map(({ request_id, outcome }) => [
      request_id,
      outcome === 'refunded'
        ? 'refunded'
        : outcome === 'passed' || outcome === 'under_way'
          ? 'settled'
          : outcome,
    ]);
    expect(announced.sort()).toEqual(expected);
    await send(stack, { method: 'DELETE', path: `/v1/webhooks/${endpoint.id}` });
    await endpoint.upstream.close();
  });
});

describe('revoking everything that an API key has issued', () => {
  test('ends its URLs at once, and no URL of another key', async () => {
    const [leaked, other] = [await another(), await another()];
    const own = await issue(leaked, {});
    const shared = await issue(leaked, {});
    const kept = await issue(other, { session_id: shared.session_id });
    const bundle = await issueMcp(leaked, {});
    for (const { url } of [own, shared, kept]) expect(await outcomeOf(url)).toBe('passed');
    expect((await fetch(bundle.bundle_url)).status).toBe(200);
    const sent = await revokeIssued(other, leaked.keyId);
    expect([sent.status, sent.text]).toEqual([204, '']);
    expect(await outcomeOf(own.url)).toBe('grant_revoked');
    expect(await outcomeOf(shared.url)).toBe('grant_revoked');
    expect((await fetch(bundle.bundle_url)).status).toBe(403);
    expect(await outcomeOf(kept.url)).toBe('passed');
    // A session that only the key has used is closed, and another one goes on.
    const conflict = await send(other, { body: leastOf(own.session_id) });
    refused(conflict, 'session_conflict', 'session_id');
    await issue(other, { session_id: shared.session_id });
    expect((await revokeIssued(other, leaked.keyId)).status).toBe(204);
  });

  test('is refused to another account, and for an unknown id', async () => {
    const own = await another();
    const { url } = await issue(own, {});
    const stranger = { ...stack, apiKey: (await addAccount(stack)).apiKey };
    for (const keyId of [own.keyId, randomUUID()])
      refused(await revokeIssued(stranger, keyId), 'not_found', 'api_key');
    refused(await revokeIssued(stranger, own.apiKey), 'invalid_request', 'api_key');
    const both = await send(stack, {
      method: 'DELETE',
      path: `/v1/sessions?api_key=${own.keyId}&external_user=u`,
    });
    refused(both, 'invalid_request', 'external_user');
    expect(await outcomeOf(url)).toBe('passed');
  });

  test('answers 202 while Redis is down, and a sweep finishes in batches: 1,300 URLs, 1,050 from one second', async () => {
    const own = await another();
    const rows = await insertGrants(own.keyId, 1_300);
    const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
    const cutOff = await startOwnIssuer(stack, { redis });
    const sent = await revokeIssued({ ...cutOff, apiKey: own.apiKey }, own.keyId);
    expect([sent.status, sent.text]).toEqual([202, '{"status":"pending"}']);
    await cutOff.close();
    redis.disconnect();
    await eventually(async () => {
      const stones = await Promise.all(
        rows.map(({ id, partition }) => stack.redis.hget(keys.grant(partition, id), 'revoked')),
      );
      return stones.every((stone) => stone === '1') ? true : undefined;
    }, 30_000);
    const marked = await stack.db.select().from(grants).where(eq(grants.apiKeyId, own.keyId));
    expect(marked.every(({ revokedAt }) => revokedAt !== null)).toBe(true);
    const session = eq(sessions.id, marked[0]?.sessionId ?? '');
    expect((await stack.db.select().from(sessions).where(session))[0]?.revokedAt).not.toBeNull();
    // A request that takes long answers 202, as the sweep goes on with it.
    await eventually(async () => (await revokeIssued(own, own.keyId)).status === 204, 30_000);
  }, 120_000);

  test('finishes although the issuer died after its first batch', async () => {
    const own = await another();
    const { url } = await issue(own, {});
    expect(await outcomeOf(url)).toBe('passed');
    // The request has stored where it is and no more.
    await stack.db
      .update(apiKeys)
      .set({ revokingAfter: new Date(0) })
      .where(eq(apiKeys.id, own.keyId));
    await eventually(async () => ((await outcomeOf(url)) === 'grant_revoked' ? true : undefined));
  });
});

const leastOf = (session_id: string) => ({
  provider: 'openai',
  path: '/v1/models',
  client_api_key: 'sk-1',
  session_id,
});

/** Grants that a key has issued: more than one batch in a single second, and the others a second apart. */
async function insertGrants(apiKeyId: string, count: number) {
  const accountId = await ownAccount(stack);
  const begin = Math.floor(Date.now() / 1000) * 1000 - count * 1000;
  const expiresAt = new Date(Date.now() + 600_000);
  const rows = Array.from({ length: count }, (_, i) => ({
    id: randomUUID(),
    budgetId: randomUUID(),
    partition: i % 64,
    issuedAt: new Date(begin + Math.max(0, i - 1_050) * 1000),
  }));
  const sessionId = randomUUID();
  await stack.db.insert(sessions).values({ id: sessionId, accountId });
  for (let at = 0; at < count; at += 1_000) {
    const some = rows.slice(at, at + 1_000);
    await stack.db.insert(budgets).values(some.map(({ budgetId: id, partition }) => ({ id, partition })));
    const common = { accountId, apiKeyId, sessionId, kind: 'llm', provider: 'openai', expiresAt } as const;
    await stack.db
      .insert(grants)
      .values(some.map(({ id, budgetId, issuedAt }) => ({ ...common, id, budgetId, issuedAt })));
  }
  return rows;
}
