import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Admission,
  admit,
  type BudgetState,
  changeLimits,
  charge,
  checkGrant,
  expire,
  type GrantState,
  loadGrant,
  type RedisClient,
  readFigures,
  renew,
  reopen,
  settle,
  UNHEARD,
} from '../src/index.ts';
import { loadedGrant, newAsk, newBudget, newCharge, newGrant, newOutcome, tally } from './grant.ts';
import { drainRound, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, openPartition } from './redis.ts';
import { BucketModel, PARTS, TokenClock } from './token-bucket.ts';

describe.each(engines)('tokens by the minute on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  const loaded = async (tokensPerMinute: number, more: object = {}) =>
    loadedGrant(redis, await openPartition(redis), { tokensPerMinute, ...more });
  const ask = ({ ref }: GrantState, worstTokens: number | undefined, more: object = {}) =>
    admit(redis, ref, newAsk({ worstTokens, ...more }));
  const take = async (grant: GrantState, worstTokens: number) => {
    const asked = newAsk({ worstTokens });
    expect((await admit(redis, grant.ref, asked)).is).toBe('admitted');
    return asked.holdId;
  };
  const end = (grant: GrantState, holdId: string, usedTokens: number | undefined, more: object = {}) =>
    settle(redis, grant.ref, newOutcome(holdId, { usedTokens, ...more }));
  /** Tokens that are left, in a bucket that gains one only after many seconds. */
  const left = async (grant: GrantState) => {
    const answer = await ask(grant, 0);
    return answer.is === 'admitted' ? answer.rateLimits[0]?.left : undefined;
  };

  test('simultaneous calls over two gateways never use more than a full bucket and its refill', async () => {
    const other = await engine.connect();
    const { ref } = await loaded(200);
    const asks = Array.from({ length: 100 }, (_, i) =>
      admit(i % 2 ? redis : other, ref, newAsk({ worstTokens: 10 })),
    );
    const said = tally(await Promise.all(asks));
    // 20 at once, and one more in each 3 s that a busy machine may take.
    expect(said.admitted).toBeGreaterThanOrEqual(20);
    expect(said.admitted).toBeLessThanOrEqual(23);
    expect((said.admitted ?? 0) + (said.rate_limited ?? 0)).toBe(100);
  });

  test('an answer says how many tokens are left, and a refusal when to try again', async () => {
    const grant = await loaded(60);
    expect(await ask(grant, 45)).toMatchObject({
      is: 'admitted',
      rateLimits: [{ name: 'tokens_per_minute', limit: 60, left: 15, resetMs: 45_000 }],
    });
    const refused = await ask(grant, 30);
    expect(refused).toMatchObject({ is: 'rate_limited', needed: 30, rateLimit: { limit: 60 } });
    const { waitMs } = refused as Extract<Admission, { waitMs: number }>;
    expect(waitMs).toBeGreaterThan(5_000);
    expect(waitMs).toBeLessThanOrEqual(15_000);
    const clock = new TokenClock(redis, grant.ref);
    await clock.wait(waitMs);
    expect((await ask(grant, 30)).is).toBe('admitted');
  });

  test('a call that may use more than the limit never passes, and takes nothing', async () => {
    const grant = await loaded(2);
    expect(await ask(grant, 3)).toEqual({ is: 'token_rate_too_low', limit: 2, needed: 3 });
    expect(await left(grant)).toBe(2);
    expect((await ask(grant, 2)).is).toBe('admitted');
  });

  test('a call without a bound does not pass, unless the URL has no such limit', async () => {
    expect((await ask(await loaded(2), undefined)).is).toBe('unbounded');
    const free = await loadedGrant(redis, await openPartition(redis));
    expect(await ask(free, undefined)).toMatchObject({ is: 'admitted', rateLimits: [] });
    expect((await readFigures(redis, free.ref))[0]?.tokensPerMinute).toBeNull();
    expect((await readFigures(redis, (await loaded(2)).ref))[0]?.tokensPerMinute).toBe(2);
  });

  test('a settle returns the unused tokens once, and unknown usage returns none', async () => {
    const grant = await loaded(3);
    const known = await take(grant, 3);
    for (const _ of [1, 2]) await end(grant, known, 1);
    expect(await left(grant)).toBe(2);
    await end(grant, await take(grant, 2), undefined);
    expect(await left(grant)).toBe(0);
  });

  test('if a limit is removed and set again during a call, its settle returns tokens to the limit that it finds', async () => {
    const grant = await loaded(5);
    const [budget] = grant.budgets as [BudgetState];
    const change = (revision: number, tokensPerMinute: number | null) =>
      changeLimits(redis, grant.ref.partition, { ...budget, revision, tokensPerMinute }, grant.expiresAtMs);
    const [first, second] = [await take(grant, 2), await take(grant, 2)];
    await change(2, null);
    expect(await ask(grant, undefined)).toMatchObject({ is: 'admitted', rateLimits: [] });
    await end(grant, first, 0);
    await change(3, 5);
    expect(await left(grant)).toBe(1);
    await end(grant, second, 0);
    expect(await left(grant)).toBe(3);
    await change(4, 2);
    expect(await left(grant)).toBe(2);
    expect((await ask(grant, undefined)).is).toBe('unbounded');
  });

  test('an expired lease returns nothing, and neither does a settle after it', async () => {
    const grant = await loaded(3);
    const holdId = await take(grant, 3);
    await renew(redis, grant.ref.partition, -1_000, [holdId]);
    expect(await expire(redis, grant.ref.partition, holdId)).toBe(true);
    await end(grant, holdId, 0);
    expect(await left(grant)).toBe(0);
  });

  test('tokens that the bucket has refilled since are not returned again', async () => {
    const grant = await loaded(60);
    const clock = new TokenClock(redis, grant.ref);
    const slow = await take(grant, 60);
    await clock.wait(60_000);
    // Full again. Had the first call used nothing, the bucket would have been full all the time.
    await take(grant, 60);
    await end(grant, slow, 0);
    expect(await left(grant)).toBeLessThanOrEqual(3);
    const half = await loaded(60);
    const halfClock = new TokenClock(redis, half.ref);
    const call = await take(half, 60);
    await halfClock.wait(20_000);
    await take(half, 20);
    await end(half, call, 10);
    // The bucket has gained 20 since, of the 50 that it did not use.
    const now = await left(half);
    expect(now).toBeGreaterThanOrEqual(30);
    expect(now).toBeLessThanOrEqual(33);
  });

  test('a repeated admission takes nothing more, and an unanswered admission is refunded', async () => {
    const grant = await loaded(5);
    const asked = newAsk({ worstTokens: 4 });
    for (const _ of [1, 2]) expect((await admit(redis, grant.ref, asked)).is).toBe('admitted');
    expect(await left(grant)).toBe(1);
    await end(grant, asked.holdId, 0, { epoch: UNHEARD, uses: 0 });
    expect(await left(grant)).toBe(5);
  });

  test('a refused call, a check and a charge take no tokens', async () => {
    const grant = await loaded(5, { costLimitMicrousd: 10 });
    expect((await ask(grant, 4, { holdMicrousd: 11 })).is).toBe('cost_limit_too_low');
    expect((await checkGrant(redis, grant.ref, { uses: 1, spends: true })).is).toBe('admitted');
    expect((await charge(redis, grant.ref, newCharge())).is).toBe('admitted');
    expect(await left(grant)).toBe(5);
  });

  test('a call that used more than its hold leaves a debt of a minute at most', async () => {
    const grant = await loaded(60);
    const clock = new TokenClock(redis, grant.ref);
    await end(grant, await take(grant, 1), 10_000);
    expect(await ask(grant, 1)).toMatchObject({ is: 'rate_limited', rateLimit: { left: 0 } });
    expect((await ask(grant, 0)).is).toBe('admitted');
    await clock.wait(61_000);
    expect((await ask(grant, 1)).is).toBe('admitted');
  });

  test('after the limit is lowered, a debt is at most a minute of the new limit', async () => {
    const grant = await loaded(60_000);
    const [budget] = grant.budgets as [BudgetState];
    await end(grant, await take(grant, 1), 1_000_000);
    const lower = { ...budget, revision: 2, tokensPerMinute: 6 };
    await changeLimits(redis, grant.ref.partition, lower, grant.expiresAtMs);
    const refused = (await ask(grant, 1)) as Extract<Admission, { waitMs: number }>;
    expect(refused.is).toBe('rate_limited');
    expect(refused.waitMs).toBeLessThanOrEqual(70_000);
    await new TokenClock(redis, grant.ref).wait(70_000);
    expect((await ask(grant, 1)).is).toBe('admitted');
  });

  test('a clock that goes back refills nothing, returns nothing, and delays no call', async () => {
    const grant = await loaded(60);
    const clock = new TokenClock(redis, grant.ref);
    const holdId = await take(grant, 60);
    await clock.wait(-3_600_000);
    expect((await ask(grant, 30)).is).toBe('rate_limited');
    await end(grant, holdId, 0);
    expect((await ask(grant, 30)).is).toBe('rate_limited');
    await clock.wait(30_000);
    expect((await ask(grant, 30)).is).toBe('admitted');
  });

  test('a hold of an older epoch returns nothing to the bucket of the new one', async () => {
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget({ tokensPerMinute: 5 }));
    await loadGrant(redis, grant);
    const holdId = await take(grant, 5);
    await reopen(redis, partition, 2);
    const ledger = newLedger(partition);
    ledger.cursor = { partition, epoch: 2, lastId: '0-0' };
    for (let rounds = 0; rounds < 5; rounds++) await drainRound(redis, ledger);
    const again = readGrant(ledger, grant);
    expect(await loadGrant(redis, again)).toBe('ok');
    expect(await left(again)).toBe(0);
    await new TokenClock(redis, grant.ref).wait(60_000);
    await take(again, 5);
    await end(again, holdId, 0);
    expect(await left(again)).toBe(0);
  });

  const RUNS = process.env.TEST_ALL ? 200 : 40;
  const at = fc.nat(20);
  const steps = fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.record({ do: fc.constant('admit' as const), share: fc.nat(110) }) },
      {
        weight: 5,
        arbitrary: fc.record({
          do: fc.constant('settle' as const),
          at,
          share: fc.option(fc.nat(100)),
        }),
      },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(70_000) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('again' as const, 'expire' as const), at }) },
    ),
    { maxLength: 40, size: 'max' },
  );

  test(
    'in any sequence the bucket is exact, and no minute gets more than a full bucket and its refill',
    () =>
      fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 100_000_000 }), steps, async (perMinute, schedule) => {
          const grant = await loaded(perMinute);
          const model = new BucketModel(perMinute, redis, grant.ref);
          for (const step of schedule) await model.take(step);
          model.expectEveryMinuteWithin();
        }),
        { numRuns: RUNS },
      ),
    120_000,
  );

  test('levels are whole numbers below 2^53', async () => {
    const grant = await loaded(1_000_000_000);
    const clock = new TokenClock(redis, grant.ref);
    await end(grant, await take(grant, 999_999_999), 1);
    expect((await clock.read())?.level).toSatisfy(Number.isSafeInteger);
    expect(1_000_000_000 * PARTS).toBeLessThan(Number.MAX_SAFE_INTEGER);
  });
});
