import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DISASTERS } from './disasters.ts';
import { REALTIME, SOCKETS } from './kinds.ts';
import { canStrike, type Disasters, openDisasters } from './strike-all.ts';

// Makes servers of its own to kill: where servers are to be used at all, and their programs are here.
const wanted = canStrike && Boolean(process.env.TEST_DATABASE_URL);

/** Realtime has what its protocol may change: the ends of its turns. */
const STRUCK = [
  {
    protocol: 'Responses',
    kind: SOCKETS,
    strikes: [
      'gateways killed',
      'issuer killed',
      'Redis killed (appendfsync everysec)',
      'Redis fails over to a lagging replica',
    ],
  },
  {
    protocol: 'Realtime',
    kind: REALTIME,
    strikes: ['gateways killed', 'Redis killed (appendfsync everysec)'],
  },
];

const titled = 'turns of random cost on many sockets of $protocol with one cost_limit';

describe.skipIf(!wanted).each(STRUCK)(titled, ({ kind, strikes }) => {
  let disasters: Disasters;
  beforeAll(async () => {
    disasters = await openDisasters(2, 20_261_129, kind);
  });
  afterAll(() => disasters.close());

  test.each(DISASTERS.filter(({ name }) => strikes.includes(name)))(
    '$name: the cap is kept, the ledger has every turn once, and all places become free',
    async (disaster) => {
      const { kills, violations, reckoning, samples } = await disasters.strike(disaster);
      expect(violations).toEqual([]);
      expect(kills).toBeGreaterThan(0);
      // A lagging replica never got some of them.
      expect(reckoning.rows + reckoning.missing.length).toBeGreaterThan(20);
      expect(samples.count).toBeGreaterThan(20);
      // All turns end at once by the lease of a gateway that was killed.
      if (disaster.name === 'gateways killed') expect(reckoning.expired).toBeGreaterThan(0);
    },
  );
});
