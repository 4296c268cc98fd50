import { randomUUID } from 'node:crypto';
import type { AuditEntry } from '@presign/schema';
import { audit, grants } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, refused, type Sent, send } from './ask.ts';
import { presign } from './command.ts';
import { operations } from './document.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';
import { createVirtualKey } from './virtual-keys.ts';
import { addEndpoint, type Endpoint, sendTest } from './webhook-receiver.ts';

let stack: Stack;
let takeAway = async () => {};
const endpoints: Endpoint[] = [];

beforeAll(async () => {
  if (canReachDatabase) takeAway = await reachableDatabase();
  stack = await startStack({ providers: {} });
});
afterAll(async () => {
  await stack.close();
  for (const { upstream } of endpoints) await upstream.close();
  await takeAway();
});

const read = async (query = '', apiKey = stack.apiKey) =>
  send(stack, { method: 'GET', path: `/v1/audit${query}`, apiKey });
const entriesOf = async (query = '', apiKey = stack.apiKey) => {
  const sent = await read(query, apiKey);
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as { data: AuditEntry[]; next_cursor: string | null };
};
const endpoint = async () => {
  const made = await addEndpoint(stack);
  endpoints.push(made);
  return made;
};
const SECRET = 'sk-upstream-never-to-be-seen';

/** A change of an account of its own. */
async function onAccount(method: string, suffix: string, action: AuditEntry['action']): Promise<Change> {
  const made = await send(stack, { path: '/v1/accounts', body: { name: 'customer' } });
  const { id } = JSON.parse(made.text) as { id: string };
  return { method, path: `/v1/accounts/${id}${suffix}`, action, kind: 'account', id };
}

/** A budget of a user of its own. */
async function aBudget(): Promise<string> {
  const body = { scope: { external_user: `user-${randomUUID()}` }, max_uses: 5 };
  const made = await send(stack, { path: '/v1/budgets', body });
  return (JSON.parse(made.text) as { id: string }).id;
}

type Change = {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  /** The entry that it must leave. `id` is undefined where the answer has it. */
  readonly action: AuditEntry['action'];
  readonly kind: AuditEntry['target']['kind'];
  readonly id?: string;
};

