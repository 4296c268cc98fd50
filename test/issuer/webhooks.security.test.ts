import { createServer } from 'node:net';
import { webhooks } from '@presign/schema/webhook-tables';
import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { issue, refused, send, tokenOf } from './ask.ts';
import { EAGER, type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import { addEndpoint, arrived, deliveriesOf, sendTest, settledAs } from './webhook-receiver.ts';

let stack: Stack;
let upstream: Upstream;
/** As deployed: what is private is not reached. */
let guarded: OwnIssuer;
const logs: string[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
  const log = pino({ level: 'trace' }, { write: (line: string) => void logs.push(line) });
  guarded = await startOwnIssuer(stack, { ...EAGER, allowPrivateUpstreams: false, log });
});
afterAll(async () => {
  await guarded.close();
  await stack.close();
  await upstream.close();
});

const create = (to: { issuerUrl: string; apiKey: string }, body: object) =>
  send(to, { path: '/v1/webhooks', body });

describe('an endpoint is refused with its field', () => {
  test.each([
    ['has another scheme', 'ftp://example.com/'],
    ['has no scheme', '//example.com/hook'],
    ['has a host alone', 'example.com'],
    ['has a user', 'https://user:secret@example.com/'],
    ['has a fragment', 'https://example.com/#part'],
    ['has a space', 'https://example.com/a b'],
    ['has a control character', 'https://example.com/\0'],
    ['is not ASCII', 'https://exämple.com/'],
    ['has a backslash', 'https://example.com\\@inside/'],
    ['is too long', `https://example.com/${'a'.repeat(2_048)}`],
    ['is empty', ''],
    ['is a number', 7],
    ['is null', null],
  ])('if its url %s', async (_what, url) => {
    refused(await create(stack, { url }), 'invalid_request', 'url');
  });

  test.each([
    ['http://example.com/'],
    ['https://127.0.0.1/'],
    ['https://2130706433/'],
    ['https://0x7f.1/'],
    ['https://[::1]/'],
    ['https://[::ffff:10.0.0.1]/'],
    ['https://10.1.2.3:8443/'],
    ['https://localhost/'],
    ['https://LocalHost.:8443/'],
    ['https://hooks.localhost/'],
  ])('if its url is %s, unless private addresses are allowed', async (url) => {
    const message = refused(await create(guarded, { url }), 'invalid_request', 'url');
    expect(message).toContain('(ALLOW_PRIVATE_UPSTREAMS=true at the issuer allows it)');
    const allowed = await create(stack, { url });
    expect(allowed.status, allowed.text).toBe(201);
    const { id } = JSON.parse(allowed.text) as { id: string };
    await send(stack, { method: 'DELETE', path: `/v1/webhooks/${id}` });
  });

  test.each([
    ['http://169.254.169.254/latest/meta-data'],
    ['https://[fd00:c1::a9fe:a9fe]/'],
    ['https://[::ffff:a9fe:a9fe]/'],
    ['https://metadata.google.internal/'],
  ])('if its url is %s, whatever is allowed', async (url) => {
    for (const each of [stack, guarded]) {
      const message = refused(await create(each, { url }), 'invalid_request', 'url');
      expect(message).toContain('never receives events');
    }
  });

  test.each([
    ['an unknown format', 'format', { format: 'teams' }],
    ['events for Slack', 'events', { format: 'slack', events: ['grant.revoked'] }],
    ['an event twice', 'events', { events: ['session.exhausted', 'session.exhausted'] }],
    ['an unknown event', 'events[0]', { events: ['session.begun'] }],
    ['no list of events', 'events', { events: 'grant.revoked' }],
    ['a long description', 'description', { description: 'a'.repeat(256) }],
    ['a secret of its own', 'secret', { secret: 'whsec_mine' }],
  ])('if it has %s', async (_what, param, fields) => {
    refused(await create(stack, { url: 'https://example.com/', ...fields }), 'invalid_request', param);
  });

  test('beyond twenty for an account', async () => {
    const { apiKey } = await adminOf(await addAccount(stack));
    for (let i = 0; i < 20; i++)
      expect((await create({ ...stack, apiKey }, { url: 'https://example.com/' })).status).toBe(201);
    expect(
      refused(await create({ ...stack, apiKey }, { url: 'https://example.com/' }), 'invalid_request'),
    ).toContain('20');
  });
});

const adminOf = async (account: { id: string }) => ({
  id: account.id,
  apiKey: await addApiKey(stack, account.id, { scopes: ['admin'] }),
});

describe('an internal address', () => {
  test('is not connected to when a name resolves to it, and the log says why', async () => {
    const connections: unknown[] = [];
    const inside = createServer((socket) => {
      connections.push(socket.destroy());
    });
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    const { port } = inside.address() as { port: number };
    // Only the guarded issuer may deliver.
    await stack.issuer.close();
    const made = await create(guarded, { url: 'https://example.com/' });
    expect(made.status, made.text).toBe(201);
    const { id } = JSON.parse(made.text) as { id: string };
    // As if the name now resolved to a private address, which this test cannot do to a real name.
    await stack.db
      .update(webhooks)
      .set({ url: `https://localhost:${port}/` })
      .where(eq(webhooks.id, id));
    await sendTest(guarded, { id });
    const row = await settledAs(guarded, { id }, { last_error: 'address_not_public' });
    expect(row).toMatchObject({ status: 'pending', attempts: 1, last_status: null });
    expect(connections).toEqual([]);
    expect(
      logs.some((line) => line.includes('webhook not delivered') && line.includes('address_not_public')),
    ).toBe(true);
    inside.close();
    await send(guarded, { method: 'DELETE', path: `/v1/webhooks/${id}` });
  });
});

