import { randomUUID } from 'node:crypto';
import type { ErrorBody, KeyPolicy, PresignAnswer } from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets, grants, sessions } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey, addVirtualKey, ownAccount } from './accounts.ts';
import { least, type Sent, send } from './ask.ts';
import { row as ledgerRow } from './ask-usage.ts';
import { operations, type Place, pathOf, scopeOf } from './document.ts';

/** Texts that only keys with these scopes may meet in an answer. */
const MARKS = {
  'metadata-of-the-owner': 'read',
  'user-of-the-owner': 'read',
  // The uses and the money of each URL.
  '"used":7771': 'read',
  '"spent":888001': 'read',
  'name-of-a-key': 'admin',
  'hooks-of-the-owner': 'admin',
  'name-of-an-account': 'operator',
} as const;

/** Keys of one account, by what they may do. `owner` issues everything that the others ask for. */
const KEYS = {
  owner: { scopes: ['presign'] },
  reader: { scopes: ['read'] },
  issuer: { scopes: ['presign'] },
  bound: { scopes: ['presign'], policy: { providers: ['openai', 'mcp'] } },
  boundReader: { scopes: ['presign', 'read'], policy: { providers: ['openai', 'mcp'] } },
  admin: { scopes: ['admin'] },
  operator: { scopes: ['operator'] },
} as const satisfies Record<string, { scopes: readonly string[]; policy?: object }>;
type KeyName = keyof typeof KEYS;
const NAMES = Object.keys(KEYS) as KeyName[];

/** Whether a key has a scope. Written apart from the issuer's own rule. */
const has = (name: KeyName, scope: string): boolean => {
  const scopes: readonly string[] = KEYS[name].scopes;
  return scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));
};
const isBound = (name: KeyName) => 'policy' in KEYS[name];
/** Whether a key may get a URL that `owner` issued. */
const getsUrl = (name: KeyName) => name === 'owner' || (has(name, 'presign') && !isBound(name));
/** Whether a key may change a URL that `owner` issued: it may see something of it. */
const mayChange = (name: KeyName) => getsUrl(name) || has(name, 'read');

let stack: Stack;
let keys: Record<KeyName, string>;
/** An admin and operator of the account, which makes what the others ask for. */
const asRoot = (path: string, body: object) => send(stack, { path, body });
const idOf = (sent: Sent) => {
  expect(sent.status, sent.text).toBeLessThan(300);
  return (JSON.parse(sent.text) as { id: string }).id;
};
const HOOK = 'https://hooks-of-the-owner.example/a';

/** A URL of `owner`, with figures, and a call of it. */
async function ownersUrl() {
  const fields = { metadata: { of: 'metadata-of-the-owner' }, external_user: 'user-of-the-owner' };
  const sent = await send(stack, { body: { ...least, ...fields }, apiKey: keys.owner });
  const issued = JSON.parse(sent.text) as PresignAnswer;
  const { grant_id: id, session_id, expires_at } = issued;
  const [grant] = await stack.db.select().from(grants).where(sql`${grants.id} = ${id}`);
  if (!grant) throw new Error('no grant');
  const figures = { used: 7_771, settledMicrousd: 888_001 };
  await stack.db.update(budgets).set(figures).where(sql`${budgets.id} = ${grant.budgetId}`);
  const metadata = { of: 'metadata-of-the-owner' };
  await stack.db.update(sessions).set({ metadata }).where(sql`${sessions.id} = ${session_id}`);
  const request_id = randomUUID();
  const of = { ...stack, account: grant.accountId };
  const columns = { grantId: grant.id, sessionId: session_id, externalUser: 'user-of-the-owner' };
  await stack.db.insert(ledger).values(ledgerRow(of, { ...columns, requestId: request_id }));
  return { id: grant.id, session_id, expires_at, request_id };
}

/** Ids for the parameters of a path, and the body of a request. */
type Asked = {
  readonly ids?: Record<string, string>;
  readonly query?: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
  /** Keys that have the scope, and are refused all the same. */
  readonly refuses?: (name: KeyName) => boolean;
};

