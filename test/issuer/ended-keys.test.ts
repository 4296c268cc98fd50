import { randomUUID } from 'node:crypto';
import { hashApiKey } from '@presign/crypto';
import { keyPolicy, type McpPresignAnswer, type PresignAnswer } from '@presign/schema';
import {
  accounts,
  apiKeys,
  audit,
  budgets,
  credentials,
  grants,
  idempotencyKeys,
  sessions,
  virtualKeys,
} from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deferred, eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, addVirtualKey } from './accounts.ts';
import { issue, least, type Sent, send } from './ask.ts';
import { server } from './ask-mcp.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';

let upstream: Upstream;
let stack: Stack;
let close: () => Promise<void>;

// Two requests that wait for each other need two sessions of Postgres.
const onServer = describe.skipIf(!canReachDatabase);

if (canReachDatabase) {
  beforeAll(async () => {
    close = await reachableDatabase();
    upstream = await startUpstream();
    stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
    await stack.db.execute(sql.raw(HOLD_GRANTS));
  });
  afterAll(async () => {
    await stack.close();
    await upstream.close();
    await close();
  });
}

/** While a test has this lock, a grant of this user is not written: all other rows are, and nothing is committed. */
const HELD = { lock: 4_242, user: 'held' };
const HOLD_GRANTS = `
  create function hold() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(${HELD.lock}); return new; end $$;
  create trigger hold before insert on grants for each row
    when (new.external_user = '${HELD.user}') execute function hold();`;

type Way = { readonly path: string; readonly body: object; readonly headers?: Record<string, string> };

/** Each way to issue that writes its rows with other statements. */
const WAYS: readonly [string, (account: string, own: Stack) => Promise<Way>][] = [
  ['a URL', async () => ({ path: '/v1/presign', body: least })],
  [
    'a URL of a session',
    async (_, own) => ({ path: '/v1/presign', body: { ...least, ...(await joined(own)) } }),
  ],
  ['a URL with an Idempotency-Key', async () => ({ path: '/v1/presign', body: least, headers: once() })],
  [
    'a URL of a virtual key',
    async (account) => ({
      path: '/v1/presign',
      body: { ...OF_KEY, virtual_key: await addVirtualKey(stack, account) },
    }),
  ],
  ['a bundle', async () => ({ path: '/v2/mcp-presign', body: { servers: SERVERS } })],
  [
    'a bundle of a session',
    async (_, own) => ({ path: '/v2/mcp-presign', body: { servers: SERVERS, ...(await joined(own)) } }),
  ],
  [
    'a bundle with an Idempotency-Key',
    async () => ({ path: '/v2/mcp-presign', body: { servers: SERVERS }, headers: once() }),
  ],
];
const OF_KEY = { provider: least.provider, path: least.path };
const SERVERS = [server, { ...server, name: 'more' }];
const once = () => ({ 'idempotency-key': randomUUID() });
const joined = async (own: Stack) => ({ session_id: (await issue(own, {})).session_id });

async function idOf(apiKey: string): Promise<string> {
  const own = eq(apiKeys.hash, hashApiKey(apiKey));
  const [row] = await stack.db.select().from(apiKeys).where(own);
  return row?.id ?? '';
}

/** An account of its own, with a key that issues and another one that revokes. */
async function newcomers() {
  const { id: account } = await addAccount(stack);
  const key = async (scopes: string[]) => {
    const apiKey = await addApiKey(stack, account, { scopes, lastUsedAt: new Date() });
    return { ...stack, apiKey, keyId: await idOf(apiKey) };
  };
  return { account, own: await key(['presign']), admin: await key(['admin']) };
}

/** Runs `during` while a transaction has locks; afterwards the transaction is committed. */
async function holding(
  lock: ReturnType<typeof sql>,
  during: (end: ReturnType<typeof sql>[]) => Promise<void>,
) {
  const end: ReturnType<typeof sql>[] = [];
  await stack.db.transaction(async (tx) => {
    await tx.execute(lock);
    await during(end);
    for (const statement of end) await tx.execute(statement);
  });
}

const ask = (own: Stack, { path, body, headers = {} }: Way): Promise<Sent> =>
  send(own, { path, body: { ...body, external_user: HELD.user }, headers });