/** Every operation that changes something, on something of its own. */
const CHANGES: Readonly<Record<string, () => Promise<Change>>> = {
  changeGrant: async () => {
    const id = claimsOf(stack, (await issue(stack, {})).url).jti;
    const body = { max_uses: 5, metadata: { secret: SECRET } };
    return { method: 'PATCH', path: `/v1/grants/${id}`, body, action: 'grant.changed', kind: 'grant', id };
  },
  createBudget: async () => ({
    method: 'POST',
    path: '/v1/budgets',
    body: { scope: { external_user: `user-${randomUUID()}` }, max_uses: 5 },
    action: 'budget.created',
    kind: 'budget',
  }),
  changeBudget: async () => {
    const id = await aBudget();
    const body = { max_uses: 6 };
    return { method: 'PATCH', path: `/v1/budgets/${id}`, body, action: 'budget.changed', kind: 'budget', id };
  },
  deleteBudget: async () => {
    const id = await aBudget();
    return { method: 'DELETE', path: `/v1/budgets/${id}`, action: 'budget.deleted', kind: 'budget', id };
  },
  revokeGrant: async () => {
    const id = claimsOf(stack, (await issue(stack, {})).url).jti;
    return { method: 'DELETE', path: `/v1/grants/${id}`, action: 'urls.revoked', kind: 'grant', id };
  },
  changeSession: async () => {
    const { session_id: id } = await issue(stack, {});
    const body = { name: 'chat', metadata: { secret: SECRET } };
    return {
      method: 'PATCH',
      path: `/v1/sessions/${id}`,
      body,
      action: 'session.changed',
      kind: 'session',
      id,
    };
  },
  revokeSession: async () => {
    const { session_id: id } = await issue(stack, {});
    return { method: 'DELETE', path: `/v1/sessions/${id}`, action: 'urls.revoked', kind: 'session', id };
  },
  revokeSessions: async () => {
    const id = `user-${randomUUID()}`;
    await issue(stack, { external_user: id });
    const path = `/v1/sessions?external_user=${id}`;
    return { method: 'DELETE', path, action: 'urls.revoked', kind: 'external_user', id };
  },
  createVirtualKey: async () => ({
    method: 'POST',
    path: '/v1/virtual-keys',
    body: { provider: 'openai', name: 'production', key: SECRET, budget: { cost_limit: 5 } },
    action: 'virtual_key.created',
    kind: 'virtual_key',
  }),
  changeVirtualKey: async () => {
    const { id } = await createVirtualKey(stack, { budget: { max_uses: 5 } });
    const path = `/v1/virtual-keys/${id}`;
    const body = { name: 'other', budget: { max_uses: 6 } };
    return { method: 'PATCH', path, body, action: 'virtual_key.changed', kind: 'virtual_key', id };
  },
  rotateVirtualKey: async () => {
    const { id } = await createVirtualKey(stack);
    const path = `/v1/virtual-keys/${id}/rotate`;
    const body = { key: SECRET };
    return { method: 'POST', path, body, action: 'virtual_key.rotated', kind: 'virtual_key', id };
  },
  deleteVirtualKey: async () => {
    const { id } = await createVirtualKey(stack, { key: SECRET });
    const path = `/v1/virtual-keys/${id}`;
    return { method: 'DELETE', path, action: 'virtual_key.deleted', kind: 'virtual_key', id };
  },
  createApiKey: async () => ({
    method: 'POST',
    path: '/v1/api-keys',
    body: { name: 'backend', scopes: ['presign'] },
    action: 'api_key.created',
    kind: 'api_key',
  }),
  changeApiKey: async () => {
    const made = await send(stack, { path: '/v1/api-keys', body: { name: 'old', scopes: ['read'] } });
    const { id } = JSON.parse(made.text) as { id: string };
    const body = { name: 'new' };
    return {
      method: 'PATCH',
      path: `/v1/api-keys/${id}`,
      body,
      action: 'api_key.changed',
      kind: 'api_key',
      id,
    };
  },
  revokeApiKey: async () => {
    const made = await send(stack, { path: '/v1/api-keys', body: { name: 'old', scopes: ['read'] } });
    const { id } = JSON.parse(made.text) as { id: string };
    return { method: 'DELETE', path: `/v1/api-keys/${id}`, action: 'api_key.revoked', kind: 'api_key', id };
  },
  createAccount: async () => ({
    method: 'POST',
    path: '/v1/accounts',
    body: { name: 'customer' },
    action: 'account.created',
    kind: 'account',
  }),
  changeAccount: async () => ({
    ...(await onAccount('PATCH', '', 'account.changed')),
    body: { name: 'renamed', limits: { api_keys: 9 } },
  }),
  suspendAccount: () => onAccount('POST', '/suspend', 'account.suspended'),
  resumeAccount: () => onAccount('POST', '/resume', 'account.resumed'),
  deleteAccount: () => onAccount('DELETE', '', 'account.deleted'),
  createWebhook: async () => ({
    method: 'POST',
    path: '/v1/webhooks',
    body: { url: `https://hooks.example/${SECRET}` },
    action: 'webhook.created',
    kind: 'webhook',
  }),
  changeWebhook: async () => {
    const { id } = await endpoint();
    const body = { url: `https://hooks.example/${SECRET}/moved`, description: 'new' };
    return {
      method: 'PATCH',
      path: `/v1/webhooks/${id}`,
      body,
      action: 'webhook.changed',
      kind: 'webhook',
      id,
    };
  },
  deleteWebhook: async () => {
    const { id } = await endpoint();
    return { method: 'DELETE', path: `/v1/webhooks/${id}`, action: 'webhook.deleted', kind: 'webhook', id };
  },
  rotateWebhookSecret: async () => {
    const { id } = await endpoint();
    const path = `/v1/webhooks/${id}/rotate-secret`;
    return { method: 'POST', path, action: 'webhook.secret_rotated', kind: 'webhook', id };
  },
  enableWebhook: async () => {
    const { id } = await endpoint();
    const disabled = { disabledAt: new Date(), disabledReason: 'failing' as const };
    await stack.db.update(webhooks).set(disabled).where(eq(webhooks.id, id));
    const path = `/v1/webhooks/${id}/enable`;
    return { method: 'POST', path, action: 'webhook.enabled', kind: 'webhook', id };
  },
  testWebhook: async () => {
    const { id } = await endpoint();
    return { method: 'POST', path: `/v1/webhooks/${id}/test`, action: 'webhook.tested', kind: 'webhook', id };
  },
  createAlert: async () => ({
    method: 'POST',
    path: '/v1/alerts',
    body: ALERT,
    action: 'alert.created',
    kind: 'alert',
  }),
  changeAlert: async () => {
    const id = await alertOf();
    const path = `/v1/alerts/${id}`;
    return { method: 'PATCH', path, body: { name: 'b' }, action: 'alert.changed', kind: 'alert', id };
  },
  deleteAlert: async () => {
    const id = await alertOf();
    return { method: 'DELETE', path: `/v1/alerts/${id}`, action: 'alert.deleted', kind: 'alert', id };
  },
  testAlert: async () => {
    const id = await alertOf();
    return { method: 'POST', path: `/v1/alerts/${id}/test`, action: 'alert.tested', kind: 'alert', id };
  },
  replayDelivery: async () => {
    const made = await endpoint();
    const { id } = await sendTest(stack, made);
    const path = `/v1/webhooks/${made.id}/deliveries/${id}/replay`;
    return { method: 'POST', path, action: 'delivery.replayed', kind: 'delivery', id };
  },
};