const account = async () => {
  const made = await asRoot('/v1/accounts', { name: 'name-of-an-account' });
  return { ids: { id: idOf(made) } };
};
const apiKey = async () => {
  const made = await asRoot('/v1/api-keys', { name: 'name-of-a-key', scopes: ['read'] });
  return { ids: { id: idOf(made) } };
};
const budget = async () => {
  const scope = { external_user: `user-of-the-owner-${randomUUID()}` };
  return { ids: { id: idOf(await asRoot('/v1/budgets', { scope, max_uses: 5 })) } };
};
const virtualKey = async (): Promise<Asked & { ids: { id: string } }> => {
  return { ids: { id: await addVirtualKey(stack, await ownAccount(stack)) } };
};
/** Alone, because an account has only a few. */
const hook = async () => {
  await stack.db.delete(webhooks);
  return { ids: { id: idOf(await asRoot('/v1/webhooks', { url: HOOK })) } };
};
/** Alone, for the same reason. */
const alert = async () => {
  await stack.db.delete(alerts);
  const { ids } = await hook();
  return { ids: { id: idOf(await asRoot('/v1/alerts', { ...ALERT, webhook: ids.id })) } };
};
const ALERT = { name: 'name-of-an-alert', condition: { spend: { window: 'day', amount: 1 } } };
const grant = async () => {
  const { id, request_id, expires_at, session_id } = await ownersUrl();
  return { ids: { id, request_id }, expires_at, session_id };
};
const session = async () => {
  const { session_id: id, expires_at } = await ownersUrl();
  return { ids: { id }, expires_at };
};
const some = async (): Promise<Asked> => ({});

/** A request of every operation, on something of `owner` or of its account. */
const REQUESTS: Readonly<Record<string, () => Promise<Asked>>> = {
  presign: async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const first = await send(stack, { body: least, headers, apiKey: keys.owner });
    expect(first.status, first.text).toBe(200);
    return { body: least, headers, refuses: isBound };
  },
  mcpPresign: async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { servers: [{ name: 'a', url: 'https://mcp.example/mcp' }] };
    const first = await send(stack, { path: '/v2/mcp-presign', body, headers, apiKey: keys.owner });
    expect(first.status, first.text).toBe(200);
    return { body, headers, refuses: isBound };
  },
  listSessions: some,
  getSession: session,
  changeSession: async () => {
    const { ids, expires_at } = await session();
    return { ids, body: { name: 'n', grants: { expires_at } }, refuses: (name) => !mayChange(name) };
  },
  revokeSession: session,
  revokeSessions: async () => ({ query: `?external_user=${randomUUID()}` }),
  listGrants: async () => {
    await ownersUrl();
    return {};
  },
  getGrant: grant,
  changeGrant: async () => {
    const { ids, expires_at } = await grant();
    return { ids, body: { expires_at }, refuses: (name) => !mayChange(name) };
  },
  revokeGrant: grant,
  getUsage: async () => ({ query: '?group_by=external_user' }),
  getUsageHours: some,
  getRefusals: some,
  listCalls: some,
  getCall: grant,
  listSimilarCalls: grant,
  search: async () => ({ query: '?contains=of-the-owner' }),
  listAudit: some,
  listModels: some,
  getLimits: some,
  createVirtualKey: async () => ({ body: { provider: 'openai', name: 'a', key: 'sk-a' } }),
  listVirtualKeys: some,
  getVirtualKey: virtualKey,
  changeVirtualKey: async () => ({ ...(await virtualKey()), body: { name: 'b' } }),
  rotateVirtualKey: async () => ({ ...(await virtualKey()), body: { key: 'sk-b' } }),
  deleteVirtualKey: virtualKey,
  // A repetition of what a key with more scopes has asked.
  createApiKey: async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { name: 'name-of-a-key', scopes: ['operator'] };
    const first = await send(stack, { path: '/v1/api-keys', body, headers });
    expect(first.status, first.text).toBe(201);
    return { body, headers, refuses: (name) => !has(name, 'operator') };
  },
  listApiKeys: some,
  getApiKey: apiKey,
  changeApiKey: async () => ({ ...(await apiKey()), body: { name: 'name-of-a-key-2' } }),
  revokeApiKey: apiKey,
  createAccount: async () => ({ body: { name: 'name-of-an-account' } }),
  listAccounts: async () => ({ query: '?include=usage' }),
  getAccount: account,
  getAccountUsage: account,
  changeAccount: async () => ({ ...(await account()), body: { name: 'name-of-an-account-2' } }),
  suspendAccount: account,
  resumeAccount: account,
  deleteAccount: account,
  createBudget: async () => ({ body: { scope: { external_user: randomUUID() }, max_uses: 5 } }),
  listBudgets: some,
  getBudget: budget,
  changeBudget: async () => ({ ...(await budget()), body: { max_uses: 6 } }),
  deleteBudget: budget,
  createWebhook: async () => ({ ...(await hook()), body: { url: HOOK } }),
  listWebhooks: some,
  getWebhook: hook,
  changeWebhook: async () => ({ ...(await hook()), body: { description: 'b' } }),
  deleteWebhook: hook,
  rotateWebhookSecret: hook,
  enableWebhook: hook,
  testWebhook: hook,
  listDeliveries: hook,
  replayDelivery: async () => {
    const { ids } = await hook();
    const sent = await asRoot(`/v1/webhooks/${ids.id}/test`, {});
    return { ids: { ...ids, delivery_id: idOf(sent) } };
  },
  createAlert: async () => {
    await stack.db.delete(alerts);
    return { body: ALERT };
  },
  listAlerts: some,
  getAlert: alert,
  changeAlert: async () => ({ ...(await alert()), body: { name: 'b' } }),
  deleteAlert: alert,
  testAlert: alert,
  listFirings: alert,
  publicKeys: some,
};

