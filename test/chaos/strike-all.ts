import { hasPostgres } from '../issuer/postgres-server.ts';
import { startBillingProvider } from './billing-provider.ts';
import type { Concurrent } from './concurrent.ts';
import { DISASTERS, failedOver } from './disasters.ts';
import { providersOf, randomPrices } from './load.ts';
import { hasRedisServer } from './redis-server.ts';
import { type Struck, strike } from './strike.ts';
import { startWorld } from './world.ts';

/** Whether servers can be made that may be killed. */
export const canStrike = hasRedisServer && hasPostgres;

/** Models, and so calls, that one disaster may use. */
const MOST_CALLS = 8_000;
/** Microdollars of the limit for each second of load: some disasters reach it, so that the end is seen too. */
const LIMIT_A_SECOND = 1_000_000;

/** Each disaster in turn, under load. */
export async function strikeAll(seconds: number, seed: number): Promise<Struck[]> {
  const prices = randomPrices(MOST_CALLS * DISASTERS.length, seed);
  const provider = await startBillingProvider({ prices, seed });
  const world = await startWorld(providersOf(provider.url, prices));
  const struck: Struck[] = [];
  try {
    for (const [i, disaster] of DISASTERS.entries()) {
      const from = i * MOST_CALLS;
      const limit = LIMIT_A_SECOND * seconds;
      struck.push(
        await strike({ world, provider, disaster, seconds, seed: seed + i, from, most: MOST_CALLS, limit }),
      );
    }
    return struck;
  } finally {
    await world.close();
    for (const server of failedOver) await server.remove();
    await provider.close();
  }
}

/** What the concurrent calls came to, one line each. */
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
    'calls',
    'rows',
    'expired',
    'samples',
    'most/limit',
    'billed',
    'ledger',
    'missing',
    'wrong',
  ];
  const rows = all.map(({ disaster, calls, limit, samples, reckoning, violations }) => [
    disaster,
    calls,
    reckoning.rows,
    reckoning.expired,
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
  const losses = all
    .filter(({ lossBound }) => lossBound !== undefined)
    .map(
      ({ disaster, reckoning, limit, lossBound }) =>
        `${disaster}: spent ${reckoning.billedMicrousd} of ${limit}; ${reckoning.missing.length} calls not billed; at most ${lossBound} beyond is stated`,
    );
  const wrong = all.flatMap(({ disaster, violations }) =>
    violations.map((each) => `VIOLATION ${disaster}: ${each}`),
  );
  return [...table, '', ...outcomes, ...losses, ...wrong];
}