const remove = (own: Stack, path: string) => send(own, { method: 'DELETE', path: `/v1/${path}` });
/** Whether so many statements of this stack wait for a lock. */
const waiting = async (many: number) => (await stack.db.$count(sql`pg_stat_activity`, WAITS)) >= many;
/** Comes about when so many statements wait. Fails if a request that must wait is answered first, and says how. */
const untilWaiting = (many: number, asked: Promise<Sent>) =>
  Promise.race([
    eventually(() => waiting(many)),
    asked.then(({ status, text }) => {
      throw new Error(`answered before it waited: ${status} ${text}`);
    }),
  ]);
const WAITS = sql`datname = current_database() and wait_event_type = 'Lock'`;

/** The codes of the refusals of all URLs of an answer, or `passed`. */
async function outcomesOf(text: string): Promise<string[]> {
  const answer = JSON.parse(text) as PresignAnswer | McpPresignAnswer;
  const urls = 'url' in answer ? [answer.url] : Object.values(answer.servers).map(({ url }) => url);
  const called = urls.map(async (url) => {
    const body = 'url' in answer ? { model: 'm', messages: [] } : { jsonrpc: '2.0', id: 1, method: 'ping' };
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(body),
    });
    return /grant_revoked/.exec(await response.text())?.[0] ?? 'passed';
  });
  return [...new Set(await Promise.all(called))];
}