const ALERT = { name: 'a', condition: { spend: { window: 'day', amount: 1 } } };
const alertOf = async () => {
  const { id: webhook } = await endpoint();
  const made = await send(stack, { path: '/v1/alerts', body: { ...ALERT, webhook } });
  return (JSON.parse(made.text) as { id: string }).id;
};

/** Every secret that an answer shows once, and those that the requests have. */
function secretsOf(sent: Sent): string[] {
  const answer = (sent.text === '' ? {} : JSON.parse(sent.text)) as Record<string, string>;
  const { key, secret, api_key: first } = answer as typeof answer & { api_key?: { key: string } };
  return [SECRET, stack.apiKey, ...[key, secret, first?.key].filter((each) => each !== undefined)];
}

describe('every operation that changes something', () => {
  const ISSUING = ['presign', 'mcpPresign'];

  test('is in the list of this file', () => {
    const changing = operations.filter(({ method }) => method !== 'GET');
    const names = changing.map(({ operation }) => operation.operationId);
    expect([...Object.keys(CHANGES), ...ISSUING].sort()).toEqual(names.sort());
  });

  test.each(Object.entries(CHANGES))(
    '%s writes exactly one entry, without a secret',
    async (_name, prepare) => {
      const { method, path, body, action, kind, id } = await prepare();
      const before = await stack.db.$count(audit);
      const sent = await send(stack, { method, path, ...(body && { body }) });
      expect(sent.status, sent.text).toBeLessThan(300);
      expect((await stack.db.$count(audit)) - before).toBe(1);
      const { data } = await entriesOf('?limit=1');
      const made = id ?? (JSON.parse(sent.text) as { id: string }).id;
      expect(data[0]).toMatchObject({
        action,
        target: { kind, id: made },
        actor: expect.stringMatching(/^[0-9a-f-]{36}$/),
        request_id: sent.headers.get('x-request-id'),
        remote_address: '127.0.0.1',
      });
      const rows = JSON.stringify(await stack.db.select().from(audit));
      for (const secret of secretsOf(sent)) expect(rows).not.toContain(secret);
    },
  );

  test.each(Object.entries(CHANGES))('%s writes no entry if it is refused', async (_name, prepare) => {
    const { method, path, body } = await prepare();
    const before = await stack.db.$count(audit);
    const { apiKey } = await addAccount(stack);
    const sent = await send(stack, { method, path, ...(body && { body }), apiKey });
    // A filter that matches no URL of the account is no error.
    if (path.includes('external_user')) expect(sent.status).toBe(204);
    else expect(sent.status).toBeGreaterThanOrEqual(400);
    expect((await stack.db.$count(audit)) - before).toBe(sent.status === 204 ? 1 : 0);
  });
});

