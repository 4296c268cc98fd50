import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DISASTERS } from './disasters.ts';
import { canStrike, type Disasters, openDisasters } from './strike-all.ts';

// Makes servers of its own to kill: where servers are to be used at all, and their programs are here.
const wanted = canStrike && Boolean(process.env.TEST_DATABASE_URL);

describe.skipIf(!wanted)('calls of random cost on one cost_limit, in processes of their own', () => {
  let disasters: Disasters;
  beforeAll(async () => {
    disasters = await openDisasters(2, 20_261_121);
  });
  afterAll(() => disasters.close());

  test.each(DISASTERS)('$name: the cap holds and the ledger has every call once', async (disaster) => {
    const { violations, reckoning, samples } = await disasters.strike(disaster);
    expect(violations).toEqual([]);
    expect(reckoning.rows).toBeGreaterThan(20);
    expect(samples.count).toBeGreaterThan(20);
  });
});
