import { setTimeout as sleep } from 'node:timers/promises';
import { webhookDeliveries, webhooks } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import type { Answer } from '../harness/upstream.ts';
import { refused, send } from './ask.ts';
import { EAGER, type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import {
  addEndpoint,
  arrived,
  deliveriesOf,
  type Endpoint,
  hasten,
  quiet,
  sendTest,
  settledAs,
  verified,
} from './webhook-receiver.ts';

let stack: Stack;
const endpoints: Endpoint[] = [];

beforeAll(async () => {
  stack = await startStack({ providers: {}, issuer: EAGER });
});
afterEach(async () => {
  for (const endpoint of endpoints.splice(0)) {
    await stack.db.delete(webhooks).where(eq(webhooks.id, endpoint.id));
    await endpoint.upstream.close();
  }
});
afterAll(() => stack.close());

const add = async (answer?: Answer) => {
  const endpoint = await addEndpoint(stack, answer ? { answer } : {});
  endpoints.push(endpoint);
  return endpoint;
};
const post = (endpoint: Endpoint, what: string) =>
  send(stack, { path: `/v1/webhooks/${endpoint.id}/${what}` });
const get = async (endpoint: Endpoint) =>
  JSON.parse((await send(stack, { method: 'GET', path: `/v1/webhooks/${endpoint.id}` })).text);

/** Answers one status after the other, the last for good. */
const inTurn = (...statuses: number[]): Answer => {
  let turn = 0;
  return (_seen, response) =>
    void response.writeHead(statuses[Math.min(turn++, statuses.length - 1)] ?? 500).end();
};

describe('a delivery', () => {
  test('is signed over id, time and body, and the library verifies it', async () => {
    const endpoint = await add();
    const { event_id: id } = await sendTest(stack, endpoint);
    await arrived(endpoint, 1);
    const [seen] = endpoint.upstream.seen;
    if (!seen) throw new Error('nothing came');
    expect(seen).toMatchObject({ method: 'POST', url: '/hook' });
    expect(seen.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': id });
    expect(verified(endpoint.secret, seen)).toMatchObject({
      type: 'webhook.test',
      data: { webhook_id: endpoint.id },
    });
    const headers = seen.headers as Record<string, string>;
    const library = new Webhook(endpoint.secret);
    for (const [name, value] of [
      ['webhook-id', `${id}x`],
      ['webhook-timestamp', String(Number(headers['webhook-timestamp']) + 1)],
    ] as const)
      expect(() => library.verify(seen.body, { ...headers, [name]: value })).toThrow('No matching signature');
    expect(() => library.verify(`${seen.body} `, headers)).toThrow('No matching signature');
    const another = `whsec_${Buffer.alloc(32).toString('base64')}`;
    expect(() => verified(another, seen)).toThrow('No matching signature');
    await settledAs(stack, endpoint, {
      status: 'delivered',
      attempts: 1,
      last_status: 204,
      last_error: null,
    });
  });

  test('is retried with the same id after a 500, and not after a success', async () => {
    const endpoint = await add(inTurn(500, 302, 200));
    await sendTest(stack, endpoint);
    const failed = await settledAs(stack, endpoint, {
      status: 'pending',
      attempts: 1,
      last_status: 500,
      last_error: 'http_status',
    });
    expect(failed.next_try_at).toBeGreaterThan(failed.created_at + 3);
    expect((await get(endpoint)).failing_since).not.toBeNull();
    await hasten(stack, endpoint);
    // A redirect is no arrival, and is not followed.
    await settledAs(stack, endpoint, { status: 'pending', attempts: 2, last_status: 302 });
    await hasten(stack, endpoint);
    await settledAs(stack, endpoint, { status: 'delivered', attempts: 3, last_status: 200 });
    expect((await get(endpoint)).failing_since).toBeNull();
    await hasten(stack, endpoint);
    await quiet(stack);
    expect(endpoint.ids()).toHaveLength(3);
    expect(new Set(endpoint.ids()).size).toBe(1);
    expect(endpoint.events()).toHaveLength(3);
  });

  test.runIf(thorough)(
    'is retried after an endpoint that does not answer, closes the connection, or answers endlessly',
    async () => {
      let turn = 0;
      const endpoint = await add((_seen, response) => {
        turn++;
        if (turn === 1) return;
        if (turn === 2) return void response.destroy();
        response.writeHead(200);
        const more = setInterval(() => response.write('x'.repeat(65_536)), 1);
        response.once('close', () => clearInterval(more));
      });
      await sendTest(stack, endpoint);
      await settledAs(stack, endpoint, {
        status: 'pending',
        attempts: 1,
        last_status: null,
        last_error: 'timeout',
      });
      await hasten(stack, endpoint);
      await settledAs(stack, endpoint, { attempts: 2, last_status: null, last_error: 'unreachable' });
      await hasten(stack, endpoint);
      await settledAs(stack, endpoint, { status: 'delivered', attempts: 3, last_status: 200 });
    },
  );

  test('waits as long as the endpoint asks, at most a day, and at least its own backoff', async () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
    const asked = ['600', inAnHour, '9'.repeat(20), '1', 'soon', '-600'];
    let turn = 0;
    const endpoint = await add((_seen, response) => {
      response.writeHead(turn % 2 === 0 ? 429 : 503, { 'retry-after': asked[turn++] }).end();
    });
    await sendTest(stack, endpoint);
    const waits: number[] = [];
    for (let attempts = 1; attempts <= asked.length; attempts++) {
      const last_status = attempts % 2 === 1 ? 429 : 503;
      const { next_try_at: next } = await settledAs(stack, endpoint, { attempts, last_status });
      waits.push((next ?? 0) - Date.now() / 1000);
      await hasten(stack, endpoint);
    }
    // Without it: 5 s, 30 s, 2 min, 10 min, 1 h and 3 h, each a fifth more or less.
    const bounds = [
      [500, 600],
      [3_500, 3_600],
      [86_300, 86_400],
      [400, 720],
      [2_800, 4_320],
      [8_500, 12_960],
    ];
    bounds.forEach(([least, most], i) => {
      expect(waits[i], asked[i]).toBeGreaterThan(least ?? 0);
      expect(waits[i], asked[i]).toBeLessThanOrEqual(most ?? 0);
    });
  });

  test('is abandoned after nine attempts over about a day, and can be replayed', async () => {
    // Each attempt's own, by which its end is known from the next one's beginning.
    const statuses = Array.from({ length: 9 }, (_, i) => 500 + i);
    const endpoint = await add(inTurn(...statuses, 200));
    const { event_id: id, id: delivery } = await sendTest(stack, endpoint);
    let waited = 0;
    for (let attempts = 1; attempts <= 8; attempts++) {
      const before = Date.now() / 1000;
      const { next_try_at: next } = await settledAs(stack, endpoint, {
        attempts,
        last_status: 499 + attempts,
      });
      waited += (next ?? 0) - before;
      await hasten(stack, endpoint);
    }
    await settledAs(stack, endpoint, { status: 'failed', attempts: 9, last_status: 508, next_try_at: null });
    expect(waited / 3600).toBeGreaterThan(24.2 * 0.75);
    expect(waited / 3600).toBeLessThan(24.2 * 1.25);
    const replayed = await post(endpoint, `deliveries/${delivery}/replay`);
    expect(replayed.status, replayed.text).toBe(200);
    expect(JSON.parse(replayed.text)).toMatchObject({
      id: delivery,
      event_id: id,
      status: 'pending',
      attempts: 0,
    });
    await settledAs(stack, endpoint, { status: 'delivered', attempts: 1 });
    expect(new Set(endpoint.ids())).toEqual(new Set([id]));
    expect(endpoint.ids()).toHaveLength(10);
    // Also what has arrived.
    await post(endpoint, `deliveries/${delivery}/replay`);
    await arrived(endpoint, 11);
  });

  test('to a slow or failing endpoint does not delay others', async () => {
    const slow = await add(() => {});
    const failing = await add(inTurn(500));
    for (let i = 0; i < 40; i++) await Promise.all([sendTest(stack, slow), sendTest(stack, failing)]);
    await Promise.all([arrived(slow, 1), arrived(failing, 1)]);
    const good = await add();
    await sendTest(stack, good);
    await arrived(good, 1);
    const rows = await deliveriesOf(stack, slow, '?limit=100');
    expect(rows.every((row) => row.status === 'pending')).toBe(true);
  });
});

describe('several issuers', () => {
  const own: OwnIssuer[] = [];
  afterEach(async () => {
    for (const issuer of own.splice(0)) await issuer.close();
  });
  const start = async (changed: Parameters<typeof startOwnIssuer>[1] = {}) => {
    const issuer = await startOwnIssuer(stack, { ...EAGER, ...changed });
    own.push(issuer);
    return issuer;
  };

  test('send each delivery once between them', async () => {
    await Promise.all([start(), start()]);
    const endpoint = await add(async (_seen, response) => {
      await sleep(Math.random() * 200); // so that attempts overlap
      response.writeHead(204).end();
    });
    const sent: string[] = [];
    for (let i = 0; i < 60; i++) sent.push((await sendTest(stack, endpoint)).event_id);
    await arrived(endpoint, 60);
    await eventually(async () =>
      (await deliveriesOf(stack, endpoint, '?limit=100&status=delivered')).length === 60 ? true : undefined,
    );
    await quiet(stack);
    expect(endpoint.ids().sort()).toEqual(sent.sort());
  });

  test('take over from an issuer that sent but could not record; the same id arrives at most twice', async () => {
    const endpoint = await add();
    await stack.issuer.close();
    const dying = await start({
      db: watched((values) => {
        if (values.status === 'delivered') throw new Error('cut off');
      }),
    });
    const { event_id: id } = await sendTest(dying, endpoint);
    await arrived(endpoint, 1);
    const [row] = await deliveriesOf(dying, endpoint);
    expect(row).toMatchObject({ status: 'pending', attempts: 1 });
    // Until the claim has run out, another issuer looks for deliveries and leaves this one alone.
    let looked = 0;
    const next = await start({
      db: watched((values) => {
        if ('claims' in values) looked += 1;
      }),
    });
    await eventually(async () => (looked >= 4 ? true : undefined));
    expect(endpoint.ids()).toEqual([id]);
    own.splice(own.indexOf(dying), 1);
    await dying.close();
    await hasten(stack, endpoint);
    await settledAs(next, endpoint, { status: 'delivered', attempts: 2 });
    await quiet(stack, next);
    expect(endpoint.ids()).toEqual([id, id]);
  });

  /** The stack's database, with a look at what each update of deliveries sets. */
  const watched = (look: (values: { readonly status?: string }) => void) =>
    new Proxy(stack.db, {
      get(db, name) {
        const value: unknown = Reflect.get(db, name, db);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const made = (value as (...args: unknown[]) => unknown).apply(db, args);
          if (name !== 'update' || args[0] !== webhookDeliveries) return made;
          return new Proxy(made as object, {
            get(update, method) {
              const set = Reflect.get(update, method, update) as (values: object) => unknown;
              return (values: object) => {
                look(values);
                return set.call(update, values);
              };
            },
          });
        };
      },
    });
});

