import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DISASTERS, SPENT_TWICE } from './disasters.ts';
import { canStrike, type Disasters, openDisasters } from './strike-all.ts';

// Makes servers of its own to kill: where servers are to be used at all, and their programs are here.
const wanted = canStrike && Boolean(process.env.TEST_DATABASE_URL);

describe.skipIf(!wanted)('calls of random cost under one cost_limit, in separate processes', () => {
  let disasters: Disasters;
  beforeAll(async () => {
    disasters = await openDisasters(2, 20_261_121);
  });
  afterAll(() => disasters.close());

  const others = DISASTERS.filter((disaster) => disaster !== SPENT_TWICE);
  test.each(others)('$name: the cap is kept, and the ledger has every call once', async (disaster) => {
    const { kills, violations, reckoning, samples } = await disasters.strike(disaster);
    expect(violations).toEqual([]);
    expect(kills > 0).toBe(disaster.name !== 'none');
    expect(reckoning.rows).toBeGreaterThan(20);
    expect(samples.count).toBeGreaterThan(20);
  });

  test('Redis fails over and a limit is spent before and after: the excess is within the documented bound', async () => {
    const { violations, loss } = await disasters.strike(SPENT_TWICE);
    expect(violations).toEqual([]);
    expect(loss?.beyondMicrousd).toBeGreaterThan(0);
    expect(loss?.beyondMicrousd).toBeLessThanOrEqual(loss?.boundMicrousd ?? 0);
  });
});
