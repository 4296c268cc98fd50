import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freezePostgres } from '../chaos/kill-postgres.ts';
import type { World } from '../chaos/world.ts';
import { timeRecovery } from './recovery.ts';
import { canMount, makeSmallDisk, type SmallDisk } from './small-disk.ts';
import { canHurt, startWitness, USES, until, type Witness } from './witness.ts';

describe.skipIf(!canHurt || !canMount)('an issuer and two gateways, in separate processes', () => {
  let disks: { readonly postgres: SmallDisk; readonly redis: SmallDisk };
  let witness: Witness;
  let world: World;
  beforeAll(async () => {
    disks = { postgres: makeSmallDisk(160), redis: makeSmallDisk(32) };
    witness = await startWitness({ postgres: disks.postgres.folder, redis: disks.redis.folder });
    world = witness.world;
    await world.master().command('CONFIG', 'SET', 'appendfsync', 'everysec');
  });
  afterAll(async () => {
    await witness.close();
    for (const disk of Object.values(disks)) disk.remove();
  });
  beforeEach(() => witness.begin());

  const codeOf = (gateway: number) => witness.codeOf(gateway);
  const issueCode = () => witness.issueCode();

  test('while the disk of Redis is full, refuse calls as an outage and issue URLs; nothing is lost', async () => {
    disks.redis.fill();
    await until('limits_unavailable', () => codeOf(0), [200]);
    expect([await codeOf(1), await issueCode()]).toEqual(['limits_unavailable', 200]);
    disks.redis.free();
    const recovered = timeRecovery('Redis: disk is full');
    for (const i of [0, 1]) await until(200, () => codeOf(i), ['limits_unavailable']);
    recovered();
    await witness.nothingLost();
  });

  test('while Redis is slow, pass exactly max_uses calls', async () => {
    world.redisWay.delay(300);
    const codes = await Promise.all(Array.from({ length: 2 * USES }, (_, i) => codeOf(i)));
    expect(witness.passed()).toBe(USES);
    expect(new Set(codes)).toEqual(new Set([200, 'uses_exhausted']));
    world.redisWay.delay(0);
    await witness.nothingLost();
  });

  test('while Postgres is slow, issue URLs slowly and pass calls', async () => {
    world.postgresWay.delay(300);
    expect([await issueCode(), await codeOf(0), await codeOf(1)]).toEqual([200, 200, 200]);
    world.postgresWay.delay(0);
    await witness.nothingLost();
  });

  test('while Postgres is suspended, issue no URL and pass calls on known URLs; nothing is lost', async () => {
    expect(await codeOf(1)).toBe(200);
    const thaw = await freezePostgres(world.postgres.url);
    expect(await issueCode()).toBe('database_unavailable');
    expect([await codeOf(0), await codeOf(1)]).toEqual([200, 200]);
    thaw();
    const recovered = timeRecovery('Postgres: frozen (SIGSTOP)');
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    await witness.nothingLost();
  });

  test('while the disk of Postgres is full, issue no URL and pass calls on known URLs; nothing is lost', async () => {
    expect(await codeOf(1)).toBe(200);
    disks.postgres.fill();
    await until('database_unavailable', issueCode, [200]);
    expect([await codeOf(0), await codeOf(1)]).toEqual([200, 200]);
    // The disk stays full while the server tries again.
    await sleep(1_000);
    disks.postgres.free();
    // A server that could not write its log has ended.
    await world.postgres.stop();
    await world.postgres.start();
    const recovered = timeRecovery('Postgres: disk is full, after its restart');
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    await witness.nothingLost();
  });
});