describe('an endpoint', () => {
  test('of another account returns 404 for every request', async () => {
    const made = await create(guarded, { url: 'https://example.com/' });
    const { id } = JSON.parse(made.text) as { id: string };
    const { apiKey } = await adminOf(await addAccount(stack));
    const delivery = '00000000-0000-4000-8000-000000000009';
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/deliveries'],
      ['POST', '/rotate-secret'],
      ['POST', '/enable'],
      ['POST', '/test'],
      ['POST', `/deliveries/${delivery}/replay`],
    ] as const)
      refused(await send(guarded, { method, path: `/v1/webhooks/${id}${path}`, apiKey }), 'not_found');
    const listed = await send(guarded, { method: 'GET', path: '/v1/webhooks', apiKey });
    expect(JSON.parse(listed.text)).toEqual({ data: [], next_cursor: null });
    await send(guarded, { method: 'DELETE', path: `/v1/webhooks/${id}` });
  });

  test('needs the scope admin', async () => {
    const account = await ownAccount(stack);
    for (const scopes of [['presign'], ['read'], ['presign', 'read']]) {
      const apiKey = await addApiKey(stack, account, { scopes });
      refused(await send(guarded, { method: 'GET', path: '/v1/webhooks', apiKey }), 'forbidden');
      refused(await create({ ...guarded, apiKey }, { url: 'https://example.com/' }), 'forbidden');
    }
  });
});

describe('an issuer that may reach private addresses', () => {
  // It would deliver, too.
  beforeAll(() => guarded.close());

  test('follows no redirect', async () => {
    const inside = await startUpstream();
    const open = await startOwnIssuer(stack, EAGER);
    const endpoint = await addEndpoint(open, {
      answer: (_seen, response) => void response.writeHead(307, { location: inside.url }).end(),
    });
    await sendTest(open, endpoint);
    await settledAs(open, endpoint, { status: 'pending', last_status: 307 });
    expect(inside.seen).toEqual([]);
    await send(open, { method: 'DELETE', path: `/v1/webhooks/${endpoint.id}` });
    await endpoint.upstream.close();
    await open.close();
    await inside.close();
  });

  test('a secret is shown once, and is neither in Postgres nor in a log; a payload has no token and no key', async () => {
    const log = pino({ level: 'trace' }, { write: (line: string) => void logs.push(line) });
    const open = await startOwnIssuer(stack, { ...EAGER, log });
    const endpoint = await addEndpoint(open, {
      answer: (_seen, response) => void response.writeHead(500).end(),
    });
    const rotated = await send(open, { path: `/v1/webhooks/${endpoint.id}/rotate-secret` });
    const { secret } = JSON.parse(rotated.text) as { secret: string };
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(secret).not.toBe(endpoint.secret);
    const { url, session_id } = await issue(
      { ...stack, ...open },
      { client_api_key: 'sk-of-the-caller', max_uses: 1 },
    );
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);
    await send(open, { method: 'DELETE', path: `/v1/sessions/${session_id}` });
    await sendTest(open, endpoint);
    await arrived(endpoint, 1);
    await eventually(async () => ((await deliveriesOf(open, endpoint)).length >= 6 ? true : undefined));
    await settledAs(open, endpoint, { last_status: 500 });

    const read = await send(open, { method: 'GET', path: `/v1/webhooks/${endpoint.id}` });
    expect(Object.keys(JSON.parse(read.text))).not.toContain('secret');
    const { rows } = (await stack.db.execute(`select table_name from information_schema.tables
    where table_schema = 'public'`)) as unknown as { rows?: { table_name: string }[] };
    const dump: string[] = [read.text];
    for (const name of rows?.map((row) => row.table_name) ?? TABLES)
      dump.push(JSON.stringify(await stack.db.execute(`select row_to_json(t)::text from "${name}" t`)));
    const everything = [...dump, ...logs].join('\n');
    expect(everything).toContain(endpoint.id);
    for (const hidden of [secret, endpoint.secret])
      for (const form of [
        hidden,
        hidden.slice('whsec_'.length),
        Buffer.from(hidden.slice(6), 'base64').toString('hex'),
      ])
        expect(everything.includes(form)).toBe(false);
    const sent = endpoint.upstream.seen.map((seen) => String(seen.body)).join('\n');
    for (const hidden of ['sk-of-the-caller', tokenOf(url), 'whsec_', open.apiKey])
      expect(sent).not.toContain(hidden);
    await send(open, { method: 'DELETE', path: `/v1/webhooks/${endpoint.id}` });
    await endpoint.upstream.close();
    await open.close();
  });
});

/** Those that have to do with endpoints, where the driver does not answer with rows of its own. */
const TABLES = ['webhooks', 'webhook_events', 'webhook_deliveries', 'pending_usage'];
