import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  dropSeeds,
  findCredential,
  findEnds,
  findGrant,
  type GrantState,
  keys,
  keysEndMs,
  loadGrant,
  type RedisClient,
  reopen,
  revokeGrant,
  seeder,
  settle,
  trim,
  withdrawCredential,
} from '../src/index.ts';
import {
  admitted,
  figures,
  fromSeed,
  loadedGrant,
  newAsk,
  newBudget,
  newGrant,
  newOutcome,
  seedOf,
} from './grant.ts';
import { commit, drainAll, drainRound, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, keysOf, openPartition } from './redis.ts';
import { restarted } from './snapshot.ts';

/** The clock of Redis, in Unix milliseconds. */
async function redisNow(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Lets the keys end that end with a grant, as time does. */
async function endKeys(redis: RedisClient, { ref }: GrantState): Promise<void> {
  const at = ref.partition;
  const all = [keys.grant(at, ref.id), keys.credential(at, ref.credentialId)];
  for (const id of ref.budgetIds) all.push(keys.budget(at, id));
  for (const key of all) if ((await redis.pexpiretime(key)) !== -1) await redis.pexpireat(key, 1);
}

describe.each(engines)('load and revoke on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());
  const budget = (grant: ReturnType<typeof newGrant>) =>
    figures(redis, grant.ref.partition, grant.ref.budgetIds[0]);

  test('a loaded grant is found, and its keys end 25 hours after it', async () => {
    const partition = await openPartition(redis);
    const budget = newBudget({ endsWithGrant: false });
    const grant = newGrant(partition, newBudget(), budget);
    expect(await loadGrant(redis, grant)).toBe('ok');
    expect(await findGrant(redis, partition, grant.ref.id)).toEqual({ doc: grant.doc });
    expect(await findCredential(redis, partition, grant.ref.credentialId)).toEqual(grant.credential);
    const ends = [keys.grant(partition, grant.ref.id), keys.credential(partition, grant.ref.credentialId)];
    for (const key of [...ends, keys.budget(partition, grant.ref.budgetIds[0] ?? '')]) {
      expect(await redis.pexpiretime(key)).toBe(grant.expiresAtMs + 25 * 3_600_000);
    }
    expect(await redis.pexpiretime(keys.budget(partition, budget.id))).toBe(-1);
  });

  test('an expired grant is not loaded; the clock of Redis decides', async () => {
    const partition = await openPartition(redis);
    const shared = newBudget({ endsWithGrant: false });
    const grant = newGrant(partition, newBudget(), shared);
    const expired = { ...grant, expiresAtMs: await redisNow(redis) };
    expect(await loadGrant(redis, expired)).toBe('expired');
    expect(await keysOf(redis, partition)).toEqual([keys.partition(partition)]);
    expect(await loadGrant(redis, { ...expired, expiresAtMs: expired.expiresAtMs + 60_000 })).toBe('ok');
  });

  test('a gateway with a slow clock rebuilds nothing once the keys have expired', async () => {
    const partition = await openPartition(redis);
    const shared = newBudget({ endsWithGrant: false, costLimitMicrousd: 1_000 });
    const grant = newGrant(partition, newBudget({ maxUses: 2 }), shared);
    await loadGrant(redis, grant);
    const hold = await admitted(redis, grant, { holdMicrousd: 30 });
    const late = { ...grant, expiresAtMs: (await redisNow(redis)) - 25 * 3_600_000 };
    await endKeys(redis, grant);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
    expect(await loadGrant(redis, late)).toBe('expired');
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
    expect(await budget(grant)).toBeUndefined();
    // The hold that outlived the keys is settled once, in the shared budget and in the ledger.
    expect(await figures(redis, partition, shared.id)).toEqual({ used: '1', settled: '0', held: '30' });
    const outcome = newOutcome(hold, { costMicrousd: 12 });
    expect(await settle(redis, grant.ref, outcome)).toBeDefined();
    expect(await settle(redis, grant.ref, outcome)).toBeUndefined();
    expect(await figures(redis, partition, shared.id)).toEqual({ used: '1', settled: '12', held: '0' });
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect([...ledger.rows.values()]).toMatchObject([{ uses: 1, costMicrousd: 12 }]);
    expect(await loadGrant(redis, readGrant(ledger, late))).toBe('expired');
  });

  test('a hold that is active when its grant expires is settled in all its budgets', async () => {
    const partition = await openPartition(redis);
    const shared = newBudget({ endsWithGrant: false, costLimitMicrousd: 1_000 });
    const grant = newGrant(partition, newBudget({ costLimitMicrousd: 100 }), shared);
    const expiresAtMs = (await redisNow(redis)) + 200;
    await loadGrant(redis, { ...grant, expiresAtMs });
    const hold = await admitted(redis, grant, { holdMicrousd: 30 });
    while ((await redisNow(redis)) < expiresAtMs);
    expect(await loadGrant(redis, { ...grant, expiresAtMs })).toBe('expired');
    for (const id of grant.ref.budgetIds)
      expect(await figures(redis, partition, id)).toEqual({ used: '1', settled: '0', held: '30' });
    expect(await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 12 }))).toBeDefined();
    for (const id of grant.ref.budgetIds)
      expect(await figures(redis, partition, id)).toEqual({ used: '1', settled: '12', held: '0' });
  });

  describe('a seed', () => {
    const planted = async (limits: Parameters<typeof newBudget>[0] = {}) => {
      const partition = await openPartition(redis);
      const grant = newGrant(partition, newBudget(limits));
      seeder(redis)(partition, grant.ref.id, seedOf(grant));
      expect(await findGrant(redis, partition, grant.ref.id)).toEqual({ seed: seedOf(grant) });
      return grant;
    };
    const seedKey = ({ ref }: GrantState) => keys.seed(ref.partition, ref.id);

    test('loads a grant once, like Postgres, and lives for a minute at most', async () => {
      const grant = await planted({ maxUses: 2, costLimitMicrousd: 1_000, callsPerMinute: 9 });
      expect(await redis.pttl(seedKey(grant))).toBeLessThanOrEqual(60_000);
      expect(await redis.pttl(seedKey(grant))).toBeGreaterThan(0);
      const other = newGrant(grant.ref.partition, newBudget({ ...grant.budgets[0], id: randomUUID() }));
      expect(await loadGrant(redis, fromSeed(grant))).toBe('ok');
      expect(await loadGrant(redis, other)).toBe('ok');
      const stored = (each: GrantState) =>
        Promise.all([
          redis.hgetall(keys.grant(each.ref.partition, each.ref.id)),
          redis.hgetall(keys.budget(each.ref.partition, each.ref.budgetIds[0] ?? '')),
          redis.hgetall(keys.credential(each.ref.partition, each.ref.credentialId)),
          redis.pexpiretime(keys.budget(each.ref.partition, each.ref.budgetIds[0] ?? '')),
        ]);
      const [loaded, byPostgres] = [await stored(grant), await stored(other)];
      expect(loaded.slice(0, 3)).toEqual(byPostgres.slice(0, 3));
      expect(loaded[3]).toBe(keysEndMs(grant.expiresAtMs));
      expect(await redis.exists(seedKey(grant))).toBe(0);
      expect(await loadGrant(redis, fromSeed(grant))).toBe('stale');
    });

    test('used by eight gateways at once loads one budget', async () => {
      const grant = await planted({ maxUses: 5 });
      const gateways = await Promise.all(Array.from({ length: 8 }, () => engine.connect()));
      const results = await Promise.all(
        gateways.map(async (gateway) => {
          const loaded = await loadGrant(gateway, fromSeed(grant));
          return [loaded, (await admit(gateway, grant.ref, newAsk())).is];
        }),
      );
      expect(results.filter(([loaded]) => loaded === 'ok')).toHaveLength(1);
      expect(await budget(grant)).toMatchObject({ used: '5' });
      expect(results.filter(([, is]) => is === 'admitted').length).toBeLessThanOrEqual(5);
    });

    test.each([
      ['of an earlier epoch', (grant: GrantState) => reopen(redis, grant.ref.partition, 2), 'closed'],
      [
        'in a Redis that has restarted since',
        (grant: GrantState) => restarted(redis, grant.ref.partition),
        'stale',
      ],
      ['of a grant that was loaded', (grant: GrantState) => loadGrant(redis, grant), 'stale'],
      [
        'of a budget that stands',
        ({ ref }: GrantState) =>
          redis.hset(keys.budget(ref.partition, ref.budgetIds[0] ?? ''), 'late:1:5-0', '1 0'),
        'stale',
      ],
      [
        'of a revoked grant',
        ({ ref }: GrantState) => revokeGrant(redis, { ...ref, expiresAtMs: 0 }),
        'revoked',
      ],
      [
        'of a withdrawn credential',
        ({ ref }: GrantState) => withdrawCredential(redis, ref.credentialId, [ref.partition]),
        'revoked',
      ],
    ] as const)('%s is not used', async (_what, happens, expected) => {
      const grant = await planted({ maxUses: 1 });
      await happens(grant);
      expect(await loadGrant(redis, fromSeed(grant))).toBe(expected);
    });

    test('of an earlier epoch is not used in an open partition', async () => {
      const grant = await planted();
      const { partition } = grant.ref;
      await reopen(redis, partition, 2);
      await drainAll(redis, { ...newLedger(partition), cursor: { partition, epoch: 2, lastId: '0-0' } });
      expect(await loadGrant(redis, fromSeed(grant))).toBe('stale');
      expect(await loadGrant(redis, { ...grant, epoch: 2 })).toBe('ok');
    });

    test('is dropped with all other seeds, and nothing else is dropped', async () => {
      const grants = [await planted(), await planted()];
      const [first] = grants;
      await loadGrant(redis, newGrant(first?.ref.partition ?? 0, newBudget()));
      const left = (await keysOf(redis, first?.ref.partition ?? 0)).filter((key) => !key.includes(':fresh:'));
      await dropSeeds(redis);
      for (const grant of grants) expect(await redis.exists(seedKey(grant))).toBe(0);
      expect((await keysOf(redis, first?.ref.partition ?? 0)).sort()).toEqual(left.sort());
    });

    test('that is long, or one of too many, is not stored', async () => {
      const partition = await openPartition(redis);
      const plant = seeder(redis);
      const grant = newGrant(partition, newBudget());
      plant(partition, 'long', { ...seedOf(grant), config: { text: 'x'.repeat(8_192) } });
      for (let i = 0; i < 20_000; i++) plant(partition, 'many', seedOf(grant));
      plant(partition, 'last', seedOf(grant));
      // Replies come in order.
      await redis.ping();
      expect(await redis.exists(keys.seed(partition, 'many'))).toBe(1);
      expect(await redis.exists(keys.seed(partition, 'long'), keys.seed(partition, 'last'))).toBe(0);
    });
  });

  test('a credential of several grants lives as long as the longest grant, at its newest version', async () => {
    const partition = await openPartition(redis);
    const long = { ...newGrant(partition, newBudget()), credential: { version: 2, sealed: 'k2.new' } };
    const credential = { version: 1, sealed: 'k1.old' };
    const short = { ...long, expiresAtMs: long.expiresAtMs - 60_000, credential };
    for (const grant of [short, long, short]) await loadGrant(redis, grant);
    expect(await findCredential(redis, partition, long.ref.credentialId)).toEqual(long.credential);
    const ends = await redis.pexpiretime(keys.credential(partition, long.ref.credentialId));
    expect(ends).toBe(keysEndMs(long.expiresAtMs));
    expect(await admit(redis, long.ref, newAsk())).toMatchObject({ credentialVersion: 2 });
  });

  test('a second load with other ledger figures changes no existing key', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 10, costLimitMicrousd: 1_000 });
    await admitted(redis, grant, { holdMicrousd: 30 });
    const other = {
      ...grant,
      budgets: grant.budgets.map((p) => ({ ...p, used: 9, settledMicrousd: 999, maxUses: 99 })),
    };
    expect(await loadGrant(redis, other)).toBe('ok');
    expect(await budget(grant)).toEqual({ used: '1', settled: '0', held: '30' });
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ usesLeft: 8 });
  });

  test('loads that race with calls lose no call', async () => {
    const gateways = [redis, await engine.connect(), await engine.connect()];
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget({ maxUses: 40, costLimitMicrousd: 10_000 }));
    const caller = async (i: number) => {
      const gateway = gateways[i % 3] ?? redis;
      if (i % 2 === 0) expect(await loadGrant(gateway, grant)).toBe('ok');
      const ask = newAsk({ holdMicrousd: 9 });
      for (let tries = 0; tries < 50; tries++) {
        const { is } = await admit(gateway, grant.ref, ask);
        if (is === 'admitted') return settle(gateway, grant.ref, newOutcome(ask.holdId, { costMicrousd: 4 }));
        if (is === 'uses_exhausted') return false;
        await loadGrant(gateway, grant);
      }
      throw new Error('the grant stays unknown');
    };
    const served = await Promise.all(Array.from({ length: 60 }, (_, i) => caller(i)));
    expect(served.filter(Boolean)).toHaveLength(40);
    expect(await budget(grant)).toEqual({ used: '40', settled: '160', held: '0' });
  });

  test('load adds the calls that the ledger lacks, and not those that it has', async () => {
    const partition = await openPartition(redis);
    const shared = newBudget({ costLimitMicrousd: 10_000 });
    const first = newGrant(partition, newBudget(), shared);
    await loadGrant(redis, first);
    const settleOne = async (costMicrousd: number) =>
      settle(redis, first.ref, newOutcome(await admitted(redis, first), { costMicrousd }));
    const ledger = newLedger(partition);
    for (const cost of [1, 10, 100]) await settleOne(cost);
    await drainRound(redis, ledger, 2);
    await settleOne(1_000);
    await settle(
      redis,
      first.ref,
      newOutcome(await admitted(redis, first), { uses: 0, costMicrousd: undefined }),
    );
    for (const id of first.ref.budgetIds) await redis.del(keys.budget(partition, id));
    expect(ledger.budgets.get(shared.id)).toEqual({ used: 2, settled: 11, tokens: 0 });
    expect(await loadGrant(redis, readGrant(ledger, first))).toBe('ok');
    const counted = { used: '4', settled: '1111', held: '0' };
    for (const id of first.ref.budgetIds) expect(await figures(redis, partition, id)).toEqual(counted);
  });

  test('load counts the late entries of a budget that was not loaded, and reads no other entries', async () => {
    const partition = await openPartition(redis);
    const budget = newBudget({ costLimitMicrousd: 10_000 });
    const early = newGrant(partition, newBudget(), budget);
    await loadGrant(redis, early);
    const ledger = newLedger(partition);
    const holds = [await admitted(redis, early), await admitted(redis, early)];
    await restarted(redis, partition);
    await drainAll(redis, ledger);
    for (const [i, hold] of holds.entries()) {
      expect(await settle(redis, early.ref, newOutcome(hold, { costMicrousd: 7 * (i + 1) }))).toBeDefined();
      if (i === 0) await drainRound(redis, ledger, 1);
    }
    expect(await redis.xlen(keys.usage(partition))).toBe(1);
    // A budget without any call does not need the entries of the stream.
    await redis.del(keys.usage(partition));
    const late = newGrant(partition, newBudget(), budget);
    expect(await loadGrant(redis, readGrant(ledger, late))).toBe('ok');
    const [own = '', shared = ''] = late.ref.budgetIds;
    expect(await figures(redis, partition, own)).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await figures(redis, partition, shared)).toEqual({ used: '2', settled: '21', held: '0' });
  });

  test('load is stale if the ledger went on, and succeeds after Postgres is read again', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 3 });
    const ledger = newLedger(partition);
    await settle(redis, grant.ref, newOutcome(await admitted(redis, grant)));
    const early = readGrant(ledger, grant);
    await drainAll(redis, ledger);
    await redis.del(keys.budget(partition, grant.ref.budgetIds[0] ?? ''));
    expect(await loadGrant(redis, early)).toBe('stale');
    expect(await budget(grant)).toBeUndefined();
    expect(await loadGrant(redis, readGrant(ledger, grant))).toBe('ok');
    expect(await budget(grant)).toMatchObject({ used: '1' });
  });

  test('between the commit to the ledger and the trim a load is right with the earlier and with the later figures', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const ledger = newLedger(partition);
    await settle(redis, grant.ref, newOutcome(await admitted(redis, grant), { costMicrousd: 5 }));
    const early = readGrant(ledger, grant);
    const [entry] = await redis.xrange(keys.usage(partition), '-', '+');
    commit(ledger, [
      {
        id: entry?.[0] ?? '',
        holdId: 'one',
        grantId: grant.ref.id,
        budgetIds: grant.ref.budgetIds,
        uses: 1,
        costMicrousd: 5,
        tokens: 0,
        outcome: 'settled',
        record: '{}',
      },
    ]);
    for (const reading of [early, readGrant(ledger, grant)]) {
      await redis.del(keys.budget(partition, grant.ref.budgetIds[0] ?? ''));
      expect(await loadGrant(redis, reading)).toBe('ok');
      expect(await budget(grant)).toEqual({ used: '1', settled: '5', held: '0' });
    }
    await trim(redis, ledger.cursor);
    expect(await budget(grant)).toEqual({ used: '1', settled: '5', held: '0' });
  });

  test('stream ids are compared as numbers, not as text', async () => {
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget());
    await redis.hset(keys.partition(partition), 'drained', '1000-9');
    expect(await loadGrant(redis, { ...grant, lastId: '999-10' })).toBe('stale');
    expect(await loadGrant(redis, { ...grant, lastId: '1000-8' })).toBe('stale');
    expect(await loadGrant(redis, { ...grant, lastId: '1000-10' })).toBe('ok');
  });

  test("a grant whose epoch differs from the partition's is stale", async () => {
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget());
    expect(await loadGrant(redis, { ...grant, epoch: 2 })).toBe('stale');
    expect(await loadGrant(redis, { ...grant, epoch: 0 })).toBe('stale');
  });

  test('a revoked grant is refused from the next call on, in every gateway', async () => {
    const other = await engine.connect();
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const hold = await admitted(other, grant);
    await revokeGrant(redis, { ...grant.ref, expiresAtMs: grant.expiresAtMs });
    expect(await admit(other, grant.ref, newAsk())).toEqual({ is: 'revoked' });
    expect(await loadGrant(other, grant)).toBe('revoked');
    expect(await admit(other, grant.ref, newAsk())).toEqual({ is: 'revoked' });
    expect(await settle(other, grant.ref, newOutcome(hold))).toBeDefined();
  });

  test('a revocation before the first call is kept, and load obeys it', async () => {
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget());
    await revokeGrant(redis, { ...grant.ref, expiresAtMs: grant.expiresAtMs });
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'revoked' });
    expect(await loadGrant(redis, grant)).toBe('revoked');
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'revoked' });
    expect(await budget(grant)).toBeUndefined();
    expect(await redis.pexpiretime(keys.grant(partition, grant.ref.id))).toBe(keysEndMs(grant.expiresAtMs));
  });

  test('a tombstone outlives every call in flight, even if it is written long after its grant expired', async () => {
    const partition = await openPartition(redis);
    const unknown = newGrant(partition, newBudget());
    const known = await loadedGrant(redis, partition);
    for (const { ref } of [unknown, known]) {
      await revokeGrant(redis, { ...ref, expiresAtMs: Date.now() - 10 * 86_400_000 });
      expect(await redis.pttl(keys.grant(partition, ref.id))).toBeGreaterThan(86_400_000);
      expect(await findEnds(redis, partition, [ref])).toEqual([{ id: ref.id, why: 'revoked' }]);
    }
  });

  test('a repeated revocation never shortens the life of a tombstone', async () => {
    const partition = await openPartition(redis);
    const { ref, expiresAtMs } = newGrant(partition, newBudget());
    await revokeGrant(redis, { ...ref, expiresAtMs: expiresAtMs + 86_400_000 });
    await revokeGrant(redis, { ...ref, expiresAtMs });
    expect(await redis.pexpiretime(keys.grant(partition, ref.id))).toBe(keysEndMs(expiresAtMs + 86_400_000));
  });
});