describe('an endpoint', () => {
  let issuer: OwnIssuer;
  beforeAll(async () => {
    // The stack's own was closed above.
    issuer = await startOwnIssuer(stack, EAGER);
    stack = { ...stack, issuerUrl: issuer.issuerUrl };
  });
  afterAll(() => issuer.close());

  test('that answers 410 is disabled at once, shows it, and can be enabled', async () => {
    const endpoint = await add(inTurn(410, 204));
    await sendTest(stack, endpoint);
    await settledAs(stack, endpoint, { status: 'failed', last_status: 410 });
    expect(await get(endpoint)).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    expect(refused(await post(endpoint, 'test'), 'invalid_request')).toContain('/enable');
    const [row] = await deliveriesOf(stack, endpoint);
    expect(refused(await post(endpoint, `deliveries/${row?.id}/replay`), 'invalid_request')).toContain(
      '/enable',
    );
    const enabled = await post(endpoint, 'enable');
    expect(JSON.parse(enabled.text)).toMatchObject({ status: 'enabled', disabled_reason: null });
    await sendTest(stack, endpoint);
    await arrived(endpoint, 2);
  });

  test('that has failed for five days is disabled, and its pending deliveries are abandoned', async () => {
    const endpoint = await add(inTurn(500, 501, 502));
    await sendTest(stack, endpoint);
    await settledAs(stack, endpoint, { attempts: 1, last_status: 500 });
    const days = (count: number) =>
      stack.db
        .update(webhooks)
        .set({ failingSince: sql`now() - ${count} * interval '1 day'` })
        .where(eq(webhooks.id, endpoint.id));
    await days(4.9);
    await hasten(stack, endpoint);
    await settledAs(stack, endpoint, { attempts: 2, last_status: 501, status: 'pending' });
    expect(await get(endpoint)).toMatchObject({ status: 'enabled' });
    await days(5.1);
    await stack.db
      .update(webhookDeliveries)
      .set({ nextTryAt: sql`now() + interval '1 hour'` })
      .where(eq(webhookDeliveries.webhookId, endpoint.id));
    await sendTest(stack, endpoint);
    await settledAs(stack, endpoint, { status: 'failed', last_status: 502 });
    expect(await get(endpoint)).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
    const rows = await deliveriesOf(stack, endpoint);
    expect(rows.map((row) => row.status)).toEqual(['failed', 'failed']);
  });

  test('with a rotated secret gets signatures of both, and of the new one alone after a day', async () => {
    const endpoint = await add();
    const rotated = await post(endpoint, 'rotate-secret');
    const { secret, previous_secret_expires_at: until } = JSON.parse(rotated.text);
    expect(until).toBeGreaterThan(Date.now() / 1000 + 86_000);
    await sendTest(stack, endpoint);
    await arrived(endpoint, 1);
    const [first] = endpoint.upstream.seen;
    if (!first) throw new Error('nothing came');
    expect(verified(secret, first)).toEqual(verified(endpoint.secret, first));
    await stack.db
      .update(webhooks)
      .set({ previousUntil: sql`now() - interval '1 second'` })
      .where(eq(webhooks.id, endpoint.id));
    await sendTest(stack, endpoint);
    await arrived(endpoint, 2);
    const [, second] = endpoint.upstream.seen;
    if (!second) throw new Error('nothing came');
    verified(secret, second);
    expect(() => verified(endpoint.secret, second)).toThrow('No matching signature');
  });

  test('lists its deliveries page by page and by status', async () => {
    const endpoint = await add(inTurn(204, 204, 204, 500));
    const sent: string[] = [];
    for (let i = 0; i < 4; i++) {
      sent.unshift((await sendTest(stack, endpoint)).id);
      await settledAs(stack, endpoint, { attempts: 1 });
    }
    const path = `/v1/webhooks/${endpoint.id}/deliveries`;
    const listed: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await send(stack, {
        method: 'GET',
        path: `${path}?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`,
      });
      const answer = JSON.parse(page.text) as { data: { id: string }[]; next_cursor: string | null };
      listed.push(...answer.data.map((row) => row.id));
      cursor = answer.next_cursor;
    }
    expect(listed).toEqual(sent);
    expect((await deliveriesOf(stack, endpoint, '?status=pending')).map((row) => row.id)).toEqual([sent[0]]);
    refused(await send(stack, { method: 'GET', path: `${path}?status=lost` }), 'invalid_request', 'status');
  });
});
