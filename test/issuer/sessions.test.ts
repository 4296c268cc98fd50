import { homePartition } from '@presign/schema';
import { grants, sessions, virtualKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { type Account, addAccount, addVirtualKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, least, refused, send } from './ask.ts';

let stack: Stack;
let upstream: Upstream;
let mine: string;
let other: Account;

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({
    providers: { openai: { base_url: upstream.url }, google: { base_url: upstream.url } },
  });
  mine = await ownAccount(stack);
  other = await addAccount(stack);
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const grantOf = async (url: string) => {
  const [row] = await stack.db
    .select()
    .from(grants)
    .where(eq(grants.id, claimsOf(stack, url).jti));
  if (!row) throw new Error('no such grant');
  return row;
};

describe('session_id', () => {
  test('opens the named session, and later requests of the account join it', async () => {
    const session_id = '3F2504E0-4F89-41D3-9A0C-0305E82C3301';
    for (let i = 0; i < 3; i++) {
      const answer = await issue(stack, { session_id });
      expect(answer.session_id).toBe(session_id.toLowerCase());
      expect(claimsOf(stack, answer.url).sub).toBe(answer.session_id);
    }
    expect(await stack.db.$count(grants, eq(grants.sessionId, session_id))).toBe(3);
    expect(await stack.db.$count(sessions, eq(sessions.id, session_id))).toBe(1);
  });

  test('joins a session that was generated', async () => {
    const { session_id } = await issue(stack, {});
    expect((await issue(stack, { session_id })).session_id).toBe(session_id);
  });

  test('of another account is refused with 409, without any detail of the session', async () => {
    const { session_id } = await issue(stack, {});
    const before = await stack.db.$count(grants);
    const sent = await send(stack, { apiKey: other.apiKey, body: { ...least, session_id } });
    expect(refused(sent, 'session_conflict', 'session_id')).toBe(
      'session_id: this session cannot be joined.',
    );
    expect(sent.text).not.toContain(mine);
    expect(await stack.db.$count(grants)).toBe(before);
  });

  test('of a revoked session is refused with 409', async () => {
    const { session_id } = await issue(stack, {});
    await stack.db.update(sessions).set({ revokedAt: new Date() }).where(eq(sessions.id, session_id));
    const sent = await send(stack, { body: { ...least, session_id } });
    expect(refused(sent, 'session_conflict', 'session_id')).toBe(
      'session_id: this session has been revoked.',
    );
  });

  test('in 50 parallel requests opens one new session, and all join it', async () => {
    const session_id = crypto.randomUUID();
    const answers = await Promise.all(Array.from({ length: 50 }, () => issue(stack, { session_id })));
    expect(new Set(answers.map((answer) => answer.session_id))).toEqual(new Set([session_id]));
    expect(await stack.db.$count(grants, eq(grants.sessionId, session_id))).toBe(50);
  });

  test('that two accounts request at once goes to only one of them', async () => {
    const session_id = crypto.randomUUID();
    const keys = Array.from({ length: 20 }, (_, i) => (i % 2 ? stack.apiKey : other.apiKey));
    const sent = await Promise.all(
      keys.map((apiKey) => send(stack, { apiKey, body: { ...least, session_id } })),
    );
    const statuses = sent.map((each) => each.status).sort();
    expect(statuses).toEqual([...Array(10).fill(200), ...Array(10).fill(409)]);
    const owners = await stack.db.select().from(grants).where(eq(grants.sessionId, session_id));
    expect(new Set(owners.map((grant) => grant.accountId)).size).toBe(1);
  });
});

describe('virtual_key', () => {
  const used = async (fields: object) => {
    const { url } = await issue(stack, fields);
    const answer = await fetch(url, { method: 'POST', body: '{}' });
    expect(answer.status, await answer.text()).toBe(200);
    return upstream.seen.at(-1)?.headers.authorization;
  };

  test('is used in place of client_api_key, alone or together with it', async () => {
    const virtual_key = await addVirtualKey(stack, mine, { secret: 'sk-virtual' });
    expect(await used({ virtual_key, client_api_key: null })).toBe('Bearer sk-virtual');
    expect(await used({ virtual_key, client_api_key: 'sk-client' })).toBe('Bearer sk-virtual');
    expect(await used({ client_api_key: 'sk-client' })).toBe('Bearer sk-client');
  });

  test('uses its own credential for its grants: a client_api_key in the same request is not stored', async () => {
    const virtual_key = await addVirtualKey(stack, mine);
    const [key] = await stack.db.select().from(virtualKeys).where(eq(virtualKeys.id, virtual_key));
    const grant = await grantOf((await issue(stack, { virtual_key })).url);
    expect([grant.virtualKeyId, grant.credentialId]).toEqual([virtual_key, key?.credentialId]);
  });

  test('that is unknown, of another account or revoked is refused with a 400 that says which', async () => {
    const others = await addVirtualKey(stack, other.id);
    const revoked = await addVirtualKey(stack, mine, { revokedAt: new Date() });
    const problem = async (virtual_key: string, fields: object = {}) =>
      refused(
        await send(stack, { body: { ...least, virtual_key, ...fields } }),
        'invalid_request',
        'virtual_key',
      );
    expect(await problem('vk_none')).toBe('virtual_key: this virtual key does not exist.');
    expect(await problem(others)).toBe('virtual_key: this virtual key does not exist.');
    expect(await problem(revoked)).toBe('virtual_key: this virtual key has been revoked.');
    expect(await problem('vk\0')).toMatch(/^virtual_key: expected/);
  });

  test("of another provider is refused with a 400 that names the virtual key's provider", async () => {
    const virtual_key = await addVirtualKey(stack, mine, { provider: 'anthropic' });
    const sent = await send(stack, { body: { ...least, virtual_key } });
    expect(refused(sent, 'invalid_request', 'virtual_key')).toBe(
      'virtual_key: this virtual key is for anthropic.',
    );
    await issue(stack, { virtual_key, provider: 'anthropic' });
  });

  test("with a budget puts all its grants into the budget's partition, which is the account's", async () => {
    const virtual_key = await addVirtualKey(stack, mine, { budget: 3 });
    const urls = await Promise.all(Array.from({ length: 5 }, () => issue(stack, { virtual_key })));
    expect(urls.map(({ url }) => claimsOf(stack, url).prt)).toEqual(Array(5).fill(homePartition(mine)));
  });

  test('with a budget limits all its grants together, and each within its own limit', async () => {
    const virtual_key = await addVirtualKey(stack, mine, { budget: 3 });
    const [a, b] = [await issue(stack, { virtual_key, max_uses: 1 }), await issue(stack, { virtual_key })];
    const call = (url: string) => fetch(url, { method: 'POST', body: '{}' }).then((answer) => answer.status);
    expect([await call(a.url), await call(a.url)]).toEqual([200, 403]);
    expect([await call(b.url), await call(b.url), await call(b.url)]).toEqual([200, 200, 403]);
  });

  test('applies its config to its grants, and fields of the request override it', async () => {
    const virtual_key = await addVirtualKey(stack, mine, { config: { model: 'a', max_tokens: 5 } });
    const grant = await grantOf((await issue(stack, { virtual_key, config: { model: 'b' } })).url);
    expect(grant.config).toEqual({ model: 'b', max_tokens: 5 });
    expect((await grantOf((await issue(stack, { virtual_key })).url)).config).toEqual({
      model: 'a',
      max_tokens: 5,
    });
  });

  test('with a model that the paths do not allow is refused like a model of the request', async () => {
    const virtual_key = await addVirtualKey(stack, mine, {
      provider: 'google',
      config: { model: 'gemini-pro' },
    });
    const path = '/v1beta/models/gemini-flash:generateContent';
    const sent = await send(stack, { body: { ...least, provider: 'google', virtual_key, path } });
    expect(refused(sent, 'invalid_request', 'virtual_key')).toContain(path);
    const config = { model: 'gemini-flash' };
    const { url } = await issue(stack, { provider: 'google', virtual_key, path, config });
    expect(claimsOf(stack, url)).toMatchObject({ mdl: 'gemini-flash' });
  });
});
