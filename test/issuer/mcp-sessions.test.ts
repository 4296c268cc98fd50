import { generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import { sessionAnswer } from '@presign/schema';
import { budgets, credentials, grants, idempotencyKeys, sessions } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount } from './accounts.ts';
import { issue, least, refused, type Sent, send } from './ask.ts';
import { bundleClaims, issueMcp, sendMcp, server, serverToken, writtenBundle } from './ask-mcp.ts';
import { startOwnIssuer } from './own-issuer.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const two = [
  { ...server, name: 'zebra' },
  { name: 'constructor', url: 'https://b.example/mcp', transport: 'http' },
];
const counts = async () => ({
  grants: await stack.db.$count(grants),
  sessions: await stack.db.$count(sessions),
  budgets: await stack.db.$count(budgets),
  credentials: await stack.db.$count(credentials),
  keys: await stack.db.$count(idempotencyKeys),
});
/** Runs it, and returns how many rows it added. */
async function added(run: () => Promise<unknown>) {
  const before = await counts();
  await run();
  const after = await counts();
  const names = Object.keys(after) as (keyof typeof after)[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]]));
}
const nothing = { grants: 0, sessions: 0, budgets: 0, credentials: 0, keys: 0 };
/** The rows of one bundle with two servers: grants and credentials of the bundle and its servers. */
const one = { grants: 3, sessions: 1, budgets: 1, credentials: 3, keys: 1 };

describe('Idempotency-Key', () => {
  let next = 0;
  const newKey = () => `key-${next++}`;
  const withKey = (key: string, fields: object = {}, on: Parameters<typeof sendMcp>[0] = stack) =>
    sendMcp(on, { servers: two, ...fields }, { 'idempotency-key': key });

  test('with the same body gets the same answer byte for byte, and one bundle', async () => {
    const key = newKey();
    const auth = { auth_type: 'bearer', auth_config: { token: 't' } };
    const fields = { servers: two.map((each) => ({ ...each, ...auth })), max_uses: 3, metadata: { a: 1 } };
    const texts: string[] = [];
    const rows = await added(async () => {
      for (let i = 0; i < 3; i++) texts.push((await withKey(key, fields)).text);
    });
    expect(rows).toEqual(one);
    expect(JSON.parse(texts[0] ?? '')).toHaveProperty('bundle_token');
    expect(new Set(texts).size).toBe(1);
  });

  test('in 20 parallel requests creates one bundle, and all get its URLs', async () => {
    const key = newKey();
    let sent: Sent[] = [];
    const rows = await added(async () => {
      sent = await Promise.all(Array.from({ length: 20 }, () => withKey(key)));
    });
    expect(rows).toEqual(one);
    expect(new Set(sent.map((each) => each.status))).toEqual(new Set([200]));
    expect(new Set(sent.map((each) => each.text)).size).toBe(1);
  });

  test('with another body is refused with 409, and leaves nothing', async () => {
    const key = newKey();
    expect((await withKey(key)).status).toBe(200);
    const rows = await added(async () => {
      refused(await withKey(key, { max_uses: 1 }), 'idempotency_conflict', 'Idempotency-Key');
    });
    expect(rows).toEqual(nothing);
  });

  test('of a request that was refused, before or during the write, can be used again', async () => {
    const key = newKey();
    const { session_id } = await issueMcp(stack);
    await stack.db.update(sessions).set({ revokedAt: new Date() }).where(eq(sessions.id, session_id));
    const rows = await added(async () => {
      refused(await withKey(key, { max_uses: 0 }), 'invalid_request', 'max_uses');
      refused(await withKey(key, { session_id }), 'session_conflict', 'session_id');
    });
    expect(rows).toEqual(nothing);
    expect((await withKey(key)).status).toBe(200);
  });

  test('belongs to its route: /v1/presign may use the same one', async () => {
    const key = newKey();
    const mcp = await withKey(key);
    const llm = await send(stack, { body: least, headers: { 'idempotency-key': key } });
    expect([mcp.status, llm.status]).toEqual([200, 200]);
    expect((await withKey(key)).text).toBe(mcp.text);
    const again = await send(stack, { body: least, headers: { 'idempotency-key': key } });
    expect(again.text).toBe(llm.text);
  });

  test('stays valid after a rotation of the encryption key, as long as the old key is kept', async () => {
    const key = newKey();
    const first = await withKey(key);
    const keys = `${generateEncryptionKey('newer')},${stack.keys.encryption}`;
    const rotated = await startOwnIssuer(stack, { encryptionKeys: readEncryptionKeys(keys) });
    expect((await withKey(key, {}, rotated)).text).toBe(first.text);
    await rotated.close();
  });

  test('that is malformed is refused', async () => {
    refused(await withKey('k'.repeat(256)), 'invalid_request', 'Idempotency-Key');
  });

  test('is optional: two requests without one are two bundles in two sessions', async () => {
    const [a, b] = [await issueMcp(stack), await issueMcp(stack)];
    expect(a.session_id).not.toBe(b.session_id);
    expect(bundleClaims(stack, a).jti).not.toBe(bundleClaims(stack, b).jti);
    expect(serverToken(a, 'docs')).not.toBe(serverToken(b, 'docs'));
  });
});

