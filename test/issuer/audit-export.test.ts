import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import type { AuditEntry, WebhookEvent } from '@presign/schema';
import { audit } from '@presign/schema/tables';
import { webhookEvents } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { refused, send } from './ask.ts';
import { EAGER } from './own-issuer.ts';
import { createVirtualKey } from './virtual-keys.ts';
import { addEndpoint, arrived, type Endpoint, quiet } from './webhook-receiver.ts';

let stack: Stack;
const endpoints: Endpoint[] = [];
beforeAll(async () => {
  stack = await startStack({ providers: {}, issuer: EAGER });
});
afterEach(async () => {
  for (const { id, upstream } of endpoints.splice(0)) {
    await send(stack, { method: 'DELETE', path: `/v1/webhooks/${id}` });
    await upstream.close();
  }
});
afterAll(() => stack.close());

/** An account with so many entries, of the same few moments. */
async function accountWith(count: number): Promise<{ id: string; apiKey: string }> {
  const { id } = await addAccount(stack);
  await stack.db.execute(sql`insert into ${audit} (account_id, at, actor, action, target_kind, target_id, after)
    select ${id}::uuid, now() - (each % 7) * interval '1 second', 'cli', 'api_key.created', 'api_key', 'key-' || each,
      json_build_object('name', '=1+1, "' || each || '"')::text
    from generate_series(1, ${count}) as each`);
  return { id, apiKey: await addApiKey(stack, id, { scopes: ['read', 'admin'] }) };
}
const exported = (apiKey: string, query: string, accept?: string) =>
  send(stack, {
    method: 'GET',
    path: `/v1/audit${query}`,
    apiKey,
    headers: accept === undefined ? {} : { accept },
  });

describe('the export of the audit log', () => {
  test('has every entry once, newest first, as one line of JSON each', async () => {
    const { apiKey } = await accountWith(1_234);
    const sent = await exported(apiKey, '', 'application/x-ndjson');
    expect([sent.status, sent.headers.get('content-type')]).toEqual([
      200,
      'application/x-ndjson; charset=utf-8',
    ]);
    expect(sent.headers.get('content-disposition')).toBe('attachment; filename="audit.ndjson"');
    const entries = sent.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditEntry);
    expect(new Set(entries.map(({ id }) => id)).size).toBe(1_234);
    const times = entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const first = await send(stack, { method: 'GET', path: '/v1/audit?limit=3', apiKey });
    expect((JSON.parse(first.text) as { data: AuditEntry[] }).data).toEqual(entries.slice(0, 3));
  });

  test('has the same entries as CSV, and no cell is a formula', async () => {
    const { apiKey } = await accountWith(3);
    await stack.db.update(audit).set({ targetId: '=HYPERLINK("x")' }).where(eq(audit.targetId, 'key-2'));
    const { text, headers } = await exported(apiKey, '?format=csv');
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [head, ...lines] = text.split('\r\n');
    expect(head).toBe('id,at,actor,action,target_kind,target_id,request_id,remote_address,before,after');
    expect(lines).toHaveLength(4);
    expect(text).toContain(`,"'=HYPERLINK(""x"")",`);
    expect(text).toContain('"{""name"":""=1+1, \\""1\\""""}"');
  });

  test('obeys the filters, and shows one account', async () => {
    const { apiKey } = await accountWith(20);
    const { text } = await exported(apiKey, '?format=ndjson&target_id=key-7');
    expect(text.trimEnd().split('\n')).toHaveLength(1);
    expect((await exported(apiKey, '?format=ndjson&actor=issuer')).text).toBe('');
    expect((await exported(apiKey, `?format=csv&to=1`)).text.split('\r\n')).toHaveLength(2);
  });

  test.each(['limit=5', 'cursor=MTc2NzIyNTYwMDEyMzAwMC4w'])('is not paged: %s is refused', async (paging) => {
    const { apiKey } = await accountWith(1);
    refused(await exported(apiKey, `?format=csv&${paging}`), 'invalid_request', paging.split('=')[0]);
  });

  test('is JSON by default, and refuses an unknown format', async () => {
    const { apiKey } = await accountWith(1);
    for (const accept of [undefined, '*/*', 'application/json, text/csv;q=0.5'])
      expect((await exported(apiKey, '', accept)).headers.get('content-type')).toBe('application/json');
    refused(await exported(apiKey, '?format=xml'), 'invalid_request', 'format');
  });

  test('reads from Postgres only as fast as its caller reads', async () => {
    const { apiKey, id } = await accountWith(60_000);
    const url = new URL(`${stack.issuerUrl}/v1/audit?format=ndjson`);
    const asked = request(url, { headers: { authorization: `Bearer ${apiKey}` } });
    const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      asked.on('response', resolve).on('error', reject).end();
    });
    answer.pause();
    // The caller has the first bytes and reads no more. Entries that the issuer has not read yet are deleted now.
    await stack.db.delete(audit).where(eq(audit.accountId, id));
    let lines = 0;
    for await (const chunk of answer) lines += String(chunk).split('\n').length - 1;
    expect(lines).toBeGreaterThanOrEqual(500);
    expect(lines).toBeLessThan(60_000);
  });
});

describe('audit.entry', () => {
  const listen = async (...events: string[]) => {
    const endpoint = await addEndpoint(stack, events.length > 0 ? { events } : {});
    endpoints.push(endpoint);
    return endpoint;
  };

  test('is sent for each change to an endpoint that subscribes to it, and to no other', async () => {
    const [named, all] = [await listen('audit.entry'), await listen()];
    const { id } = await createVirtualKey(stack, { key: 'sk-never-in-an-event' });
    await arrived(named, 3);
    await quiet(stack);
    const entries = await send(stack, { method: 'GET', path: '/v1/audit?limit=1' });
    const [entry] = (JSON.parse(entries.text) as { data: AuditEntry[] }).data;
    const events = named.events() as Extract<WebhookEvent, { type: 'audit.entry' }>[];
    // The first is its own creation.
    expect(events.map(({ data }) => data.action).sort()).toEqual([
      'virtual_key.created',
      'webhook.created',
      'webhook.created',
    ]);
    const brought = events.find(({ data }) => data.target.id === id)?.data;
    expect(brought).toEqual({ ...entry, at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/) });
    expect(Math.floor(Date.parse(brought?.at ?? '') / 1000)).toBe(entry?.at);
    expect(all.events()).toEqual([]);
    const stored = JSON.stringify(await stack.db.select().from(webhookEvents));
    expect(stored).not.toContain('sk-never-in-an-event');
    expect(stored).not.toContain(stack.apiKey);
  });

  test('is not sent for a change that was refused', async () => {
    const named = await listen('audit.entry');
    await eventually(async () => named.upstream.seen.length >= 1 || undefined);
    refused(await send(stack, { method: 'DELETE', path: `/v1/api-keys/${randomUUID()}` }), 'not_found');
    await quiet(stack);
    expect(named.events()).toHaveLength(1);
  });

  test('allows endpoints to be removed at the same moment', async () => {
    const some = await Promise.all(Array.from({ length: 6 }, () => listen('audit.entry')));
    const gone = await Promise.all(
      some.map(({ id }) => send(stack, { method: 'DELETE', path: `/v1/webhooks/${id}` })),
    );
    expect(gone.map(({ status }) => status)).toEqual(some.map(() => 204));
    for (const { upstream } of endpoints.splice(0)) await upstream.close();
  });
});
