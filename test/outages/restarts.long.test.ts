import { keys } from '@presign/limits';
import { budgets, grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { killPostgres } from '../chaos/kill-postgres.ts';
import type { World } from '../chaos/world.ts';
import { eventually } from '../harness/eventually.ts';
import { timeRecovery } from './recovery.ts';
import { type Code, canHurt, startWitness, until, type Witness } from './witness.ts';

describe.skipIf(!canHurt)('an issuer and two gateways, in separate processes, after kill -9', () => {
  let witness: Witness;
  let world: World;
  beforeAll(async () => {
    witness = await startWitness();
    world = witness.world;
  });
  afterAll(() => witness.close());
  beforeEach(() => witness.begin());

  let epoch: number;
  /** The epoch of the URL's partition. 0 while that is closed, or Redis is away. */
  const openEpoch = async () => {
    const [row] = await world.db
      .select({ partition: budgets.partition })
      .from(grants)
      .innerJoin(budgets, eq(budgets.id, grants.budgetId))
      .where(eq(grants.id, witness.grantId()));
    const at = keys.partition(row?.partition ?? 0);
    const [number, state] = await world.redis.hmget(at, 'epoch', 'state').catch(() => []);
    return state === 'open' ? Number(number) : 0;
  };
  const call = () => witness.codeOf(0);
  const issue = () => witness.issueCode();

  test.each<{
    readonly of: string;
    readonly kill: () => Promise<void>;
    readonly start: () => Promise<void>;
    readonly ask: () => Promise<Code>;
    readonly refusal: Code;
    /** Until its loss is noticed, after which calls may be refused again. */
    readonly noticed?: () => Promise<unknown>;
  }>([
    {
      of: 'Redis',
      kill: () => world.master().kill(),
      start: () => world.master().start(),
      ask: call,
      refusal: 'limits_unavailable',
      noticed: () => eventually(async () => (await openEpoch()) > epoch),
    },
    {
      of: 'Postgres',
      kill: () => killPostgres(world.postgres.url),
      start: () => world.postgres.start(),
      ask: issue,
      refusal: 'database_unavailable',
    },
    {
      of: 'a gateway',
      kill: () => world.gateways[0].kill(),
      start: () => world.gateways[0].start(),
      ask: call,
      refusal: 0,
    },
    {
      of: 'the issuer',
      kill: () => world.issuer.kill(),
      start: () => world.issuer.start(),
      ask: issue,
      refusal: 0,
    },
  ])('of $of serve again once it has started, and nothing is lost', async (killed) => {
    expect([await call(), await witness.codeOf(1), await issue()]).toEqual([200, 200, 200]);
    epoch = await openEpoch();
    await killed.kill();
    expect(await killed.ask()).toBe(killed.refusal);
    await killed.start();
    const recovered = timeRecovery(`kill -9 of ${killed.of}, once it runs again`);
    await killed.noticed?.();
    await until(200, killed.ask, [killed.refusal, 'limits_unavailable']);
    recovered();
    await until(200, () => witness.codeOf(1), ['limits_unavailable']);
    await witness.nothingLost();
  });
});
