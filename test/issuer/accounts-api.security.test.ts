import { randomUUID } from 'node:crypto';
import { connectRedis } from '@presign/limits';
import type { AccountAnswer, NewAccountAnswer, NewApiKeyAnswer, VirtualKeyAnswer } from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { credentials, virtualKeys } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { ownAccount } from './accounts.ts';
import { least, refused, type Sent, send } from './ask.ts';
import { EAGER, startOwnIssuer } from './own-issuer.ts';

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    if (seen.headers['x-behave'] === 'silent') return;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n');
    // A call that asks for it gets an answer without an end.
    if (seen.headers['x-behave'] !== 'endless') response.end('data: [DONE]\n\n');
  });
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ask = (method: string, path = '', body?: object, to: Pick<Stack, 'issuerUrl' | 'apiKey'> = stack) =>
  send(to, { method, path: `/v1/accounts${path}`, ...(body && { body }) });

const read = <T>(sent: Sent, status = 200): T => {
  expect(sent.status, sent.text).toBe(status);
  return JSON.parse(sent.text) as T;
};

const newAccount = async () => read<NewAccountAnswer>(await ask('POST', '', { name: 'customer' }), 201);
const shown = async (id: string) => read<AccountAnswer>(await ask('GET', `/${id}`));

/** A URL of an account. */
const urlOf = async ({ api_key: { key } }: NewAccountAnswer): Promise<string> => {
  const sent = await send(stack, { apiKey: key, body: least });
  return read<{ url: string }>(sent).url;
};

const call = (url: string, behave = 'end') =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-behave': behave },
    body: '{"model":"m","stream":true,"messages":[]}',
  });

const second = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');

/** How a call ends at each gateway: `served`, or the code of its refusal. */
const outcomes = (url: string) =>
  Promise.all(
    [url, second(url)].map(async (each) => {
      const answer = await call(each);
      await answer.text();
      return answer.headers.get('x-presign-code') ?? 'served';
    }),
  );

const SERVED = ['served', 'served'];
const SUSPENDED = ['account_suspended', 'account_suspended'];

test('an account is created with its first key, read, and listed newest first', async () => {
  const made = await newAccount();
  const { api_key: apiKey, ...account } = made;
  expect(account).toMatchObject({ name: 'customer', suspended_at: null, deleted_at: null });
  expect(apiKey.scopes).toEqual(['admin']);
  expect(await shown(account.id)).toEqual(account);
  const next = await newAccount();
  const page = read<{ data: AccountAnswer[]; next_cursor: string }>(await ask('GET', '?limit=1'));
  expect(page.data.map(({ id }) => id)).toEqual([next.id]);
  const rest = read<{ data: AccountAnswer[] }>(await ask('GET', `?limit=100&cursor=${page.next_cursor}`));
  expect(rest.data[0]).toEqual(account);
  expect(rest.data.map(({ id }) => id)).toContain(await ownAccount(stack));
});

