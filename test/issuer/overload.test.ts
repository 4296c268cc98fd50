import { createServer, type Server } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { webhookDeliveries } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deferred, eventually } from '../harness/eventually.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { issue, least, refused, send } from './ask.ts';

let up: Upstream;
let stack: Stack;
beforeAll(async () => {
  up = await startUpstream((_seen, response) => void response.writeHead(200).end('{}'));
  stack = await startStack({ providers: { openai: { base_url: up.url } } });
});
afterAll(async () => {
  await stack.close();
  await up.close();
});

/** The embedded engine has one connection, which a transaction keeps. */
const onServer = test.skipIf(process.env.TEST_DATABASE_URL === undefined);

onServer('a keyed request that waits too long for a locked session gets 503 with Retry-After', async () => {
  const { session_id } = await issue(stack, {});
  const [locked, refusal] = [deferred(), deferred()];
  const held = stack.db.transaction(async (tx) => {
    await tx.execute(sql`select 1 from sessions where id = ${session_id} for update`);
    locked.resolve();
    await refusal.promise;
  });
  await locked.promise;
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const sent = await send(stack, { body: { ...least, session_id }, headers });
  refusal.resolve();
  refused(sent, 'database_unavailable');
  expect(sent.headers.get('retry-after')).toBe('1');
  await held;
  expect((await send(stack, { body: { ...least, session_id }, headers })).status).toBe(200);
});

test('an account has at most 20 endpoints, however many are added at once', async () => {
  const { id } = await addAccount(stack);
  const apiKey = await addApiKey(stack, id, { scopes: ['admin'] });
  const add = () => send(stack, { path: '/v1/webhooks', apiKey, body: { url: `${up.url}/hook` } });
  const made = await Promise.all(Array.from({ length: 60 }, add));
  expect(made.filter(({ status }) => status === 201)).toHaveLength(20);
  await stack.db.execute(sql`delete from webhooks where account_id = ${id}`);
});

describe('a key that changes while its request delays the body', () => {
  const ADMIN = ['/v1/api-keys', { name: 'another', scopes: ['admin'] }] as const;
  const policy = { providers: ['anthropic'] };

  test.each([
    ['is revoked', ['admin'], 'DELETE', undefined, ADMIN, 401],
    ['loses the scope', ['admin', 'read'], 'PATCH', { scopes: ['read'] }, ADMIN, 403],
    [
      'loses the scope',
      ['admin', 'read'],
      'PATCH',
      { scopes: ['read'] },
      ['/v1/budgets', { scope: { external_user: 'u' }, max_uses: 1 }],
      403,
    ],
    ['loses the scope', ['presign', 'read'], 'PATCH', { scopes: ['read'] }, ['/v1/presign', least], 403],
    ['gets a policy', ['presign'], 'PATCH', { policy }, ['/v1/presign', least], 403],
  ] as const)('(it %s: %j, %s %j) does not make %j', async (_what, scopes, method, change, asked, status) => {
    const { id } = await addAccount(stack);
    const good = await addApiKey(stack, id, { scopes: ['admin'] });
    const leaked = await addApiKey(stack, id, { scopes: [...scopes], name: 'leaked' });
    const [path, content] = asked;
    const body = JSON.stringify(content);
    const socket = net.connect(Number(new URL(stack.issuerUrl).port), '127.0.0.1');
    let heard = '';
    socket.on('data', (chunk) => {
      heard += String(chunk);
    });
    const head = [`Host: x`, `Authorization: Bearer ${leaked}`, 'Content-Type: application/json'];
    socket.write(`POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n`);
    const list = await send(stack, { method: 'GET', path: '/v1/api-keys', apiKey: good });
    const { data } = JSON.parse(list.text) as { data: { id: string; name: string }[] };
    const row = data.find(({ name }) => name === 'leaked');
    const own = { method, path: `/v1/api-keys/${row?.id}`, apiKey: good };
    const changed = await send(stack, change ? { ...own, body: change } : own);
    expect(changed.status, changed.text).toBeLessThan(300);
    // Only a body that comes later than 250 ms after its headers has its key judged again.
    await sleep(300);
    socket.write(body);
    await eventually(async () => (heard.includes('\r\n\r\n') ? true : undefined));
    socket.destroy();
    expect(Number(heard.split(' ')[1]), heard).toBe(status);
  });
});

onServer('many usage reports at once leave connections for issuing', async () => {
  const usage: ReturnType<typeof send>[] = [];
  await stack.db.transaction(async (tx) => {
    await tx.execute(sql`lock table ledger in access exclusive mode`);
    for (let i = 0; i < 30; i++) usage.push(send(stack, { method: 'GET', path: '/v1/usage?from=0' }));
    await othersWait(stack, tx);
    await issue(stack, {});
  });
  expect((await Promise.all(usage)).every(({ status }) => status === 200)).toBe(true);
});

onServer('endpoints that hang do not keep the events of another one waiting', async () => {
  const hanging: Server = createServer(() => {});
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/`;
  for (let account = 0; account < 4; account++) {
    const { id } = await addAccount(stack);
    const apiKey = await addApiKey(stack, id, { scopes: ['admin'] });
    for (let i = 0; i < 20; i++) {
      const made = await send(stack, { path: '/v1/webhooks', apiKey, body: { url } });
      const { id } = JSON.parse(made.text) as { id: string };
      const test = () => send(stack, { path: `/v1/webhooks/${id}/test`, apiKey });
      await Promise.all(Array.from({ length: 10 }, test));
    }
  }
  // Every attempt of the first round has been waited for in vain.
  const timedOut = () => stack.db.$count(webhookDeliveries, eq(webhookDeliveries.lastError, 'timeout'));
  await eventually(async () => ((await timedOut()) >= 32 ? true : undefined));
  const own = await send(stack, { path: '/v1/webhooks', body: { url: `${up.url}/well` } });
  await send(stack, { path: `/v1/webhooks/${(JSON.parse(own.text) as { id: string }).id}/test` });
  await eventually(async () => (up.seen.some((seen) => seen.url === '/well') ? true : undefined));
  hanging.closeAllConnections();
  hanging.close();
});
