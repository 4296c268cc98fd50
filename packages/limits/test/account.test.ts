import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  findEnds,
  keys,
  loadGrant,
  type RedisClient,
  revokeGrant,
  setAccountState,
} from '../src/index.ts';
import { newAsk, newBudget, newGrant } from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

let engine: Engine;
let redis: RedisClient;

describe.each(engines)('accounts on %s', (_name, start) => {
  let partitions: number[];
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
    partitions = [await openPartition(redis), await openPartition(redis)];
  });
  afterAll(() => engine.close());

  const set = (id: string, version: number, isSuspended: boolean) =>
    setAccountState(redis, { id, version, isSuspended }, partitions);

  /** A grant of an account in each partition. */
  async function grantsOf(accountId: string) {
    const grants = partitions.map((partition) => {
      const grant = newGrant(partition, newBudget({ maxUses: 3 }));
      return { ...grant, ref: { ...grant.ref, accountId } };
    });
    for (const grant of grants) await loadGrant(redis, grant);
    return grants.map(({ ref }) => ref);
  }

  const outcomes = async (refs: Awaited<ReturnType<typeof grantsOf>>) =>
    Promise.all(refs.map(async (ref) => (await admit(redis, ref, newAsk())).is));

  test('a suspended account is admitted in no partition, its calls count nothing, and its grants can be listed', async () => {
    const id = randomUUID();
    const [mine, others] = [await grantsOf(id), await grantsOf(randomUUID())];
    await set(id, 1, true);
    expect(await outcomes(mine)).toEqual(['suspended', 'suspended']);
    expect(await outcomes(others)).toEqual(['admitted', 'admitted']);
    for (const [i, ref] of mine.entries()) {
      const other = { ...(others[i] ?? ref), partition: ref.partition };
      const found = [{ id: ref.id, why: 'suspended' }];
      expect(await findEnds(redis, ref.partition, [other, ref])).toEqual(found);
      expect(await redis.hget(keys.budget(ref.partition, ref.budgetIds[0] ?? ''), 'used')).toBe('0');
      expect(await redis.pttl(keys.account(ref.partition, id))).toBe(-1);
    }
    const [first] = mine;
    if (!first) throw new Error('no grant');
    await revokeGrant(redis, { ...first, expiresAtMs: Date.now() + 60_000 });
    const gone = [{ id: first.id, why: 'revoked' }];
    expect(await findEnds(redis, first.partition, [first])).toEqual(gone);
    await set(id, 2, false);
    expect(await outcomes(mine)).toEqual(['revoked', 'admitted']);
    expect(await findEnds(redis, partitions[1] ?? 0, mine.slice(1))).toEqual([]);
  });

  test('an earlier state that arrives late changes nothing, in either direction', async () => {
    const id = randomUUID();
    const mine = await grantsOf(id);
    await set(id, 2, false);
    await set(id, 1, true);
    expect(await outcomes(mine)).toEqual(['admitted', 'admitted']);
    await set(id, 3, true);
    await set(id, 2, false);
    expect(await outcomes(mine)).toEqual(['suspended', 'suspended']);
    await set(id, 3, true);
    expect(await outcomes(mine)).toEqual(['suspended', 'suspended']);
  });
});