describe('session_id', () => {
  test('opens the named session, and can join a session of LLM URLs', async () => {
    const { session_id } = await issue(stack, { provider: 'openai' });
    expect((await issueMcp(stack, { session_id: session_id.toUpperCase() })).session_id).toBe(session_id);
    expect(await stack.db.$count(grants, eq(grants.sessionId, session_id))).toBe(3);
    const fresh = crypto.randomUUID();
    expect((await issueMcp(stack, { session_id: fresh })).session_id).toBe(fresh);
  });

  test('of another account, or of a revoked session, is refused with 409 and leaves nothing', async () => {
    const { session_id } = await issueMcp(stack);
    const other = await addAccount(stack);
    const rows = await added(async () => {
      const stranger = { issuerUrl: stack.issuerUrl, apiKey: other.apiKey };
      refused(await sendMcp(stranger, { session_id }), 'session_conflict', 'session_id');
      await stack.db.update(sessions).set({ revokedAt: new Date() }).where(eq(sessions.id, session_id));
      refused(await sendMcp(stack, { session_id }), 'session_conflict', 'session_id');
    });
    expect(rows).toEqual(nothing);
  });

  test('is returned by GET /v1/sessions/{id} with the kind, server and bundle of each grant, and the shared budget', async () => {
    const answer = await issueMcp(stack, {
      servers: two,
      max_uses: 5,
      cost_limit: 100,
      external_user: 'u',
      metadata: { order: 7 },
    });
    const { own } = await writtenBundle(stack, answer);
    const llm = await issue(stack, { session_id: answer.session_id });
    expect(llm.session_id).toBe(answer.session_id);
    const sent = await send(stack, { method: 'GET', path: `/v1/sessions/${answer.session_id}` });
    const told = sessionAnswer.parse(JSON.parse(sent.text)).grants;
    const limits = { max_uses: 5, cost_limit: 100, live: { used: 0, spent: 0, held: 0 }, status: 'active' };
    const mcp = {
      provider: 'mcp',
      virtual_key: null,
      method: null,
      paths: null,
      external_user: 'u',
      ...limits,
    };
    const bundle_id = own.grants.id;
    expect(told).toHaveLength(4);
    expect(told.find((each) => each.kind === 'mcp_bundle')).toMatchObject({
      ...mcp,
      server: null,
      bundle_id: null,
      metadata: { order: 7 },
    });
    for (const { name, url, transport = 'sse' } of two.map((each) => ({ transport: undefined, ...each }))) {
      const shown = { ...mcp, kind: 'mcp', server: { name, url, transport }, bundle_id, metadata: null };
      expect(told.find((each) => each.server?.name === name)).toMatchObject(shown);
    }
    const paths = ['/v1/chat/completions'];
    expect(told.find((each) => each.kind === 'llm')).toMatchObject({ paths, server: null, bundle_id: null });
  });
});
