import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { DeliveryAnswer } from '@presign/schema';
import { webhookDeliveries } from '@presign/schema/webhook-tables';
import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { until } from '../harness/gateway-process.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ISSUER_MAIN, run } from './issuer-process.ts';
import {
  addEndpoint,
  arrived,
  deliveriesOf,
  hasten,
  quiet,
  roundsPassed,
  sendTest,
  settledAs,
} from './webhook-receiver.ts';

/** Processes of their own need a Postgres that they can reach. */
const withServer = process.env.TEST_DATABASE_URL ? describe : describe.skip;

withServer('issuers in processes of their own', () => {
  let stack: Stack;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    stack = await startStack({ providers: {} });
    // Only the processes deliver.
    await stack.issuer.close();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await end(child, 'SIGTERM');
  });
  afterAll(() => stack.close());

  const start = async () => {
    const port = await freePort();
    const child = run(ISSUER_MAIN, {
      HOST: '127.0.0.1',
      ISSUER_PORT: String(port),
      GATEWAY_URL: stack.gatewayUrls[0],
      DATABASE_URL: stack.databaseUrl,
      REDIS_URL: stack.redisUrl,
      TOKEN_SIGNING_KEY: stack.keys.signing,
      ENCRYPTION_KEYS: stack.keys.encryption,
      ALLOW_PRIVATE_UPSTREAMS: 'true',
    });
    children.push(child);
    await until(child, 'issuer is ready');
    return { issuerUrl: `http://127.0.0.1:${port}`, apiKey: stack.apiKey, child };
  };
  const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };

  test('send each of 200 deliveries once between them', async () => {
    const [first, second] = await Promise.all([start(), start()]);
    const endpoint = await addEndpoint(first);
    const sent: DeliveryAnswer[] = [];
    // A busy issuer refuses a request that its pool leaves waiting for seconds.
    for (let i = 0; i < 10; i++) {
      const some = Array.from({ length: 20 }, (_, j) => sendTest(j % 2 ? first : second, endpoint));
      sent.push(...(await Promise.all(some)));
    }
    await arrived(endpoint, 200);
    await quiet(stack, first);
    expect(endpoint.ids().sort()).toEqual(sent.map((each) => each.event_id).sort());
    expect(endpoint.events()).toHaveLength(200);
    expect(await deliveriesOf(first, endpoint, '?status=pending')).toEqual([]);
    // All again, and all issuers reach for them in the same moment.
    await stack.db.transaction(async (tx) => {
      await tx.execute(sql`lock table ${webhookDeliveries} in access exclusive mode`);
      await tx.update(webhookDeliveries).set({ status: 'pending', attempts: 0, nextTryAt: sql`now()` });
      await othersWait(stack, tx, 2);
    });
    await arrived(endpoint, 400);
    await quiet(stack, first);
    expect(endpoint.ids().sort()).toEqual(sent.flatMap((each) => [each.event_id, each.event_id]).sort());
  });

  test('take over from an issuer killed between sending and recording: each id arrives at most twice', async () => {
    const dying = await start();
    const killed = new Promise<void>((resolve) => dying.child.once('exit', () => resolve()));
    // Answers come when their process has ended.
    const endpoint = await addEndpoint(dying, {
      answer: async (_seen, response) => {
        await killed;
        response.writeHead(204).end();
      },
    });
    const sent = await Promise.all(Array.from({ length: 5 }, () => sendTest(dying, endpoint)));
    const wanted = sent.map((each) => each.event_id).sort();
    await arrived(endpoint, 5);
    await end(dying.child, 'SIGKILL');
    const next = await start();
    await roundsPassed(stack, next);
    expect(endpoint.ids().sort()).toEqual(wanted);
    // Its claims run out.
    await hasten(stack, endpoint);
    await arrived(endpoint, 10);
    await settledAs(next, endpoint, { status: 'delivered', attempts: 2 });
    await quiet(stack, next);
    expect(endpoint.ids().sort()).toEqual([...wanted, ...wanted].sort());
    const rows = await eventually(async () => {
      const delivered = await deliveriesOf(next, endpoint, '?status=delivered');
      return delivered.length === 5 ? delivered : undefined;
    });
    expect(rows.every((row) => row.attempts === 2)).toBe(true);
  });
});
