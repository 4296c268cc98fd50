import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Cursor,
  drain,
  groupsOf,
  keys,
  type RedisClient,
  reopen,
  settle,
  trim,
  withWork,
} from '../src/index.ts';
import { admitted, loadedGrant, newOutcome } from './grant.ts';
import { commit, drainAll, drainRound, newLedger } from './ledger.ts';
import { type Engine, engines, openPartition } from './redis.ts';

describe.each(engines)('drain on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  async function settleMany(partition: number, count: number): Promise<string[]> {
    const grant = await loadedGrant(redis, partition);
    const holds = await Promise.all(Array.from({ length: count }, () => admitted(redis, grant)));
    await Promise.all(holds.map((hold) => settle(redis, grant.ref, newOutcome(hold))));
    return holds.sort();
  }

  test('every settled call reaches the ledger once, while other calls are settled', async () => {
    const partition = await openPartition(redis);
    const ledger = newLedger(partition);
    const settling = Promise.all([settleMany(partition, 60), settleMany(partition, 60)]);
    let rounds = 0;
    let entries = 0;
    for (; entries < 120 && rounds < 5_000; rounds++) {
      const drained = await drainRound(redis, ledger, 7);
      entries += drained.is === 'ok' ? drained.entries.length : 0;
    }
    const holds = (await settling).flat().sort();
    expect(entries).toBe(120);
    expect([...ledger.rows.keys()].sort()).toEqual(holds);
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
  });

  test('a call settled in the millisecond of the last trim is not skipped', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const ledger = newLedger(partition);
    const holds: string[] = [];
    for (let i = 0; i < 60; i++) {
      const hold = await admitted(redis, grant);
      holds.push(hold);
      const [, drained] = await Promise.all([
        settle(redis, grant.ref, newOutcome(hold)),
        drainRound(redis, ledger, 1),
      ]);
      expect(drained.is).toBe('ok');
    }
    await drainAll(redis, ledger);
    expect([...ledger.rows.keys()].sort()).toEqual(holds.sort());
  });

  test('entries stay until they are trimmed: a drain without a commit loses none', async () => {
    const partition = await openPartition(redis);
    const holds = await settleMany(partition, 5);
    const ledger = newLedger(partition);
    for (let i = 0; i < 3; i++) {
      const drained = await drain(redis, ledger.cursor, 100);
      expect(drained.is === 'ok' && drained.entries.map((entry) => entry.holdId).sort()).toEqual(holds);
    }
  });

  test('the next trim drops what a failed trim left, and a failed trim is never reported as a loss', async () => {
    const partition = await openPartition(redis);
    const holds = await settleMany(partition, 6);
    const ledger = newLedger(partition);
    for (let i = 0; i < 6; i++) {
      const drained = await drain(redis, ledger.cursor, 1);
      expect(drained.is).toBe('ok');
      commit(ledger, drained.is === 'ok' ? drained.entries : []);
    }
    expect([...ledger.rows.keys()].sort()).toEqual(holds);
    expect(await drain(redis, ledger.cursor, 1)).toEqual({ is: 'ok', entries: [] });
    await trim(redis, ledger.cursor);
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
    expect(await drain(redis, ledger.cursor, 1)).toEqual({ is: 'ok', entries: [] });
  });

  test('a trim keeps the entries after the cursor, and the cursor never goes back', async () => {
    const partition = await openPartition(redis);
    await settleMany(partition, 4);
    const ids = (await redis.xrange(keys.usage(partition), '-', '+')).map(([id]) => id);
    const at = (i: number) => ({ partition, epoch: 1, lastId: ids[i] ?? '' });
    await trim(redis, at(2));
    expect((await redis.xrange(keys.usage(partition), '-', '+')).map(([id]) => id)).toEqual([ids[3]]);
    await trim(redis, at(0));
    expect(await redis.hget(keys.partition(partition), 'drained')).toBe(ids[2]);
    expect(await drain(redis, at(2), 10)).toMatchObject({ is: 'ok', entries: [{ id: ids[3] }] });
    await trim(redis, { ...at(3), epoch: 2 });
    expect(await redis.xlen(keys.usage(partition))).toBe(1);
  });

  test('a check finds exactly the partitions with work', async () => {
    const opened = async (calls = 0): Promise<Cursor> => {
      const { cursor } = newLedger(await openPartition(redis));
      await settleMany(cursor.partition, calls);
      return cursor;
    };
    const committed = async (): Promise<Cursor> => {
      const ledger = newLedger((await opened(2)).partition);
      const drained = await drain(redis, ledger.cursor, 10);
      commit(ledger, drained.is === 'ok' ? drained.entries : []);
      return ledger.cursor;
    };
    const idle = await opened();
    const full = await opened(1);
    const closed = await opened();
    const empty = await opened();
    const restarted = await opened();
    const untrimmed = await committed();
    const trimmed = await committed();
    await trim(redis, trimmed);
    await reopen(redis, closed.partition, 2);
    await redis.del(keys.partition(empty.partition));
    await redis.hset(keys.partition(restarted.partition), 'run', 'another');
    const working = [
      ...[full, { ...closed, epoch: 2 }, empty, restarted, untrimmed, { ...(await opened()), epoch: 2 }],
      // Another issuer has drained and trimmed it since this one looked.
      { ...trimmed, lastId: '0-0' },
    ];
    const known = [idle, ...working, trimmed];
    const found = await Promise.all(groupsOf(redis, known).map((group) => withWork(redis, group)));
    expect(found.flat()).toEqual(working);
    expect(await withWork(redis, [])).toEqual([]);
  });

  test('an empty Redis is reported as a loss, once', async () => {
    const partition = await openPartition(redis);
    await redis.del(keys.partition(partition));
    const ledger = newLedger(partition);
    expect(await drainAll(redis, ledger)).toEqual(['lost', 'ok']);
    expect(ledger.cursor).toEqual({ partition, epoch: 2, lastId: '0-0' });
    expect(await drainAll(redis, ledger)).toEqual(['ok']);
  });

  test.each([0, 5])(
    'if Postgres is at epoch %i and Redis at 1, the next epoch is one above both',
    async (epoch) => {
      const partition = await openPartition(redis);
      const ledger = newLedger(partition);
      ledger.cursor = { partition, epoch, lastId: '0-0' };
      expect(await drain(redis, ledger.cursor, 1)).toEqual({ is: 'epoch', epoch: 1 });
      expect(await drainAll(redis, ledger)).toEqual(['epoch', 'ok']);
      expect(ledger.cursor.epoch).toBe(Math.max(epoch, 1) + 1);
      expect(await drainAll(redis, ledger)).toEqual(['ok']);
    },
  );

  test('an epoch that has begun does not begin again', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    await settleMany(partition, 1);
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    await reopen(redis, partition, 1);
    await reopen(redis, partition, 0);
    expect(await drainAll(redis, ledger)).toEqual(['ok']);
    await admitted(redis, grant);
  });

  test('each epoch records its surviving holds again, and a lease without a hold is not one', async () => {
    const partition = await openPartition(redis);
    const hold = await admitted(redis, await loadedGrant(redis, partition), {
      uses: 2,
      holdMicrousd: undefined,
    });
    await redis.zadd(keys.leases(partition), Date.now() + 60_000, 'without-hold');
    await redis.hset(keys.survivors(partition), 'of-old', '1 1 budget');
    await reopen(redis, partition, 2);
    expect(await drain(redis, { partition, epoch: 2, lastId: '0-0' }, 1)).toEqual({ is: 'ok', entries: [] });
    expect(await redis.hgetall(keys.survivors(partition))).toEqual({
      [hold]: expect.stringMatching(/^2 0 /),
    });
    expect(await redis.zrange(keys.leases(partition), '0', '-1')).toEqual([hold]);
  });
});
