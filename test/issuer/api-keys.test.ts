import { generateApiKey, hashApiKey } from '@presign/crypto';
import { apiKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { least as ask, issue, refused, send, tokenOf } from './ask.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

describe('an API key', () => {
  const WANTED = 'The request has no valid API key. Send one as "Authorization: Bearer <API_KEY>".';
  const withHeader = (authorization: string) =>
    send(stack, { apiKey: undefined, headers: { authorization }, body: ask });

  test('that is missing, malformed or unknown gets the same answer', async () => {
    const key = stack.apiKey;
    const unknown = generateApiKey();
    const headers = [
      '',
      'Bearer',
      'Bearer ',
      key,
      `Basic ${key}`,
      `Bearer  ${key}`,
      `Bearer ${key} x`,
      `Bearer ${key},`,
      `Bearer ${unknown}`,
      `Bearer ${key.toUpperCase()}`,
      `Bearer ${'k'.repeat(5000)}`,
    ];
    for (const header of headers) {
      const sent = await withHeader(header);
      expect(refused(sent, 'unauthenticated'), header).toBe(WANTED);
      expect(sent.headers.get('www-authenticate')).toBe('Bearer');
    }
    for (const other of [{}, { 'x-api-key': stack.apiKey }]) {
      const sent = await send(stack, { apiKey: undefined, headers: other, body: ask });
      expect(refused(sent, 'unauthenticated')).toBe(WANTED);
    }
  });

  test('is accepted whatever the case of its scheme (RFC 9110 §11.1)', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await withHeader(`${scheme} ${stack.apiKey}`)).status).toBe(200);
    }
  });

  test('that has expired or is revoked gets the same answer as an unknown one', async () => {
    const account = await ownAccount(stack);
    const past = new Date(Date.now() - 1);
    for (const fields of [{ expiresAt: past }, { revokedAt: past }]) {
      const apiKey = await addApiKey(stack, account, fields);
      expect(refused(await send(stack, { apiKey, body: ask }), 'unauthenticated')).toBe(WANTED);
    }
    const apiKey = await addApiKey(stack, account, { expiresAt: new Date(Date.now() + 60_000) });
    expect((await send(stack, { apiKey, body: ask })).status).toBe(200);
    await stack.db
      .update(apiKeys)
      .set({ revokedAt: past })
      .where(eq(apiKeys.hash, hashApiKey(apiKey)));
    refused(await send(stack, { apiKey, body: ask }), 'unauthenticated');
  });

  test('without the scope presign gets 403, and with presign or admin it does not', async () => {
    const account = await ownAccount(stack);
    for (const scopes of [[], ['read'], ['Presign']]) {
      const apiKey = await addApiKey(stack, account, { scopes });
      const message = refused(await send(stack, { apiKey, body: ask }), 'forbidden');
      expect(message).toBe('This API key lacks the scope "presign".');
    }
    for (const scopes of [['presign'], ['admin'], ['read', 'presign']]) {
      const apiKey = await addApiKey(stack, account, { scopes });
      expect((await send(stack, { apiKey, body: ask })).status).toBe(200);
    }
  });

  test('shows its last use once it was used', async () => {
    const { id, apiKey } = await addAccount(stack);
    const lastUse = async () => {
      const [row] = await stack.db.select().from(apiKeys).where(eq(apiKeys.accountId, id));
      return row?.lastUsedAt ?? undefined;
    };
    expect(await lastUse()).toBeUndefined();
    const before = Date.now();
    await send(stack, { apiKey, body: ask });
    const noted = await eventually(lastUse);
    expect(noted.getTime()).toBeGreaterThanOrEqual(before - 1);
    expect(noted.getTime()).toBeLessThanOrEqual(Date.now());
  });

  test('is checked before the body is read', async () => {
    refused(await send(stack, { apiKey: undefined, body: '{' }), 'unauthenticated');
    refused(await send(stack, { apiKey: undefined, body: 'x'.repeat(2_000_000) }), 'unauthenticated');
  });
});

describe('routes without an API key', () => {
  test('/healthz says that the process is alive, and /readyz that nothing is wrong', async () => {
    const health = await send(stack, { method: 'GET', path: '/healthz', apiKey: undefined });
    expect([health.status, JSON.parse(health.text)]).toEqual([200, { status: 'ok' }]);
    const ready = await send(stack, { method: 'GET', path: '/readyz', apiKey: undefined });
    expect([ready.status, JSON.parse(ready.text)]).toEqual([200, { status: 'ready', problems: [] }]);
  });

  test('/v1/keys publishes the public key that verifies the tokens, under their key id', async () => {
    const sent = await send(stack, { method: 'GET', path: '/v1/keys', apiKey: undefined });
    const { keys } = JSON.parse(sent.text) as { keys: { kid: string; public_key: string }[] };
    expect(keys.map((key) => key.public_key)).toEqual([stack.keys.publicKeys]);
    const { url } = await issue(stack, ask);
    const footer = Buffer.from(tokenOf(url).split('.')[3] ?? '', 'base64url').toString();
    expect(JSON.parse(footer)).toEqual({ kid: keys[0]?.kid });
    expect(sent.text).not.toContain('secret');
  });
});