describe('a suspended account', () => {
  test('has no call admitted at any gateway after the 204, and is served again after it resumes', async () => {
    const account = await newAccount();
    const other = await urlOf(await newAccount());
    const [known, fresh] = [await urlOf(account), await urlOf(account)];
    expect(await outcomes(known)).toEqual(SERVED);
    expect((await ask('POST', `/${account.id}/suspend`)).status).toBe(204);
    expect(await outcomes(known)).toEqual(SUSPENDED);
    expect(await outcomes(fresh)).toEqual(SUSPENDED);
    expect(await outcomes(other)).toEqual(SERVED);
    expect((await shown(account.id)).suspended_at).toBeGreaterThan(0);
    expect((await ask('POST', `/${account.id}/resume`)).status).toBe(204);
    expect(await outcomes(known)).toEqual(SERVED);
    expect(await outcomes(fresh)).toEqual(SERVED);
    expect((await shown(account.id)).suspended_at).toBeNull();
  });

  test('has its calls in flight cut', async () => {
    const account = await newAccount();
    const [mine, other] = [await urlOf(account), await urlOf(await newAccount())];
    const open = [await call(mine, 'endless'), await call(second(mine), 'endless')];
    const spared = await call(other, 'endless');
    const cut = open.map((answer) => answer.text().catch(() => 'cut'));
    expect((await ask('POST', `/${account.id}/suspend`)).status).toBe(204);
    for (const each of cut) await each;
    const first = await spared.body?.getReader().read();
    expect(first?.done).toBe(false);
  });

  test('is the reason in the refusal of an unanswered call, and in the record of the call', async () => {
    const account = await newAccount();
    const url = await urlOf(account);
    const before = upstream.seen.length;
    const waiting = call(url, 'silent');
    await eventually(async () => upstream.seen.length > before);
    expect((await ask('POST', `/${account.id}/suspend`)).status).toBe(204);
    const answer = await waiting;
    const refused = [403, 'account_suspended'];
    expect([answer.status, answer.headers.get('x-presign-code')]).toEqual(refused);
    // `GET` without a path shows the state of a URL.
    const status = await fetch(url.replace('/v1/chat/completions', ''));
    expect([status.status, status.headers.get('x-presign-code')]).toEqual(refused);
    await ask('POST', `/${account.id}/resume`);
    const path = `/v1/calls/${answer.headers.get('x-presign-request-id')}`;
    const found = await eventually(async () => {
      const sent = await send(stack, { method: 'GET', path, apiKey: account.api_key.key });
      return sent.status === 200 ? sent : undefined;
    });
    expect(read(found)).toMatchObject({ failure: 'account_suspended' });
    expect(await outcomes(url)).toEqual(SERVED);
  });

  test('has every request of its API keys refused', async () => {
    const account = await newAccount();
    await ask('POST', `/${account.id}/suspend`);
    const { key } = account.api_key;
    for (const request of [
      { body: least },
      { path: '/v1/sessions', method: 'GET' },
      { path: '/v1/api-keys', body: { name: 'x', scopes: ['admin'] } },
    ])
      refused(await send(stack, { ...request, apiKey: key }), 'account_suspended');
    await ask('POST', `/${account.id}/resume`);
    expect((await send(stack, { apiKey: key, body: least })).status).toBe(200);
  });

  test('stays suspended when Redis has lost everything', async () => {
    const account = await newAccount();
    const url = await urlOf(account);
    expect(await outcomes(url)).toEqual(SERVED);
    await ask('POST', `/${account.id}/suspend`);
    await flush(stack.redis);
    // Until the partition is open again, no call passes at all.
    const become = (wanted: readonly string[]) =>
      eventually(async () => {
        const now = await outcomes(url);
        if (wanted === SUSPENDED) expect(now).not.toContain('served');
        return now.join() === wanted.join() ? true : undefined;
      });
    await become(SUSPENDED);
    await ask('POST', `/${account.id}/resume`);
    await become(SERVED);
  });

  test('is suspended with 202 while Redis is down, and takes effect without another request', async () => {
    const account = await newAccount();
    const url = await urlOf(account);
    expect(await outcomes(url)).toEqual(SERVED);
    const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
    const cutOff = await startOwnIssuer(stack, { redis });
    const sent = await ask('POST', `/${account.id}/suspend`, undefined, cutOff);
    expect([sent.status, sent.text]).toEqual([202, '{"status":"pending"}']);
    await eventually(async () => ((await outcomes(url)).join() === SUSPENDED.join() ? true : undefined));
    await cutOff.close();
    redis.disconnect();
  });
});

