import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  type BudgetState,
  changeLimits,
  charge,
  type GrantState,
  loadGrant,
  type RedisClient,
  readFigures,
  renew,
  settle,
  sweep,
  UNHEARD,
} from '../src/index.ts';
import { newAsk, newBudget, newCharge, newGrant, newOutcome, tally } from './grant.ts';
import { drainAll, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, openPartition } from './redis.ts';
import { putBack, takeSnapshot } from './snapshot.ts';
import { newWindow } from './world.ts';

describe.each(engines)('a limit of tokens on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  const windowOf = (limits: Partial<BudgetState>) => newWindow(limits, Date.now() - 60_000);
  /** A grant that draws on its own budget and on these windows, known to Redis. */
  async function loaded(windows: readonly Partial<BudgetState>[], own: Partial<BudgetState> = {}) {
    const grant = newGrant(await openPartition(redis), newBudget(own), ...windows.map(windowOf));
    expect(await loadGrant(redis, grant)).toBe('ok');
    return { ...grant, doc: JSON.stringify({ budget: grant.ref.budgetIds }) };
  }
  const ask = ({ ref }: GrantState, worstTokens: number | undefined, more: object = {}) =>
    admit(redis, ref, newAsk({ worstTokens, ...more }));
  const take = async (grant: GrantState, worstTokens: number | undefined) => {
    const asked = newAsk({ worstTokens });
    expect((await admit(redis, grant.ref, asked)).is).toBe('admitted');
    return asked.holdId;
  };
  const end = (grant: GrantState, holdId: string, usedTokens: number | undefined, more: object = {}) =>
    settle(redis, grant.ref, newOutcome(holdId, { usedTokens, ...more }));
  /** Tokens settled and held of each budget. */
  const tokens = async ({ ref }: GrantState) =>
    (await readFigures(redis, ref)).map((each) => [each?.tokens, each?.tokensHeld]);

  test('admits calls while settled and held tokens leave room, and reveals only the tokens that a call needs', async () => {
    const grant = await loaded([{ tokenLimit: 100 }]);
    const first = await take(grant, 60);
    const hidden = { of: 2, limit: 100, used: 0, isVisible: false };
    expect(await ask(grant, 41)).toEqual({ is: 'tokens_held', needed: 41, ...hidden });
    expect(await ask(grant, 101)).toEqual({ is: 'token_limit_too_low', needed: 101, ...hidden });
    const second = await take(grant, 40);
    await end(grant, first, 10);
    await end(grant, second, 40);
    expect(await tokens(grant)).toEqual([
      [0, 0],
      [50, 0],
    ]);
    await end(grant, await take(grant, 50), 50);
    expect(await ask(grant, 1)).toMatchObject({ is: 'token_limit_reached', of: 2 });
    expect((await ask(grant, 0)).is).toBe('admitted');
  });

  test('is never exceeded by simultaneous calls over two gateways', async () => {
    const other = await engine.connect();
    const grant = await loaded([{ tokenLimit: 205 }]);
    const asks = Array.from({ length: 60 }, (_, i) =>
      admit(i % 2 ? redis : other, grant.ref, newAsk({ worstTokens: 10 })),
    );
    expect(tally(await Promise.all(asks))).toEqual({ admitted: 20, tokens_held: 40 });
  });

  test('holds in all windows or in no window', async () => {
    const grant = await loaded([{ tokenLimit: 500 }, {}, { tokenLimit: 50 }]);
    expect(await ask(grant, 60)).toMatchObject({ is: 'token_limit_too_low', of: 4 });
    expect(await tokens(grant)).toEqual(Array.from({ length: 4 }, () => [0, 0]));
    await end(grant, await take(grant, 40), 30);
    expect(await tokens(grant)).toEqual([
      [0, 0],
      [30, 0],
      [30, 0],
      [30, 0],
    ]);
  });

  test('refuses a call without a bound, and admits one of no tokens', async () => {
    const grant = await loaded([{ tokenLimit: 0 }]);
    expect((await ask(grant, undefined)).is).toBe('unbounded');
    expect((await ask(grant, 0)).is).toBe('admitted');
    expect((await charge(redis, grant.ref, newCharge({ costMicrousd: 5 }))).is).toBe('admitted');
    expect(await tokens(grant)).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test('charges the hold if the usage is unknown or above it, and refunds a call that never reached a provider', async () => {
    const grant = await loaded([{ tokenLimit: 1_000 }]);
    await end(grant, await take(grant, 100), undefined);
    await end(grant, await take(grant, 100), 700);
    const unheard = await take(grant, 100);
    await end(grant, unheard, 0, { epoch: UNHEARD, uses: 0 });
    expect((await tokens(grant))[1]).toEqual([200, 0]);
    await take(grant, 100);
    const late = await take(grant, 300);
    await renew(redis, grant.ref.partition, -1_000, [late]);
    await sweep(redis, [grant.ref.partition]);
    await end(grant, late, 1);
    expect((await tokens(grant))[1]).toEqual([500, 100]);
  });

  test('counts one hold once, and counts the tokens of calls that had no limit', async () => {
    const grant = await loaded([{}]);
    const asked = newAsk({ worstTokens: 70 });
    for (let i = 0; i < 3; i++) expect((await admit(redis, grant.ref, asked)).is).toBe('admitted');
    const free = await take(grant, undefined);
    expect((await tokens(grant))[1]).toEqual([0, 70]);
    for (let i = 0; i < 2; i++) await end(grant, asked.holdId, 20);
    await end(grant, free, 400);
    expect((await tokens(grant))[1]).toEqual([420, 0]);
  });

  test('that is set, raised or removed judges the next call', async () => {
    const grant = await loaded([{}]);
    const [, window = newBudget()] = grant.budgets;
    await end(grant, await take(grant, 90), 90);
    const set = (revision: number, tokenLimit: number | null) =>
      changeLimits(redis, grant.ref.partition, { ...window, revision, tokenLimit }, Date.now() + 60_000);
    await set(2, 100);
    expect((await ask(grant, 20)).is).toBe('token_limit_too_low');
    await set(3, 110);
    await set(2, 100);
    await take(grant, 20);
    expect((await ask(grant, 1)).is).toBe('tokens_held');
    await set(4, null);
    await take(grant, undefined);
  });

  test('is restored after a loss from the ledger, late settles and surviving holds', async () => {
    const grant = await loaded([{ tokenLimit: 1_000 }]);
    const ledger = newLedger(grant.ref.partition);
    await end(grant, await take(grant, 200), 150);
    const kept = await take(grant, 70);
    const snapshot = await takeSnapshot(redis, grant.ref.partition);
    const lost = await take(grant, 300);
    await putBack(redis, grant.ref.partition, snapshot);
    await drainAll(redis, ledger);
    await end(grant, lost, 250);
    expect(await loadGrant(redis, readGrant(ledger, grant))).toBe('ok');
    expect((await tokens(grant))[1]).toEqual([400, 70]);
    await end(grant, kept, 60);
    await drainAll(redis, ledger);
    expect((await tokens(grant))[1]).toEqual([460, 0]);
    expect(ledger.budgets.get(grant.ref.budgetIds[1] ?? '')?.tokens).toBe(460);
  });
});
