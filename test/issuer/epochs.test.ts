import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { reopenScript } from '@presign/limits';
import { partitions } from '@presign/schema/ledger-tables';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { type OwnIssuer, startOwnIssuer } from './own-issuer.ts';

let stack: Stack;
let issuers: OwnIssuer[] = [];
beforeAll(async () => {
  stack = await startStack({ providers: {} });
  // Only the issuers of each test open partitions.
  await stack.issuer.close();
});
afterEach(() => Promise.all(issuers.splice(0).map((each) => each.close())));
afterAll(() => stack.close());

const sha = createHash('sha1').update(reopenScript.text).digest('hex');

/** How often Redis was late. */
let late = 0;

/** The stack's Redis, which hears of a new epoch long after Postgres. */
const slowToReopen = () =>
  new Proxy(stack.redis, {
    get(redis, name) {
      const value: unknown = Reflect.get(redis, name, redis);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const sent = () => (value as (...args: unknown[]) => unknown).apply(redis, args);
        if (name !== 'evalsha' || args[0] !== sha) return sent();
        late += 1;
        return sleep(100).then(sent);
      };
    },
  });

test.each([
  ['new stores', 0],
  ['stores whose Redis lost its data', 7],
])('issuers that find %s begin one epoch, and count a loss once', async (_what, epoch) => {
  const logs: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void logs.push(line) });
  late = 0;
  await stack.db.update(partitions).set({ epoch, lastId: '0-0' });
  await flush(stack.redis);
  const start = () => startOwnIssuer(stack, { redis: slowToReopen(), log });
  issuers = await Promise.all([start(), start(), start()]);
  await Promise.all(issuers.map(({ ledger }) => ledger.drainAll()));
  const rows = await stack.db.select().from(partitions);
  expect(new Set(rows.map((row) => row.epoch))).toEqual(new Set([epoch + 1]));
  const lost = logs
    .map((line) => JSON.parse(line) as { msg: string; partitions: number })
    .filter(({ msg }) => msg.startsWith('Redis restarted or lost data'))
    .reduce((sum, line) => sum + line.partitions, 0);
  expect(lost).toBe(epoch === 0 ? 0 : rows.length);
  expect(late).toBeGreaterThan(0);
});