test('a deleted account is refused permanently, and the keys of its virtual keys are erased', async () => {
  const account = await newAccount();
  const url = await urlOf(account);
  const { key } = account.api_key;
  const stored = { provider: 'openai', name: 'x', key: 'sk-to-erase' };
  const made = await send(stack, { apiKey: key, path: '/v1/virtual-keys', body: stored });
  const { id } = read<VirtualKeyAnswer>(made, 201);
  expect((await ask('DELETE', `/${account.id}`)).status).toBe(204);
  expect(await outcomes(url)).toEqual(SUSPENDED);
  refused(await send(stack, { apiKey: key, body: least }), 'unauthenticated');
  const [row] = await stack.db
    .select({ sealed: credentials.sealed })
    .from(virtualKeys)
    .innerJoin(credentials, eq(credentials.id, virtualKeys.credentialId))
    .where(eq(virtualKeys.id, id));
  expect(row?.sealed).toBe('');
  const deleted = await shown(account.id);
  expect(deleted.deleted_at).toBeGreaterThan(0);
  for (const path of ['/resume', '/suspend'])
    refused(await ask('POST', `/${account.id}${path}`), 'account_deleted');
  refused(await ask('PATCH', `/${account.id}`, { name: 'again' }), 'account_deleted');
  // For a caller who has lost the answer, or got a 202.
  expect((await ask('DELETE', `/${account.id}`)).status).toBe(204);
  expect(await shown(account.id)).toEqual(deleted);
  expect(await outcomes(url)).toEqual(SUSPENDED);
  refused(await ask('DELETE', `/${randomUUID()}`), 'not_found');
});

test('the endpoints of a deleted account keep no secret, such as a Slack URL, and its alerts are deleted', async () => {
  const { id, api_key } = await newAccount();
  const of = { ...stack, apiKey: api_key.key };
  const endpoint = { format: 'slack', url: `${upstream.url}/services/T0/B0/secret` };
  const { id: webhook } = read<{ id: string }>(await send(of, { path: '/v1/webhooks', body: endpoint }), 201);
  const signed = read<{ id: string }>(
    await send(of, { path: '/v1/webhooks', body: { url: upstream.url } }),
    201,
  );
  read(await send(of, { path: `/v1/webhooks/${signed.id}/rotate-secret` }));
  const alert = { name: 'Spend', webhook, condition: { spend: { window: 'day', amount: 1 } } };
  read(await send(of, { path: '/v1/alerts', body: alert }), 201);
  expect((await ask('DELETE', `/${id}`)).status).toBe(204);
  const rows = await stack.db.select().from(webhooks).where(eq(webhooks.accountId, id));
  const erased = { sealed: '', previousSealed: null, disabledAt: expect.any(Date) };
  expect(rows).toMatchObject([erased, erased]);
  expect(await stack.db.$count(alerts, eq(alerts.accountId, id))).toBe(0);
});

describe('the scope operator', () => {
  test('is needed for every account route, and admin does not include it', async () => {
    const {
      id,
      api_key: { key },
    } = await newAccount();
    for (const [method, path, body] of [
      ['GET', ''],
      ['GET', `/${id}`],
      ['POST', '', { name: 'mine' }],
      ['POST', `/${id}/suspend`],
      ['POST', `/${id}/resume`],
      ['DELETE', `/${id}`],
    ] as const) {
      const sent = await ask(method, path, body, { ...stack, apiKey: key });
      expect(refused(sent, 'forbidden')).toContain('"operator"');
    }
  });

  test('can be given only by a key that has it', async () => {
    const {
      api_key: { key },
    } = await newAccount();
    const request = { path: '/v1/api-keys', body: { name: 'mine', scopes: ['operator'] } };
    refused(await send(stack, { ...request, apiKey: key }), 'forbidden');
    const made = read<NewApiKeyAnswer>(await send(stack, request), 201);
    expect((await ask('GET', '', undefined, { ...stack, apiKey: made.key })).status).toBe(200);
    refused(await send(stack, { apiKey: made.key, body: least }), 'forbidden');
  });

  test('does not suspend or delete its own account, and gets 404 for an unknown one', async () => {
    const own = await ownAccount(stack);
    for (const [method, path] of [
      ['POST', '/suspend'],
      ['POST', '/resume'],
      ['DELETE', ''],
    ] as const) {
      refused(await ask(method, `/${own}${path}`), 'own_account');
      refused(await ask(method, `/${randomUUID()}${path}`), 'not_found');
    }
  });
});
