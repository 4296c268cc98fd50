import { readEncryptionKeys, unseal } from '@presign/crypto';
import { budgets, credentialContext, credentials, grants, sessions } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, issue, least, refused, send, tokenOf } from './ask.ts';

let stack: Stack;
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({
    providers: { openai: { base_url: upstream.url }, google: { base_url: upstream.url } },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** All that an issued URL left in Postgres. */
async function written(url: string) {
  const [row] = await stack.db
    .select()
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .innerJoin(credentials, eq(credentials.id, grants.credentialId))
    .where(eq(grants.id, claimsOf(stack, url).jti));
  if (!row) throw new Error('the grant is not in Postgres');
  return row;
}

describe('the answer', () => {
  test('has exactly url, session_id, expires_at, the grant and the claims of its token', async () => {
    const before = Math.floor(Date.now() / 1000);
    const answer = await issue(stack, {});
    expect(Object.keys(answer)).toEqual(['url', 'session_id', 'expires_at', 'grant_id', 'claims']);
    expect(answer.claims).toEqual(claimsOf(stack, answer.url));
    const { grant_id, session_id } = answer;
    expect(answer.claims).toMatchObject({ jti: grant_id, sub: session_id });
    const grant = await send(stack, { method: 'GET', path: `/v1/grants/${grant_id}` });
    expect(JSON.parse(grant.text)).toMatchObject({ id: grant_id, session_id });
    expect(answer.session_id).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(answer.expires_at).toBeGreaterThanOrEqual(before + 3600);
    expect(answer.expires_at).toBeLessThanOrEqual(Math.floor(Date.now() / 1000) + 3600);
  });

  test('has a url of the shape {gateway_url}/llm/t/<token><path>', async () => {
    const { url } = await issue(stack, { path: ['/v1/chat/completions', '/v1/models'] });
    expect(url).toBe(`${stack.gatewayUrls[0]}/llm/t/${tokenOf(url)}/v1/chat/completions`);
    expect(tokenOf(url)).toMatch(/^v4\.public\.[\w-]+\.[\w-]+$/);
  });

  test('is not cached, and pages of another origin cannot read it', async () => {
    const sent = await send(stack, { body: least, headers: { origin: 'https://a.example' } });
    expect(sent.headers.get('cache-control')).toBe('no-store');
    expect(sent.headers.get('referrer-policy')).toBe('no-referrer');
    expect(sent.headers.get('x-content-type-options')).toBe('nosniff');
    expect(sent.headers.get('access-control-allow-origin')).toBeNull();
    expect(sent.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('each request has its own grant, session and token', async () => {
    const [a, b] = [await issue(stack, {}), await issue(stack, {})];
    expect(a.session_id).not.toBe(b.session_id);
    expect(claimsOf(stack, a.url).jti).not.toBe(claimsOf(stack, b.url).jti);
  });
});

describe('the token', () => {
  test('contains grant, session, times, addresses, kind, provider, method, paths and partition; nothing else', async () => {
    const answer = await issue(stack, { path: ['/v1/models', '/v1/files/*'], method: 'get', expires_in: 60 });
    const claims = claimsOf(stack, answer.url);
    const row = await written(answer.url);
    expect(claims).toEqual({
      jti: row.grants.id,
      sub: answer.session_id,
      iat: row.grants.issuedAt.toISOString(),
      exp: row.grants.expiresAt.toISOString(),
      iss: stack.issuerUrl,
      aud: stack.gatewayUrls[0],
      prt: row.budgets.partition,
      knd: 'llm',
      prv: 'openai',
      mth: 'GET',
      pth: ['/v1/models', '/v1/files/*'],
    });
    expect(Date.parse(claims.exp) / 1000).toBe(answer.expires_at);
    expect(Date.parse(claims.exp) - Date.parse(claims.iat)).toBe(60_000);
  });

  test('of expires_in -1 ends after one year, 31,536,000 seconds', async () => {
    for (const expires_in of [-1, 31_536_000]) {
      const { iat, exp } = claimsOf(stack, (await issue(stack, { expires_in })).url);
      expect(Date.parse(exp) - Date.parse(iat)).toBe(31_536_000_000);
    }
  });

  test('with the most and longest paths has at most 3,072 characters, and its URL at most 6,144', async () => {
    const one = `/${'a'.repeat(1535)}`;
    const fifty = Array.from({ length: 50 }, (_, i) => `/${String(i).padStart(2, '0')}${'a'.repeat(27)}`);
    fifty[0] += 'a'.repeat(36);
    expect(fifty.join('')).toHaveLength(1536);
    for (const path of [one, fifty]) {
      const { url } = await issue(stack, { path });
      expect(tokenOf(url).length).toBeLessThanOrEqual(3072);
      expect(url.length).toBeLessThanOrEqual(6144);
      const answer = await fetch(url, { method: 'POST' });
      expect(answer.status, await answer.text()).toBe(200);
    }
  });

  test('that a long model name makes too long is a 400 that names the paths', async () => {
    const path = [
      '/v1beta/models/g:generateContent',
      '/v1beta/models/*:generateContent',
      `/v1/${'a'.repeat(1300)}`,
    ];
    const fields = { provider: 'google', path, config: { model: 'm'.repeat(1000) } };
    const message = refused(await send(stack, { body: { ...least, ...fields } }), 'invalid_request', 'path');
    expect(message).toBe(
      'path: the paths and config.model together are too long for a token of 3072 characters.',
    );
  });
});

describe('the written rows', () => {
  test('have every field as it was sent', async () => {
    const fields = {
      method: 'PUT',
      path: ['/v1/responses', '/v1/*/b'],
      max_uses: 3,
      cost_limit: 5_000_000,
      config: { model: 'gpt-4o-mini', max_tokens: 100 },
      external_session: 'order 7 – ü😀',
      external_user: 'e\u0301',
      metadata: { tags: ['a', null, 1.5], text: 'NUL \0 and \ud800', nested: { a: {} } },
    };
    const answer = await issue(stack, fields);
    const row = await written(answer.url);
    expect(row.grants).toMatchObject({
      kind: 'llm',
      provider: 'openai',
      method: 'PUT',
      paths: fields.path,
      config: fields.config,
      externalSession: fields.external_session,
      externalUser: fields.external_user,
      metadata: fields.metadata,
      virtualKeyId: null,
      revokedAt: null,
    });
    expect(row.budgets).toMatchObject({
      maxUses: 3,
      costLimitMicrousd: 5_000_000,
      used: 0,
      settledMicrousd: 0,
    });
    expect(row.sessions).toMatchObject({
      id: answer.session_id,
      accountId: row.grants.accountId,
      revokedAt: null,
    });
  });

  test('have omitted fields as unlimited or null, never as the text "null"', async () => {
    const row = await written((await issue(stack, {})).url);
    expect(row.budgets).toMatchObject({ maxUses: null, costLimitMicrousd: null });
    expect(row.grants).toMatchObject({
      method: 'POST',
      config: null,
      metadata: null,
      externalSession: null,
      externalUser: null,
    });
    const texts = sql`${grants.config} = 'null' or ${grants.metadata} = 'null'`;
    expect(await stack.db.$count(grants, texts)).toBe(0);
  });

  test('have limits at their bounds exactly: 0 is not unlimited, and 2^53 - 1 is not rounded', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const row = await written((await issue(stack, { cost_limit: 0, max_uses: most })).url);
    expect(row.budgets).toMatchObject({ costLimitMicrousd: 0, maxUses: most });
    expect((await written((await issue(stack, { cost_limit: most })).url)).budgets.costLimitMicrousd).toBe(
      most,
    );
  });

  test('have the provider key sealed: it unseals only with the encryption key, for its own account and record', async () => {
    const row = await written((await issue(stack, { client_api_key: 'sk-sealed' })).url);
    const keys = readEncryptionKeys(stack.keys.encryption);
    const { id, accountId, sealed } = row.credentials;
    expect(unseal(keys, sealed, credentialContext(accountId, id))).toBe('sk-sealed');
    expect(() => unseal(keys, sealed, credentialContext(accountId, row.grants.id))).toThrow('not_authentic');
  });

  test('have the key that was sent, and the provider gets it', async () => {
    const { url } = await issue(stack, { client_api_key: 'sk-for-the-provider' });
    const answer = await fetch(url, { method: 'POST', body: '{}' });
    expect(answer.status).toBe(200);
    expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer sk-for-the-provider');
  });
});
