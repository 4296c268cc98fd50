import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { eventually } from '../harness/eventually.ts';
import type { BillingProvider } from './billing-provider.ts';
import type { Disaster } from './disasters.ts';
import { call, modelName, type Outcome, randomCall } from './load.ts';
import { seeded } from './random.ts';
import { potOf, type Reckoning, reckon, rowsOf } from './reckon.ts';
import { refOf, type Samples, startSampler } from './sample.ts';
import type { World } from './world.ts';

/** One disaster, and what came of the calls under it. */
export type Struck = {
  readonly disaster: string;
  readonly limit: number;
  readonly calls: number;
  readonly statuses: ReadonlyMap<string, number>;
  readonly samples: Samples;
  readonly reckoning: Reckoning;
  /** What was held by calls that began between the loss and its end: the bound that is stated for it. */
  readonly lossBound: number | undefined;
  readonly violations: readonly string[];
};

type Options = {
  readonly world: World;
  readonly provider: BillingProvider;
  readonly disaster: Disaster;
  readonly seconds: number;
  readonly seed: number;
  /** Numbers of the models that this disaster's calls may use. */
  readonly from: number;
  readonly most: number;
  readonly limit: number;
};

const LANES = 24;

/** Calls, one after another on each of many lanes, while the disaster strikes; then the books are compared. */
export async function strike(options: Options): Promise<Struck> {
  const { world, provider, disaster, seconds, seed, from, most, limit } = options;
  const url = await world.issue({
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: 'sk-real',
    cost_limit: limit,
  });
  const ref = await refOf(world.db, url);
  const sampler = startSampler(world.redis, ref);
  const ends = Date.now() + seconds * 1000;
  const over = () => Date.now() > ends;
  const random = seeded(seed);
  const outcomes: Outcome[] = [];
  let next = from;
  const lane = async (i: number) => {
    const own = url.replace(world.gatewayUrls[0], world.gatewayUrls[i % 2] ?? '');
    while (!over() && next < from + most) {
      const outcome = await call(own, randomCall(modelName(next++), random));
      outcomes.push(outcome);
      if (outcome.status !== 200) await sleep(random.int(5, 60));
    }
  };
  await Promise.all([disaster.strike(world, over), ...Array.from({ length: LANES }, (_, i) => lane(i))]);
  await quiet(world, ref.partition);
  await sampler.stop();
  const { samples } = sampler;
  const rows = await rowsOf(world.db, ref.id);
  const billed = new Map(
    [...provider.billed].filter(([model]) => model >= modelName(from) && model < modelName(from + most)),
  );
  const reckoning = reckon({ billed, rows, held: samples.held });
  const pot = await potOf(world.db, ref.potIds[0] ?? '');
  const began = disaster.began?.() ?? 0;
  const lossBound = disaster.loses
    ? [...samples.held.values()].reduce(
        (sum, each) => sum + (each.firstSeenMs > began - 200 ? each.amount : 0),
        0,
      )
    : undefined;
  const found = { samples, reckoning, limit, settled: pot.settledMicrousd, lossBound };
  return {
    disaster: disaster.name,
    limit,
    calls: outcomes.length,
    statuses: countOf(outcomes),
    samples,
    reckoning,
    lossBound,
    violations: violationsOf(found),
  };
}

/** Until no call is held any more and the ledger has taken everything. */
async function quiet({ redis }: World, partition: number): Promise<void> {
  await eventually(async () => {
    const [held, left] = await Promise.all([
      redis.zcard(keys.leases(partition)),
      redis.xlen(keys.usage(partition)),
    ]).catch(() => [1, 1]);
    return held === 0 && left === 0 ? true : undefined;
  }, 60_000);
  // The drainer trims after its commit, so an empty stream is in Postgres.
}

type Found = {
  readonly samples: Samples;
  readonly reckoning: Reckoning;
  readonly limit: number;
  readonly settled: number;
  readonly lossBound: number | undefined;
};

function violationsOf({ samples, reckoning, limit, settled, lossBound }: Found): string[] {
  const faults: string[] = [];
  if (reckoning.ledgerMicrousd !== settled)
    faults.push(`the ledger's rows come to ${reckoning.ledgerMicrousd}, its pot to ${settled}`);
  if (lossBound !== undefined) {
    const beyond = reckoning.billedMicrousd - limit;
    if (beyond > lossBound) faults.push(`${beyond} beyond the limit, ${lossBound} stated`);
    return [...faults, ...reckoning.violations];
  }
  if (samples.over > 0) faults.push(`above the limit in ${samples.over} samples, up to ${samples.most}`);
  if (reckoning.billedMicrousd > limit) faults.push(`the provider billed ${reckoning.billedMicrousd}`);
  if (reckoning.ledgerMicrousd > limit) faults.push(`the ledger has ${reckoning.ledgerMicrousd}`);
  for (const model of reckoning.missing) faults.push(`${model}: not in the ledger`);
  return [...faults, ...reckoning.violations];
}

function countOf(outcomes: readonly Outcome[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { status, code } of outcomes) {
    const name = code ?? (status === 0 ? 'broken' : String(status));
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