onServer('a request that is under way when its API key ends', () => {
  test.each(WAYS)(
    '%s that is being issued is revoked with everything that the key issued',
    async (_, way) => {
      const { account, own, admin } = await newcomers();
      const asked = await way(account, own);
      let issued: Promise<Sent> | undefined;
      let revoked: Promise<Sent> | undefined;
      const answered = deferred();
      await holding(sql`select pg_advisory_xact_lock(${HELD.lock})`, async () => {
        issued = ask(own, asked);
        await untilWaiting(1, issued);
        expect((await remove(admin, `api-keys/${own.keyId}`)).status).toBe(204);
        revoked = remove(admin, `sessions?api_key=${own.keyId}`);
        void revoked.then(answered.resolve);
        // Either it waits for the request, or it answers while the URL is not written.
        await Promise.race([answered.promise, eventually(() => waiting(2))]);
      });
      const url = await issued;
      expect((await revoked)?.status).toBe(204);
      expect(url?.status, url?.text).toBe(200);
      expect(await outcomesOf(url?.text ?? '')).toEqual(['grant_revoked']);
    },
  );

  /** How a key can end, what is locked meanwhile, and how a request is answered then. */
  const ofKey = (set: Partial<typeof apiKeys.$inferInsert>) => (id: string) =>
    stack.db.update(apiKeys).set(set).where(eq(apiKeys.id, id)).getSQL();
  const ofAccount = (set: Partial<typeof accounts.$inferInsert>) => (id: string) =>
    stack.db.update(accounts).set(set).where(eq(accounts.id, id)).getSQL();
  const ENDS = [
    ['is revoked', apiKeys, ofKey({ revokedAt: new Date() }), 401, 'unauthenticated'],
    ['expires', apiKeys, ofKey({ expiresAt: new Date(0) }), 401, 'unauthenticated'],
    [
      'is of an account that is suspended',
      accounts,
      ofAccount({ suspendedAt: new Date() }),
      403,
      'account_suspended',
    ],
    [
      'is of an account that is deleted',
      accounts,
      ofAccount({ deletedAt: new Date() }),
      401,
      'unauthenticated',
    ],
  ] as const;
  /** The key or its account ends while a request waits for it, and the request is refused. */
  async function refusedBy(
    [, table, ends, status, code]: (typeof ENDS)[number],
    { account, keyId }: { readonly account: string; readonly keyId: string },
    ask: () => Promise<Sent>,
  ): Promise<void> {
    const id = table === apiKeys ? keyId : account;
    let asked: Promise<Sent> | undefined;
    await holding(sql`select from ${table} where id = ${id} for update`, async (then) => {
      asked = ask();
      await untilWaiting(1, asked);
      then.push(ends(id));
    });
    const answer = await asked;
    expect(answer?.status, answer?.text).toBe(status);
    expect(JSON.parse(answer?.text ?? '{}')).toMatchObject({ error: { code } });
  }
  const each = WAYS.flatMap(([name, way]) => ENDS.map((end) => [name, end[0], way, end] as const));
  test.each(each)(
    '%s is not stored if the key %s before its rows are written',
    async (_name, _end, way, end) => {
      const { account, own } = await newcomers();
      const asked = await way(account, own);
      const before = await rows(account);
      await refusedBy(end, { account, keyId: own.keyId }, () => ask(own, asked));
      expect(await rows(account)).toEqual(before);
    },
  );

  /** Changes of a key that takes away what a request asks for, and how the request is answered then. */
  const TAKEN: readonly [string, Partial<typeof apiKeys.$inferInsert>, string][] = [
    ['loses the scope', { scopes: ['read'] }, 'forbidden'],
    ['gets a policy', { policy: keyPolicy.parse({ providers: ['anthropic'] }) }, 'policy_forbids'],
    ['is renamed', { name: 'other' }, ''],
  ];
  test.each(WAYS.flatMap(([name, way]) => TAKEN.map((taken) => [name, taken[0], way, taken] as const)))(
    '%s is judged again if the key %s before its rows are written',
    async (_name, _what, way, [, set, code]) => {
      const { account, own } = await newcomers();
      const asked = await way(account, own);
      const before = await rows(account);
      let issued: Promise<Sent> | undefined;
      await holding(sql`select from ${apiKeys} where id = ${own.keyId} for update`, async (then) => {
        issued = ask(own, asked);
        await untilWaiting(1, issued);
        const changed = { ...set, revision: 2 };
        then.push(stack.db.update(apiKeys).set(changed).where(eq(apiKeys.id, own.keyId)).getSQL());
      });
      const answer = await issued;
      expect(answer?.status, answer?.text).toBe(code === '' ? 200 : 403);
      if (code === '') return;
      expect(JSON.parse(answer?.text ?? '{}')).toMatchObject({ error: { code } });
      expect(await rows(account)).toEqual(before);
    },
  );

  /** How many rows of each kind there are. */
  const rows = (account: string) =>
    Promise.all([
      stack.db.$count(budgets),
      ...[grants, sessions, credentials, idempotencyKeys].map((table) =>
        stack.db.$count(table, eq(table.accountId, account)),
      ),
    ]);

  /** Changes of an account, which another key may make. */
  const CHANGES: readonly [
    string,
    (account: string) => Promise<Omit<Parameters<typeof send>[1], 'apiKey'>>,
  ][] = [
    ['an API key', async () => ({ path: '/v1/api-keys', body: { name: 'new', scopes: ['admin'] } })],
    [
      'an API key with an Idempotency-Key',
      async () => ({ path: '/v1/api-keys', body: { name: 'new', scopes: ['admin'] }, headers: once() }),
    ],
    ['a webhook', async () => ({ path: '/v1/webhooks', body: { url: 'https://example.com/' } })],
    [
      'a virtual key',
      async () => ({
        path: '/v1/virtual-keys',
        body: { name: 'new', provider: 'openai', key: 'sk' },
      }),
    ],
    ['a budget', async () => ({ path: '/v1/budgets', body: { scope: { external_user: 'u' }, max_uses: 1 } })],
    [
      'a change of a virtual key',
      async (account) => ({
        method: 'PATCH',
        path: `/v1/virtual-keys/${await addVirtualKey(stack, account)}`,
        body: { name: 'other' },
      }),
    ],
    [
      'the end of a virtual key',
      async (account) => ({
        method: 'DELETE',
        path: `/v1/virtual-keys/${await addVirtualKey(stack, account)}`,
      }),
    ],
    [
      'a change of another API key',
      async (account) => ({
        method: 'PATCH',
        path: `/v1/api-keys/${await idOf(await addApiKey(stack, account))}`,
        body: { name: 'taken over' },
      }),
    ],
    [
      'the end of a session',
      async (account) => {
        const { session_id } = await issue({ ...stack, apiKey: await addApiKey(stack, account) }, {});
        return { method: 'DELETE', path: `/v1/sessions/${session_id}` };
      },
    ],
  ];
  test.each(CHANGES)(
    '%s is not changed if the key loses its scope before the audit entry is written',
    async (_name, change) => {
      const { account, admin } = await newcomers();
      const asked = await change(account);
      const before = await states(account);
      let made: Promise<Sent> | undefined;
      await holding(sql`select from ${apiKeys} where id = ${admin.keyId} for update`, async (then) => {
        made = send(admin, asked);
        await untilWaiting(1, made);
        const lost = { scopes: ['read'], revision: 2 };
        then.push(stack.db.update(apiKeys).set(lost).where(eq(apiKeys.id, admin.keyId)).getSQL());
      });
      const answer = await made;
      expect(answer?.status, answer?.text).toBe(403);
      expect(await states(account)).toEqual(before);
    },
  );

  const changes = CHANGES.flatMap(([name, change]) =>
    ENDS.filter(([end]) => end !== 'expires').map((end) => [name, end[0], change, end] as const),
  );
  test.each(changes)(
    '%s is not changed if the key %s before the audit entry is written',
    async (_name, _end, change, end) => {
      const { account, admin } = await newcomers();
      const asked = await change(account);
      const before = await states(account);
      await refusedBy(end, { account, keyId: admin.keyId }, () => send(admin, asked));
      expect(await states(account)).toEqual(before);
    },
  );

  /** Everything that these changes write. */
  const states = async (account: string) => [
    await stack.db
      .select({ id: apiKeys.id, name: apiKeys.name })
      .from(apiKeys)
      .where(eq(apiKeys.accountId, account))
      .orderBy(apiKeys.id),
    await stack.db
      .select()
      .from(virtualKeys)
      .where(eq(virtualKeys.accountId, account))
      .orderBy(virtualKeys.id),
    await stack.db
      .select({ id: sessions.id, revokedAt: sessions.revokedAt })
      .from(sessions)
      .where(eq(sessions.accountId, account)),
    ...(await Promise.all(
      [webhooks, audit].map((table) => stack.db.$count(table, eq(table.accountId, account))),
    )),
    await stack.db.$count(budgets),
  ];

  test('a key may revoke itself, and is refused from then on', async () => {
    const { account, admin } = await newcomers();
    await addApiKey(stack, account, { scopes: ['admin'] });
    expect((await remove(admin, `api-keys/${admin.keyId}`)).status).toBe(204);
    expect((await remove(admin, `api-keys/${admin.keyId}`)).status).toBe(401);
  });

  test('a URL whose virtual key is deleted while the URL is written does not work', async () => {
    const { account, own, admin } = await newcomers();
    const virtual_key = await addVirtualKey(stack, account);
    let issued: Promise<Sent> | undefined;
    await holding(sql`select pg_advisory_xact_lock(${HELD.lock})`, async () => {
      issued = ask(own, { path: '/v1/presign', body: { ...OF_KEY, virtual_key } });
      await untilWaiting(1, issued);
      expect((await remove(admin, `virtual-keys/${virtual_key}`)).status).toBe(204);
    });
    const url = await issued;
    expect(url?.status, url?.text).toBe(200);
    expect(await outcomesOf(url?.text ?? '')).toEqual(['grant_revoked']);
  });

  test('20 other requests, and a change of the key, do not wait', async () => {
    const { own, admin } = await newcomers();
    let issued: Promise<Sent>[] = [];
    await holding(sql`select pg_advisory_xact_lock(${HELD.lock})`, async () => {
      issued = Array.from({ length: 3 }, () => ask(own, { path: '/v1/presign', body: least }));
      await eventually(() => waiting(3));
      const path = `/v1/api-keys/${own.keyId}`;
      const changed = await send(admin, { method: 'PATCH', path, body: { name: 'renamed' } });
      expect(changed.status, changed.text).toBe(200);
      // One after the other: the driver sends a request on a connection that waits when all others are busy, too.
      for (let i = 0; i < 20; i++) expect((await send(own, { body: least })).status).toBe(200);
    });
    for (const { status } of await Promise.all(issued)) expect(status).toBe(200);
  });
});
