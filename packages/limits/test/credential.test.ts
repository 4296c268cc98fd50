import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  type CredentialCopy,
  findCredential,
  findEnds,
  type GrantState,
  keys,
  keysEndMs,
  loadGrant,
  moveEnd,
  type RedisClient,
  replaceCredential,
  resealCopy,
  revokeGrant,
  scanCredentials,
  withdrawCredential,
} from '../src/index.ts';
import { admitted, newAsk, newBudget, newGrant } from './grant.ts';
import { type Engine, engines, newPartition, openPartition } from './redis.ts';

describe.each(engines)('credentials on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  let partitions: number[];
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
    partitions = [await openPartition(redis), await openPartition(redis), await openPartition(redis)];
  });
  afterAll(() => engine.close());

  /** Grants of one credential, one in each partition. */
  const grantsOf = (credentialId: string): GrantState[] =>
    partitions.map((partition) => {
      const grant = newGrant(partition, newBudget());
      return { ...grant, ref: { ...grant.ref, credentialId } };
    });
  const one = (grants: readonly GrantState[], at: number) => grants[at] as GrantState;
  const copyIn = (at: number, id: string) => findCredential(redis, partitions[at] ?? 0, id);
  const lifeOf = async (at: number, id: string) => {
    return (await redis.pexpiretime(keys.credential(partitions[at] ?? 0, id))) - Date.now();
  };

  test('after a rotation every admission names the new version, in every partition, and the copy lives as long', async () => {
    const id = randomUUID();
    const grants = grantsOf(id);
    for (const grant of grants) await loadGrant(redis, grant);
    await replaceCredential(redis, { id, version: 2, sealed: 'k1.new' }, partitions);
    for (const [at, grant] of grants.entries()) {
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'admitted', credentialVersion: 2 });
      expect(await copyIn(at, id)).toEqual({ version: 2, sealed: 'k1.new' });
      const ends = await redis.pexpiretime(keys.credential(grant.ref.partition, id));
      expect(ends).toBe(keysEndMs(grant.expiresAtMs));
    }
  });

  test('a grant loaded with a version that was read before a rotation gets the rotated version', async () => {
    const id = randomUUID();
    const grants = grantsOf(id);
    await replaceCredential(redis, { id, version: 2, sealed: 'k1.new' }, partitions);
    for (const [at, grant] of grants.entries()) {
      expect(grant.credential.version).toBe(1);
      expect(await loadGrant(redis, grant)).toBe('ok');
      expect(await copyIn(at, id)).toEqual({ version: 2, sealed: 'k1.new' });
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ credentialVersion: 2 });
    }
  });

  test("the grant gets the rotated version even if the rotation's record is of an older epoch or has no epoch", async () => {
    const id = randomUUID();
    const [grant] = grantsOf(id);
    if (!grant) throw new Error('no grant');
    const { partition } = grant.ref;
    await replaceCredential(redis, { id, version: 2, sealed: 'k1.new' }, [partition]);
    for (const epoch of ['0', undefined]) {
      if (epoch === undefined) await redis.hdel(keys.credential(partition, id), 'epoch');
      else await redis.hset(keys.credential(partition, id), 'epoch', epoch);
      expect(await loadGrant(redis, grant)).toBe('ok');
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ credentialVersion: 2 });
    }
  });

  test('a copy of an older epoch is replaced by the same version from Postgres', async () => {
    const id = randomUUID();
    const [grant] = grantsOf(id);
    if (!grant) throw new Error('no grant');
    await loadGrant(redis, grant);
    await redis.hset(keys.credential(grant.ref.partition, id), 'epoch', '0');
    await loadGrant(redis, { ...grant, credential: { version: 1, sealed: 'k2.resealed' } });
    expect(await copyIn(0, id)).toEqual({ version: 1, sealed: 'k2.resealed' });
  });

  test('an older version never replaces a newer one', async () => {
    const id = randomUUID();
    await replaceCredential(redis, { id, version: 3, sealed: 'k1.third' }, partitions);
    await replaceCredential(redis, { id, version: 2, sealed: 'k1.second' }, partitions);
    for (const at of partitions.keys())
      expect(await copyIn(at, id)).toEqual({ version: 3, sealed: 'k1.third' });
  });

  test('partitions without such a grant keep a new version for an hour, and a tombstone longer than any call', async () => {
    const replaced = randomUUID();
    const withdrawn = randomUUID();
    await replaceCredential(redis, { id: replaced, version: 2, sealed: 'k1.new' }, partitions);
    await withdrawCredential(redis, withdrawn, partitions);
    expect(await lifeOf(0, replaced)).toBeGreaterThan(600_000);
    expect(await lifeOf(0, replaced)).toBeLessThanOrEqual(3_600_000);
    expect(await lifeOf(0, withdrawn)).toBeGreaterThan(86_400_000);
    expect(await lifeOf(0, withdrawn)).toBeLessThanOrEqual(2 * 86_400_000);
  });

  test('a withdrawn credential refuses all its grants, in Redis or not, and its sealed key is deleted', async () => {
    const id = randomUUID();
    const grants = grantsOf(id);
    const [first, ...unloaded] = grants;
    if (!first) throw new Error('no grant');
    await loadGrant(redis, first);
    await admitted(redis, first);
    await withdrawCredential(redis, id, partitions);
    expect(await admit(redis, first.ref, newAsk())).toEqual({ is: 'credential_revoked' });
    for (const grant of unloaded) expect(await loadGrant(redis, grant)).toBe('revoked');
    for (const at of partitions.keys()) expect(await copyIn(at, id)).toBeUndefined();
    const ends = await redis.pexpiretime(keys.credential(first.ref.partition, id));
    expect(ends).toBe(keysEndMs(first.expiresAtMs));
  });

  test('a rotation that arrives after the withdrawal does not revive the credential', async () => {
    const id = randomUUID();
    const grants = grantsOf(id);
    await loadGrant(redis, one(grants, 0));
    await withdrawCredential(redis, id, partitions);
    await replaceCredential(redis, { id, version: 2, sealed: 'k1.new' }, partitions);
    expect(await admit(redis, one(grants, 0).ref, newAsk())).toEqual({ is: 'credential_revoked' });
    expect(await loadGrant(redis, one(grants, 1))).toBe('revoked');
    for (const at of partitions.keys()) expect(await copyIn(at, id)).toBeUndefined();
  });

  test('exactly the revoked grants are found, by their own tombstone or by that of their credential', async () => {
    const partition = partitions[0] ?? 0;
    const [alive, revoked, withdrawn] = [0, 1, 2].map(() => newGrant(partition, newBudget()));
    if (!alive || !revoked || !withdrawn) throw new Error('no grants');
    for (const grant of [alive, revoked, withdrawn]) await loadGrant(redis, grant);
    await revokeGrant(redis, { ...revoked.ref, expiresAtMs: revoked.expiresAtMs });
    await withdrawCredential(redis, withdrawn.ref.credentialId, [partition]);
    const found = await findEnds(redis, partition, [withdrawn.ref, alive.ref, revoked.ref]);
    expect(found).toEqual([withdrawn, revoked].map(({ ref }) => ({ id: ref.id, why: 'revoked' })));
  });

  test('the search also finds grants with a changed expiry, unless they are revoked', async () => {
    const partition = partitions[0] ?? 0;
    const [never, moved, revoked] = [0, 1, 2].map(() => newGrant(partition, newBudget()));
    if (!never || !moved || !revoked) throw new Error('no grants');
    const endsMs = moved.expiresAtMs - 1_001;
    for (const grant of [never, moved, revoked]) await loadGrant(redis, grant);
    for (const [i, at] of [endsMs + 7, endsMs].entries())
      for (const { ref, expiresAtMs } of [moved, revoked])
        await moveEnd(redis, partition, {
          ...{ id: ref.id, credentialId: ref.credentialId, revision: 2 + i },
          ...{ expiresAtMs: at, signedUntilMs: expiresAtMs },
        });
    await revokeGrant(redis, { ...revoked.ref, expiresAtMs: revoked.expiresAtMs });
    expect(await findEnds(redis, partition, [revoked.ref, never.ref, moved.ref])).toEqual([
      { id: revoked.ref.id, why: 'revoked' },
      { id: moved.ref.id, why: 'moved', endsMs },
    ]);
  });

  test('a scan returns every copy, however many, and nothing else', async () => {
    const grants = Array.from({ length: 1_200 }, (_, i) => newGrant(partitions[i % 3] ?? 0, newBudget()));
    await Promise.all(grants.map((grant) => loadGrant(redis, grant)));
    const seen: CredentialCopy[] = [];
    for await (const copies of scanCredentials(redis)) seen.push(...copies);
    const ids = new Set(grants.map((grant) => grant.ref.credentialId));
    const found = seen.filter((copy) => ids.has(copy.id));
    expect(new Set(found.map((copy) => `${copy.partition} ${copy.id}`))).toEqual(
      new Set(grants.map((grant) => `${grant.ref.partition} ${grant.ref.credentialId}`)),
    );
    expect(new Set(found.map((copy) => copy.sealed))).toEqual(new Set(['k1.sealed']));
  });

  test('a resealed key replaces only a copy of the same version, never a newer one or a tombstone', async () => {
    const partition = partitions[0] ?? 0;
    const [here, later, gone, withdrawn] = [1, 2, 1, 1].map((version) => {
      const grant = newGrant(partition, newBudget());
      return { ...grant, credential: { version, sealed: 'k1.sealed' } };
    });
    if (!here || !later || !gone || !withdrawn) throw new Error('no grants');
    for (const grant of [here, later, withdrawn]) await loadGrant(redis, grant);
    await withdrawCredential(redis, withdrawn.ref.credentialId, [partition]);
    const reseal = ({ ref }: GrantState) =>
      resealCopy(redis, { partition, id: ref.credentialId, version: 1, sealed: 'k2.sealed' });
    expect(await Promise.all([here, later, gone, withdrawn].map(reseal))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(await copyIn(0, here.ref.credentialId)).toEqual({ version: 1, sealed: 'k2.sealed' });
    expect(await copyIn(0, later.ref.credentialId)).toEqual({ version: 2, sealed: 'k1.sealed' });
    expect(await copyIn(0, gone.ref.credentialId)).toBeUndefined();
    expect(await redis.pexpiretime(keys.credential(partition, here.ref.credentialId))).toBe(
      keysEndMs(here.expiresAtMs),
    );
  });

  test('a repeated change reaches the partitions that the first attempt missed', async () => {
    const id = randomUUID();
    const other = await engine.connect();
    other.disconnect();
    const change = { id, version: 2, sealed: 'k1.new' };
    await expect(replaceCredential(other, change, partitions)).rejects.toThrow();
    await expect(withdrawCredential(other, id, partitions)).rejects.toThrow();
    expect(await copyIn(0, id)).toBeUndefined();
    await replaceCredential(redis, change, [newPartition(), ...partitions]);
    for (const at of partitions.keys())
      expect(await copyIn(at, id)).toEqual({ version: 2, sealed: 'k1.new' });
  });
});