describe('the audit log', () => {
  test('has the fields that changed, with old and new values', async () => {
    const { id } = await createVirtualKey(stack);
    await send(stack, { path: `/v1/virtual-keys/${id}/rotate`, body: { key: 'sk-next' } });
    const { data } = await entriesOf(`?target_id=${id}`);
    const states = data.map(({ before, after }) => ({ before, after }));
    expect(states).toEqual([
      { before: { version: 1 }, after: { version: 2 } },
      { before: null, after: { name: 'production', provider: 'openai', config: null, budget: null } },
    ]);
  });

  test('counts the URLs that a revocation ended, even if the revocation is repeated', async () => {
    const user = `user-${randomUUID()}`;
    for (const _ of [1, 2, 3]) await issue(stack, { external_user: user });
    const path = `/v1/sessions?external_user=${user}`;
    for (const _ of [1, 2]) expect((await send(stack, { method: 'DELETE', path })).status).toBe(204);
    const { data } = await entriesOf(`?target_kind=external_user&target_id=${user}`);
    expect(data.map(({ after }) => after)).toEqual([{ urls: 0 }, { urls: 3 }]);
  });

  test('filters by actor, action, target and time, and pages with a cursor', async () => {
    const account = await ownAccount(stack);
    const apiKey = await addApiKey(stack, account, { scopes: ['admin'] });
    const from = Date.now() / 1000 - 5;
    for (const name of ['a', 'b', 'c'])
      await send(stack, { path: '/v1/api-keys', body: { name, scopes: ['read'] }, apiKey });
    const [newest] = (await entriesOf('?limit=1')).data;
    const query = `?actor=${newest?.actor}&action=api_key.created&target_kind=api_key`;
    const namesOf = (data: AuditEntry[]) => data.map(({ after }) => after?.name);
    const first = await entriesOf(`${query}&limit=2&from=${from.toFixed(3)}`);
    expect(namesOf(first.data)).toEqual(['c', 'b']);
    const second = await entriesOf(`${query}&limit=2&cursor=${first.next_cursor}`);
    expect([namesOf(second.data), second.next_cursor]).toEqual([['a'], null]);
    expect((await entriesOf(`${query}&to=${from.toFixed(3)}`)).data).toEqual([]);
    expect((await entriesOf(`${query}&target_id=${newest?.target.id}`)).data).toEqual([newest]);
    refused(await read('?action=api_key.guessed'), 'invalid_request', 'action');
    refused(await read('?target=x'), 'invalid_request', 'target');
  });

  test('shows an account only its own entries, to keys with the scope read', async () => {
    const other = await addAccount(stack);
    const reader = await addApiKey(stack, other.id, { scopes: ['read'] });
    expect((await entriesOf('', reader)).data).toEqual([]);
    await send(stack, {
      body: { provider: 'openai', path: '/v1/models', client_api_key: 'sk', method: 'GET' },
      apiKey: other.apiKey,
    });
    const [grant] = await stack.db.select().from(grants).where(eq(grants.accountId, other.id));
    await send(stack, { method: 'DELETE', path: `/v1/grants/${grant?.id}`, apiKey: other.apiKey });
    expect((await entriesOf('', reader)).data).toMatchObject([{ target: { kind: 'grant', id: grant?.id } }]);
    expect((await entriesOf(`?target_id=${grant?.id}`)).data).toEqual([]);
    refused(await read('', other.apiKey), 'forbidden');
  });

  test('is written together with the change or not at all', async () => {
    const before = await stack.db.$count(audit);
    const all = await send(stack, { method: 'GET', path: '/v1/api-keys?limit=100' });
    const { data } = JSON.parse(all.text) as { data: { id: string; name: string }[] };
    const id = data.find(({ name }) => name === 'bootstrap')?.id;
    const others = data.filter((each) => each.id !== id);
    for (const each of others) await send(stack, { method: 'DELETE', path: `/v1/api-keys/${each.id}` });
    const revoked = (await stack.db.$count(audit)) - before;
    expect(revoked).toBe(others.length);
    refused(await send(stack, { method: 'DELETE', path: `/v1/api-keys/${id}` }), 'last_admin_key');
    expect((await stack.db.$count(audit)) - before).toBe(revoked);
  });

  test('loses entries older than AUDIT_KEPT_DAYS, and no others', async () => {
    const old = { accountId: randomUUID(), actor: 'cli', action: 'account.created' as const };
    const target = { targetKind: 'account' as const, targetId: 'x' };
    const id = randomUUID();
    const days = (count: number) => new Date(Date.now() - count * 86_400_000);
    await stack.db.insert(audit).values([
      { ...old, ...target, id, at: days(11) },
      { ...old, ...target, at: days(9) },
    ]);
    const issuer = await startOwnIssuer(stack, { auditDays: 10 });
    const own = eq(audit.accountId, old.accountId);
    await eventually(async () => ((await stack.db.$count(audit, own)) === 1 ? true : undefined));
    await issuer.close();
    expect(await stack.db.$count(audit, eq(audit.id, id))).toBe(0);
  });

  test('shows the key of the environment as created by the issuer', async () => {
    const { data } = await entriesOf('?actor=issuer');
    expect(data).toMatchObject([
      { action: 'api_key.created', request_id: null, remote_address: null, after: { name: 'bootstrap' } },
    ]);
  });

  test.skipIf(!canReachDatabase)('has the changes made by the command line, with the actor cli', async () => {
    const env = { DATABASE_URL: stack.databaseUrl };
    const created = await presign(['accounts', 'create', '--name', 'acme'], env);
    const account = created.out.trim();
    const key = ['api-keys', 'create', '--name', 'first', '--scopes', 'admin', '--account', account];
    const apiKey = (await presign(key, env)).out.trim();
    const { data } = await entriesOf('', apiKey);
    expect(data.map(({ actor, action, remote_address }) => [actor, action, remote_address])).toEqual([
      ['cli', 'api_key.created', null],
      ['cli', 'account.created', null],
    ]);
    expect(JSON.stringify(data)).not.toContain(apiKey);
  });
});
