import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { readEncryptionKeys, seal } from '@presign/crypto';
import { webhookContext, webhooks } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addCalls, createAlert, evaluate, ownerOf } from './alerts.ts';
import { refused, send } from './ask.ts';
import { EAGER, type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import { hasten, quiet, sendTest, settledAs } from './webhook-receiver.ts';

const SECRET = 'T0SECRET/B0SECRET/pathSECRET';

let stack: Stack;
let slack: Upstream;
/** Its log is read. */
let issuer: OwnIssuer;
const logs: string[] = [];

beforeAll(async () => {
  slack = await startUpstream((_seen, response) => void response.writeHead(200).end('ok'));
  stack = await startStack({ providers: {}, issuer: EAGER });
  await stack.issuer.close();
  const log = pino({ level: 'trace' }, { write: (line: string) => void logs.push(line) });
  issuer = await startOwnIssuer(stack, { ...EAGER, log });
});
afterAll(async () => {
  await issuer.close();
  await stack.close();
  await slack.close();
});

const owner = async () => ({ ...(await ownerOf(stack)), issuerUrl: issuer.issuerUrl });

async function addSlack(of: { issuerUrl: string; apiKey: string }, url: string, headers = {}) {
  const sent = await send(of, { path: '/v1/webhooks', body: { url, format: 'slack' }, headers });
  expect(sent.status, sent.text).toBe(201);
  return { sent, id: (JSON.parse(sent.text) as { id: string }).id };
}

/** Every row of every table, as text. */
async function everything(): Promise<string> {
  const tables = await stack.db.execute<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = 'public'`,
  );
  const texts = await Promise.all(
    tables.map(({ name }) => stack.db.execute(sql.raw(`select to_jsonb(t)::text as row from "${name}" t`))),
  );
  return JSON.stringify(texts);
}

test("an alert message is posted in Slack's format: unsigned, with its control characters escaped", async () => {
  const of = await owner();
  const { id: webhook } = await addSlack(of, `${slack.url}/services/${SECRET}`);
  const condition = { spend: { window: 'day', amount: 50_000_000 } };
  const { id } = await createAlert(of, { name: 'R&D <!channel> spend', condition, webhook });
  await addCalls(of, 0, [{ costMicrousd: 61_209_999 }]);
  await evaluate(stack, id, 3);
  await quiet(stack, issuer);
  const posted = slack.seen.filter(({ url }) => url === `/services/${SECRET}`);
  expect(posted.map(({ body }) => JSON.parse(String(body)))).toEqual([
    { text: 'Fired: R&amp;D &lt;!channel&gt; spend. Spend of the day: $61.20 (alert at $50.00).' },
  ]);
  expect(posted[0]?.method).toBe('POST');
  expect(posted[0]?.headers['content-type']).toBe('application/json');
  expect(Object.keys(posted[0]?.headers ?? {}).filter((name) => name.startsWith('webhook-'))).toEqual([]);
});

test('its URL is in no answer, audit entry or log, and is only encrypted in Postgres', async () => {
  const of = await owner();
  const url = `${slack.url}/services/${SECRET}-a`;
  const headers = { 'idempotency-key': randomUUID() };
  const { sent, id } = await addSlack(of, url, headers);
  const again = await addSlack(of, url, headers);
  expect(again.sent.text).toBe(sent.text);
  expect(JSON.parse(sent.text)).toMatchObject({ secret: null, events: [], url: `${new URL(url).origin}/…` });
  const moved = { method: 'PATCH', path: `/v1/webhooks/${id}`, body: { url: `${url}/moved` } };
  const answers = [
    sent.text,
    (await send(of, moved)).text,
    (await send(of, { path: `/v1/webhooks/${id}/rotate-secret` })).text,
    (await send(of, { method: 'PATCH', path: `/v1/webhooks/${id}`, body: { events: [] } })).text,
    (await send(of, { method: 'GET', path: '/v1/webhooks' })).text,
    (await send(of, { method: 'GET', path: '/v1/audit' })).text,
    refused(await send(of, { ...moved, body: { url: `${url}#part` } }), 'invalid_request', 'url'),
  ];
  await sendTest(of, { id });
  await quiet(stack, issuer);
  // A Slack that answers with an error, and one that does not answer, are logged without it, too.
  await stack.db
    .update(webhooks)
    .set({ sealed: sealedFor(of.account, id, 'http://127.0.0.1:9/SECRET') })
    .where(eq(webhooks.id, id));
  await sendTest(of, { id });
  await settledAs(of, { id }, { last_error: 'unreachable' });
  expect(slack.seen.some(({ url: path }) => path.endsWith('SECRET-a/moved'))).toBe(true);
  expect(logs.some((line) => line.includes('webhook not delivered'))).toBe(true);
  expect([...answers, ...logs, await everything()].filter((text) => text.includes('SECRET'))).toEqual([]);
});

const sealedFor = (accountId: string, id: string, url: string) =>
  seal(readEncryptionKeys(stack.keys.encryption), url, webhookContext(accountId, id));

test('a private address is refused like that of any endpoint, at registration and at connection', async () => {
  const of = await owner();
  const guarded = await startOwnIssuer(stack, { ...EAGER, allowPrivateUpstreams: false });
  const at = { ...of, issuerUrl: guarded.issuerUrl };
  const connections: unknown[] = [];
  const inside = createServer((socket) => void connections.push(socket.destroy()));
  await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
  const { port } = inside.address() as { port: number };
  for (const url of [
    `https://127.0.0.1:${port}/${SECRET}`,
    'https://10.0.0.1/SECRET',
    'http://hooks.slack.com/SECRET',
  ]) {
    const message = refused(
      await send(at, { path: '/v1/webhooks', body: { url, format: 'slack' } }),
      'invalid_request',
      'url',
    );
    expect(message).not.toContain('SECRET');
  }
  const { id } = await addSlack(at, `https://hooks.example/${SECRET}`);
  await issuer.close();
  // As if its name now resolved to a private address.
  const url = `https://localhost:${port}/${SECRET}`;
  await stack.db
    .update(webhooks)
    .set({ sealed: sealedFor(of.account, id, url) })
    .where(eq(webhooks.id, id));
  await sendTest(at, { id });
  await hasten(stack, { id });
  await settledAs(at, { id }, { last_error: 'address_not_public', last_status: null });
  expect(connections).toEqual([]);
  inside.close();
  await guarded.close();
});
