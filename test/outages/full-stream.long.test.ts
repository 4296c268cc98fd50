import { randomBytes } from 'node:crypto';
import { BACKLOG_MAX, charge, type GrantRef, keys } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets, grants } from '@presign/schema/tables';
import { eq, sum } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { killPostgres } from '../chaos/kill-postgres.ts';
import { call } from '../chaos/load.ts';
import { grantIdOf } from '../chaos/sample.ts';
import type { World } from '../chaos/world.ts';
import { eventually } from '../harness/eventually.ts';
import { timeRecovery } from './recovery.ts';
import { ASK, BODY, type Code, canHurt, startWitness, until, type Witness } from './witness.ts';

/** Calls of the account while Postgres is away. Leases make up the rest of the bound. */
const CALLS = 2_000;
/** Calls that the shared budget leaves after the partition is at its bound. */
const REST = 20;

describe.skipIf(!canHurt)('an account with a shared budget, while Postgres is down for long', () => {
  let witness: Witness;
  let world: World;
  let url: string;
  beforeAll(async () => {
    witness = await startWitness();
    world = witness.world;
    await world.master().command('CONFIG', 'SET', 'appendfsync', 'everysec');
    await create('/v1/budgets', { scope: { account: true }, max_uses: CALLS + REST });
    url = await world.issue({ ...ASK, max_uses: -1 });
  });
  afterAll(() => witness.close());

  const create = async (route: string, body: object) => {
    const headers = { authorization: `Bearer ${world.apiKey}`, 'content-type': 'application/json' };
    const asked = { method: 'POST', headers, body: JSON.stringify(body) };
    expect((await fetch(`${world.issuerUrl}${route}`, asked)).ok).toBe(true);
  };
  let passed = 0;
  const codeOf = async (gateway: 0 | 1): Promise<Code> => {
    const { status, code } = await call(url.replace(world.gatewayUrls[0], world.gatewayUrls[gateway]), BODY);
    if (status === 200) passed++;
    return code ?? status;
  };
  const bothCodes = async () => [await codeOf(0), await codeOf(1)];
  const useShare = async (share: number) => {
    const used = Number(/used_memory:(\d+)/.exec(await world.redis.info('memory'))?.[1]);
    await world.master().command('CONFIG', 'SET', 'maxmemory', String(Math.round(used / share)));
  };
  /** The URL's grant, and the record of a call on it. */
  const readCall = async () => {
    const { accountId: acc, sessionId: ses, credentialId } = grants;
    const [row] = await world.db
      .select({ acc, ses, credentialId, partition: budgets.partition })
      .from(grants)
      .innerJoin(budgets, eq(budgets.id, grants.budgetId))
      .where(eq(grants.id, grantIdOf(url)));
    if (!row?.credentialId) throw new Error('the grant is not stored');
    const doc = await world.redis.hget(keys.grant(row.partition, grantIdOf(url)), 'doc');
    const { budget } = JSON.parse(doc ?? '') as { budget: string[] };
    const { partition, credentialId: at } = row;
    const ref = { id: grantIdOf(url), partition, accountId: row.acc, credentialId: at, budgetIds: budget };
    const record = { acc: row.acc, ses: row.ses, grt: ref.id, prv: 'openai', beg: Date.now() };
    return { ref, record: JSON.stringify(record) };
  };
  type OneCall = { readonly ref: GrantRef; readonly record: string };
  /** Charges so many further calls, as gateways do. */
  const fill = async ({ ref, record }: OneCall, count: number) => {
    for (let i = 0; i < count; i += 500) {
      const each = Array.from({ length: Math.min(500, count - i) }, () => {
        const chargeId = randomBytes(16).toString('hex');
        return charge(world.redis, ref, { chargeId, uses: 1, costMicrousd: 0, record });
      });
      for (const { is } of await Promise.all(each)) expect(is).toBe('admitted');
    }
  };
  const addLeases = async ({ partition }: GrantRef, count: number) => {
    const leases = Array.from({ length: count }, (_, i) => [Date.now() + 3_600_000, `other-${i}`]);
    for (let i = 0; i < count; i += 10_000)
      await world.redis.zadd(keys.leases(partition), ...leases.slice(i, i + 10_000).flat());
  };
  const waiting = ({ partition }: GrantRef) => world.redis.xlen(keys.usage(partition));

  test('is served beyond BACKLOG_MAX while Redis has room, without exceeding a limit or losing a call', async () => {
    await until(200, () => codeOf(0), ['limits_unavailable']);
    await until(200, () => codeOf(1), ['limits_unavailable']);
    const known = await readCall();
    await eventually(async () => (await waiting(known.ref)) === 0);
    await killPostgres(world.postgres.url);
    await fill(known, CALLS);
    await addLeases(known.ref, BACKLOG_MAX - CALLS);

    expect(await bothCodes()).toEqual(['limits_unavailable', 'limits_unavailable']);
    await useShare(0.5);
    expect(await bothCodes()).toEqual([200, 200]);
    await useShare(0.8);
    expect(await bothCodes()).toEqual(['limits_unavailable', 'limits_unavailable']);
    await useShare(0.5);
    const recovered = timeRecovery('Postgres: down until Redis has no room, once it has room');
    expect(await bothCodes()).toEqual([200, 200]);
    recovered();

    await world.postgres.start();
    while (passed < REST) expect(await codeOf(0)).toBe(200);
    expect(await bothCodes()).toEqual(['uses_exhausted', 'uses_exhausted']);
    await eventually(async () => (await waiting(known.ref)) === 0);
    const [row] = await world.db.select({ uses: sum(ledger.uses) }).from(ledger);
    expect(Number(row?.uses)).toBe(CALLS + REST);
    expect(witness.upstream.seen).toHaveLength(passed);
  });
});