const WRITTEN = [
  'grants',
  'sessions',
  'budgets',
  'api_keys',
  'accounts',
  'virtual_keys',
  'webhooks',
  'alerts',
  'audit',
];

/** Columns that change without a request: the last use of a key, deliveries that fail, and the evaluation of an alert. */
const BY_ITSELF: Readonly<Record<string, readonly string[]>> = {
  api_keys: ['last_used_at'],
  webhooks: ['failing_since'],
  alerts: ['due_at', 'checked_at', 'value', 'threshold'],
};

/** Everything that a request can change. */
async function contents(): Promise<string> {
  const tables = WRITTEN.map((name) => {
    const row = `to_jsonb(t) - '{${(BY_ITSELF[name] ?? []).join()}}'::text[]`;
    return `select '${name}' as name, coalesce(md5(string_agg((${row})::text, '' order by (${row})::text)), '') as rows from ${name} t`;
  });
  return JSON.stringify(await stack.db.execute(sql.raw(tables.join(' union all '))));
}

beforeAll(async () => {
  stack = await startStack({ providers: {} });
  const account = await ownAccount(stack);
  const entries = NAMES.map(async (name) => {
    const scopes = [...KEYS[name].scopes];
    const policy = 'policy' in KEYS[name] ? KEYS[name].policy : null;
    return [
      name,
      await addApiKey(stack, account, { name, scopes, policy: policy as KeyPolicy | null }),
    ] as const;
  });
  keys = Object.fromEntries(await Promise.all(entries)) as Record<KeyName, string>;
});
afterAll(() => stack.close());

const seen = new Map<string, Set<string>>();

test('every operation of the API has a request in this file', () => {
  const names = operations.map(({ operation }) => operation.operationId);
  expect(Object.keys(REQUESTS).sort()).toEqual(names.sort());
});

const walk = operations.flatMap((place) =>
  NAMES.map((name) => ({ place, name, id: place.operation.operationId })),
);

describe('an answer contains no more than its key may issue or read', () => {
  test.each(walk)('$id, requested by $name', async ({ place, name, id }) => {
    const { refuses, ...asked } = (await REQUESTS[id]?.()) ?? {};
    const scope = scopeOf(place.operation);
    const isAllowed = scope === undefined || has(name, scope);
    const isRefused = !isAllowed || refuses?.(name);
    const before = isRefused && (await contents());
    const sent = await ask(place, asked, name);
    if (isRefused) {
      const { error } = JSON.parse(sent.text) as ErrorBody;
      expect([403, 409], sent.text).toContain(sent.status);
      if (!isAllowed) expect(error.code).toBe('forbidden');
      expect(await contents(), 'a refused request changes nothing').toBe(before);
    } else expect(sent.status, sent.text).toBeLessThan(300);
    const text = sent.text + JSON.stringify([...sent.headers]);
    for (const [mark, needed] of Object.entries(MARKS)) {
      if (!text.includes(mark)) continue;
      expect(has(name, needed), `${mark} in ${sent.text}`).toBe(true);
      seen.set(mark, (seen.get(mark) ?? new Set()).add(id));
    }
    if (text.includes('v4.public.')) {
      expect(getsUrl(name), sent.text).toBe(true);
      seen.set('url', (seen.get('url') ?? new Set()).add(id));
    }
  });

  test('and each answer is readable by some key', () => {
    expect([...seen.keys()].sort()).toEqual([...Object.keys(MARKS), 'url'].sort());
    for (const id of ['changeGrant', 'changeSession', 'presign', 'mcpPresign'])
      expect(seen.get('url')).toContain(id);
    expect(seen.get('"used":7771')).toContain('changeGrant');
  });
});

const ask = (place: Place, { ids = {}, query = '', body, headers = {} }: Asked, name: KeyName) =>
  send(stack, {
    method: place.method,
    path: pathOf(place, ids) + query,
    apiKey: keys[name],
    headers,
    ...(body && { body }),
  });
