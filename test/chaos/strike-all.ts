import { hasPostgres } from '../issuer/postgres-server.ts';
import type { Concurrent } from './concurrent.ts';
import { DISASTERS, type Disaster } from './disasters.ts';
import type { Kind } from './kind.ts';
import { POSTS } from './kinds.ts';
import { providersOf, randomPrices } from './load.ts';
import { hasRedisServer } from './redis-server.ts';
import { type Struck, strike } from './strike.ts';
import { startWorld } from './world.ts';

/** Whether servers can be made that may be killed. */
export const canStrike = hasRedisServer && hasPostgres;

/** Models, and so calls, that each second of a disaster may use. */
const CALLS_A_SECOND = 1_200;
/** A load goes on until its disaster is over; for about so many seconds there are models. */
const OVERTIME_SECONDS = 5;

/** One world, to be struck again and again. */
export type Disasters = {
  /** Once each: every disaster has models, and so calls, of its own. */
  readonly strike: (disaster: Disaster) => Promise<Struck>;
  readonly close: () => Promise<void>;
};

/** @param seconds how long each disaster lasts */
export async function openDisasters(seconds: number, seed: number, kind: Kind = POSTS): Promise<Disasters> {
  const most = CALLS_A_SECOND * (seconds + OVERTIME_SECONDS);
  const prices = randomPrices(most * DISASTERS.length, seed);
  const provider = await kind.startProvider({ prices, seed });
  const places = { env: kind.env };
  const world = await startWorld(providersOf(provider.url, prices), places).catch(async (error: unknown) => {
    await provider.close();
    throw error;
  });
  return {
    strike: (disaster) => {
      const from = DISASTERS.indexOf(disaster) * most;
      const limit = disaster.limit ?? kind.limitASecond * seconds;
      return strike({ world, kind, provider, disaster, seconds, limit, seed: seed + from, from, most });
    },
    close: async () => {
      await world.close();
      await provider.close();
    },
  };
}

/** The results of the concurrent calls, one line each. */
export function tellConcurrent(run: Concurrent): string[] {
  const { limit, outcomes, samples, reckoning, settledMicrousd } = run;
  const percent = (microusd: number) => `${((microusd / limit) * 100).toFixed(3)} %`;
  return [
    `calls at once                      ${outcomes.length}, over 2 gateways, in ${run.seconds.toFixed(1)} s`,
    `answered / refused with 402        ${outcomes.filter(({ status }) => status === 200).length} / ${outcomes.filter(({ status }) => status === 402).length}`,
    `held out (429) and asked again     ${outcomes.reduce((sum, { tries }) => sum + tries - 1, 0)} times`,
    `limit                              ${limit} microdollars`,
    `most settled + held in any sample  ${samples.most} = ${percent(samples.most)}, in ${samples.count} samples, ${samples.over} above`,
    `settled when the 402 came          ${settledMicrousd} = ${percent(settledMicrousd)}`,
    `calls in the provider's books      ${run.billed.size}, ${reckoning.missing.length} of them not in the ledger`,
    `provider's books / ledger          ${reckoning.billedMicrousd} / ${reckoning.ledgerMicrousd} microdollars`,
    ...reckoning.violations.map((violation) => `VIOLATION ${violation}`),
  ];
}

/** The table of all disasters, one line each. */
export function tellStruck(all: readonly Struck[]): string[] {
  const head = [
    'disaster',
    'kills',
    'calls',
    'rows',
    'expired',
    'backlog',
    'samples',
    'most/limit',
    'billed',
    'ledger',
    'missing',
    'wrong',
  ];
  const rows = all.map(({ disaster, kills, calls, limit, samples, reckoning, violations }) => [
    disaster,
    kills,
    calls,
    reckoning.rows,
    reckoning.expired,
    samples.backlog,
    samples.count,
    `${((samples.most / limit) * 100).toFixed(2)}%`,
    reckoning.billedMicrousd,
    reckoning.ledgerMicrousd,
    reckoning.missing.length,
    violations.length,
  ]);
  const table = [head, ...rows].map((row) =>
    row.map((cell, i) => (i === 0 ? String(cell).padEnd(40) : String(cell).padStart(11))).join(''),
  );
  const outcomes = all.map(
    ({ disaster, statuses }) => `${disaster}: ${[...statuses].map(([name, n]) => `${name} ${n}`).join(', ')}`,
  );
  const losses = all.flatMap(({ disaster, limit, loss }) =>
    loss === undefined
      ? []
      : [
          `${disaster}: writes of ${loss.ms} ms were lost; ${loss.notBilled} calls (${loss.notBilledMicrousd}) not billed,`,
          `  ${loss.beyondMicrousd} spent beyond the limit of ${limit}; ${loss.boundMicrousd} is the bound`,
        ],
  );
  const wrong = all.flatMap(({ disaster, violations }) =>
    violations.map((each) => `VIOLATION ${disaster}: ${each}`),
  );
  return [...table, '', ...outcomes, ...losses, ...wrong];
}
