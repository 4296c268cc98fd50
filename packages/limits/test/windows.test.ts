import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  type BudgetState,
  changeLimits,
  charge,
  type GrantState,
  KEYS_KEPT_MS,
  keys,
  loadGrant,
  narrow,
  type RedisClient,
  refund,
  settle,
  sweep,
} from '../src/index.ts';
import {
  admitted,
  charged,
  figures,
  newAsk,
  newBudget,
  newCharge,
  newGrant,
  newOutcome,
  newRefund,
} from './grant.ts';
import { drainAll, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, loseAll, openPartition } from './redis.ts';

const HOUR_MS = 3_600_000;

describe.each(engines)('a window on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  let partition: number;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  /** A window that began an hour ago and lasts another, unless said. */
  const newWindow = (limits: Partial<BudgetState> = {}, startsMs = Date.now() - HOUR_MS, ms = 2 * HOUR_MS) =>
    newBudget({ endsWithGrant: false, window: { startsMs, endsMs: startsMs + ms }, ...limits });
  const grantOf = (...budgets: BudgetState[]): GrantState => {
    const grant = newGrant(partition, ...budgets);
    return { ...grant, doc: JSON.stringify({ budget: grant.ref.budgetIds }) };
  };
  /** The same grant with another window in the place of its last budget. */
  const next = (grant: GrantState, window: BudgetState): GrantState => {
    const budgets = [...grant.budgets.slice(0, -1), window];
    const budgetIds = budgets.map(({ id }) => id);
    return {
      ...grant,
      budgets,
      ref: { ...grant.ref, budgetIds },
      doc: JSON.stringify({ budget: budgetIds }),
    };
  };
  const loaded = async (...budgets: BudgetState[]) => {
    partition = await openPartition(redis);
    const grant = grantOf(...budgets);
    expect(await loadGrant(redis, grant)).toBe('ok');
    return grant;
  };
  /** Ends a running window now: the test cannot wait for its boundary. */
  const end = async ({ id, window }: BudgetState) =>
    redis.hset(keys.budget(partition, id), 'window', `${window?.startsMs} ${Date.now() - 1}`);
  const of = ({ id }: BudgetState) => figures(redis, partition, id);

  test('counts calls in addition to the grant’s own budget, and a refusal names the full window by its position', async () => {
    const window = newWindow({ maxUses: 1, costLimitMicrousd: 100 });
    const grant = await loaded(newBudget({ costLimitMicrousd: 1_000 }), window);
    await admitted(redis, grant, { holdMicrousd: 60 });
    expect(await of(window)).toEqual({ used: '1', settled: '0', held: '60' });
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'uses_exhausted', of: 2 });
    expect(await admit(redis, grant.ref, newAsk({ uses: 0, holdMicrousd: 60 }))).toMatchObject({
      is: 'cost_held',
      of: 2,
    });
  });

  test('that is over, or has not begun, counts nothing, and the reply has the time of Redis', async () => {
    const window = newWindow();
    const grant = await loaded(newBudget(), window);
    const before = Date.now();
    for (const bounds of [
      `0 ${before - 1}`,
      `${before + HOUR_MS} `,
      `${before + HOUR_MS} ${before + 2 * HOUR_MS}`,
    ]) {
      await redis.hset(keys.budget(partition, window.id), 'window', bounds);
      for (const ask of [admit(redis, grant.ref, newAsk()), charge(redis, grant.ref, newCharge())]) {
        const answer = await ask;
        expect(answer.is).toBe('another_window');
        expect('nowMs' in answer && Math.abs(answer.nowMs - before)).toBeLessThan(60_000);
      }
    }
    expect(await of(window)).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await of(grant.budgets[0] as BudgetState)).toEqual({ used: '0', settled: '0', held: '0' });
  });

  test('that is over or has not begun cannot be loaded, and nothing of the grant is loaded', async () => {
    partition = await openPartition(redis);
    for (const window of [
      newWindow({}, Date.now() - HOUR_MS, HOUR_MS / 2),
      newWindow({}, Date.now() + HOUR_MS),
    ]) {
      const grant = grantOf(newBudget(), window);
      expect(await loadGrant(redis, grant)).toEqual({ nowMs: expect.any(Number) });
      expect((await admit(redis, grant.ref, newAsk())).is).toBe('unknown');
    }
  });

  test('without an end counts forever, and its key never expires', async () => {
    const window = newBudget({
      endsWithGrant: false,
      maxUses: 1,
      window: { startsMs: 0, endsMs: undefined },
    });
    const grant = await loaded(newBudget(), window);
    await admitted(redis, grant);
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'uses_exhausted', of: 2 });
    expect(await redis.pexpiretime(keys.budget(partition, window.id))).toBe(-1);
  });

  test('keeps its key until every call of it has ended', async () => {
    const window = newWindow();
    await loaded(newBudget(), window);
    expect(await redis.pexpiretime(keys.budget(partition, window.id))).toBe(
      (window.window?.endsMs ?? 0) + KEYS_KEPT_MS,
    );
  });

  test('gets the settle of a call that it admitted, however late, and the next window gets only its own calls', async () => {
    const first = newWindow({ costLimitMicrousd: 100 });
    const grant = await loaded(newBudget(), first);
    const [settled, expired] = [
      await admitted(redis, grant, { holdMicrousd: 40 }),
      await admitted(redis, grant, { holdMicrousd: 50, leaseMs: -1 }),
    ];
    await end(first);
    const second = newWindow({ costLimitMicrousd: 100 });
    const later = next(grant, second);
    expect(await loadGrant(redis, later)).toBe('ok');
    const inNext = await admitted(redis, later, { holdMicrousd: 100 });
    // Its gateway knows only the next window by now.
    await settle(redis, later.ref, newOutcome(settled, { costMicrousd: 30 }));
    await sweep(redis, [partition]);
    expect(await of(first)).toEqual({ used: '2', settled: '80', held: '0' });
    expect(await of(second)).toEqual({ used: '1', settled: '0', held: '100' });
    await settle(redis, later.ref, newOutcome(inNext, { costMicrousd: 5 }));
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect(ledger.budgets.get(first.id)).toEqual({ used: 2, settled: 80, tokens: 0 });
    expect(ledger.budgets.get(second.id)).toEqual({ used: 1, settled: 5, tokens: 0 });
    expect(expired).not.toBe(settled);
  });

  test('gets the refunds of its own charges, and the next window gets none of them', async () => {
    const first = newWindow();
    const grant = await loaded(newBudget(), first);
    const made = await charged(redis, grant, { costMicrousd: 20 });
    await end(first);
    const second = newWindow();
    const later = next(grant, second);
    await loadGrant(redis, later);
    expect(await refund(redis, later.ref, newRefund(made))).toBe(false);
    expect(await of(second)).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await refund(redis, grant.ref, newRefund(made))).toBe(true);
    expect(await of(first)).toEqual({ used: '0', settled: '0', held: '0' });
  });

  test('lowers the hold of a call that it admitted, and no other hold', async () => {
    const first = newWindow();
    const grant = await loaded(newBudget(), first);
    const hold = await admitted(redis, grant, { holdMicrousd: 50 });
    await end(first);
    const later = next(grant, newWindow());
    await loadGrant(redis, later);
    expect(await narrow(redis, later.ref, hold, 10)).toBe(0);
    expect(await narrow(redis, grant.ref, hold, 10)).toBe(40);
    expect(await of(first)).toMatchObject({ held: '10' });
  });

  test('lowers no output bound, because a holder could read from it how much others have left', async () => {
    const hold = { fixedMicrousd: 10, ratePerMtok: 1_000_000, askedTokens: 100, leastTokens: 10 };
    const window = newWindow({ costLimitMicrousd: 80 });
    const grant = await loaded(newBudget({ costLimitMicrousd: 1_000 }), window);
    expect(await admit(redis, grant.ref, newAsk({ hold }))).toMatchObject({
      is: 'cost_limit_too_low',
      of: 2,
      neededMicrousd: 110,
    });
    expect(await admit(redis, grant.ref, newAsk({ hold: { ...hold, askedTokens: 70 } }))).toMatchObject({
      is: 'admitted',
      tokens: 70,
      microusdLeft: 920,
    });
  });

  test('that follows another starts at zero, although the stream has calls of the grant', async () => {
    const first = newWindow();
    const grant = await loaded(newBudget(), first);
    for (let i = 0; i < 3; i++) await charged(redis, grant, { costMicrousd: 7 });
    await end(first);
    const second = newWindow();
    expect(await loadGrant(redis, next(grant, second))).toBe('ok');
    expect(await of(second)).toEqual({ used: '0', settled: '0', held: '0' });
  });

  test('whose key alone was lost is restored from the stream', async () => {
    const window = newWindow();
    const grant = await loaded(newBudget(), window);
    for (let i = 0; i < 3; i++) await charged(redis, grant, { costMicrousd: 7 });
    await redis.del(keys.budget(partition, window.id));
    expect((await admit(redis, grant.ref, newAsk())).is).toBe('unknown');
    expect(await loadGrant(redis, grant)).toBe('ok');
    expect(await of(window)).toEqual({ used: '3', settled: '21', held: '0' });
  });

  test('is restored from the ledger after Redis has lost everything', async () => {
    const window = newWindow({ costLimitMicrousd: 100 });
    const grant = await loaded(newBudget(), window);
    await charged(redis, grant, { costMicrousd: 60 });
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    await loseAll(redis, partition);
    await drainAll(redis, ledger);
    expect(await loadGrant(redis, readGrant(ledger, grant))).toBe('ok');
    expect(await of(window)).toEqual({ used: '1', settled: '60', held: '0' });
    expect(await admit(redis, grant.ref, newAsk({ holdMicrousd: 41 }))).toMatchObject({ of: 2 });
  });

  test('keeps changed limits if a load had read Postgres before the change', async () => {
    partition = await openPartition(redis);
    const window = newWindow({ maxUses: 9 });
    const grant = grantOf(newBudget(), window);
    await changeLimits(redis, partition, { ...window, revision: 2, maxUses: 1 }, window.window?.endsMs);
    expect(await loadGrant(redis, grant)).toBe('stale');
    expect(await loadGrant(redis, next(grant, { ...window, revision: 2, maxUses: 1 }))).toBe('ok');
    await admitted(redis, grant);
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'uses_exhausted', of: 2 });
  });
});
