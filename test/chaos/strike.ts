import { setTimeout as sleep } from 'node:timers/promises';
import { keys, readFigures } from '@presign/limits';
import { eventually } from '../harness/eventually.ts';
import type { Billed } from './billing-provider.ts';
import type { Disaster } from './disasters.ts';
import type { Books, Kind } from './kind.ts';
import { answered, modelName, type Outcome } from './load.ts';
import { seeded } from './random.ts';
import { budgetOf, type Reckoning, reckon, rowsOf } from './reckon.ts';
import { refOf, type Samples, startSampler } from './sample.ts';
import type { World } from './world.ts';

/** One disaster, and what came of the calls under it. */
export type Struck = {
  readonly disaster: string;
  readonly limit: number;
  readonly calls: number;
  /** How often something was killed. */
  readonly kills: number;
  readonly statuses: ReadonlyMap<string, number>;
  readonly samples: Samples;
  readonly reckoning: Reckoning;
  readonly loss: Loss | undefined;
  readonly violations: readonly string[];
};

/** The writes that Redis acknowledged and lost. */
export type Loss = {
  /** From the first lost write until it was detected. */
  readonly ms: number;
  /** The cost of the calls that came in that time: the stated bound of the money spent beyond the limit. */
  readonly boundMicrousd: number;
  /** Calls that no ledger has; each of them came in that time. */
  readonly notBilled: number;
  readonly notBilledMicrousd: number;
  /** Spent beyond the limit, by the provider's books. */
  readonly beyondMicrousd: number;
};

type Options = {
  readonly world: World;
  readonly kind: Kind;
  readonly provider: Books;
  readonly disaster: Disaster;
  readonly seconds: number;
  readonly seed: number;
  /** Numbers of the models that this disaster's calls may use. */
  readonly from: number;
  readonly most: number;
  readonly limit: number;
};

/** So many calls must be answered, and states be seen, before a disaster is over: on a busy machine it lasts longer. */
const LEAST = 20;
const PATIENCE_MS = 30_000;

/** Calls, one after another on each of many lanes, while the disaster strikes; then the books are compared. */
export async function strike(options: Options): Promise<Struck> {
  const { world, kind, provider, disaster, seconds, seed, from, most, limit } = options;
  const strikeIt = await disaster.prepare(world);
  const url = await world.issue({
    provider: 'openai',
    client_api_key: 'sk-real',
    cost_limit: limit,
    ...kind.ask,
  });
  const ref = await refOf(world.db, url);
  const sampler = startSampler(world.redis, ref);
  const ends = Date.now() + seconds * 1000;
  const random = seeded(seed);
  const outcomes: Outcome[] = [];
  const isSeen = () => sampler.samples.count > LEAST && answered(outcomes) > LEAST;
  const over = () => Date.now() > ends && (isSeen() || Date.now() > ends + PATIENCE_MS);
  let next = from;
  let done = false;
  const lane = async (i: number) => {
    const own = url.replace(world.gatewayUrls[0], world.gatewayUrls[i % 2] ?? '');
    const caller = kind.newCaller();
    while (!(over() && done) && next < from + most) {
      const outcome = await caller.call(own, modelName(next++), random);
      outcomes.push(outcome);
      if (outcome.status !== 200) await sleep(random.int(20, 120));
    }
    caller.close();
  };
  const lanes = Array.from({ length: kind.lanes }, (_, i) => lane(i));
  const struck = strikeIt({ over, outcomes }).finally(() => {
    done = true;
  });
  const [{ kills, lostSince }] = await Promise.all([struck, ...lanes]);
  await quiet(world, ref.partition);
  await sampler.stop();
  const { samples } = sampler;
  const rows = await rowsOf(world.db, ref.id);
  const billed = new Map(
    [...provider.billed].filter(([model]) => model >= modelName(from) && model < modelName(from + most)),
  );
  const reckoning = reckon({ billed, rows, held: samples.held, nameOf: provider.nameOf });
  const budget = await budgetOf(world.db, ref.budgetIds[0] ?? '');
  const [figures] = await readFigures(world.redis, ref);
  const { activeCalls: active = 0 } = figures ?? {};
  const found = { samples, reckoning, limit, active, settled: budget.settledMicrousd };
  const judged =
    lostSince === undefined
      ? { loss: undefined, violations: violationsOf(found) }
      : judgeLoss(found, billed, lostSince);
  const statuses = countOf(outcomes);
  const { name } = disaster;
  return { disaster: name, limit, calls: outcomes.length, kills, statuses, samples, reckoning, ...judged };
}

/** Until no call is held any more and the ledger has taken everything. */
async function quiet({ redis }: World, partition: number): Promise<void> {
  await eventually(async () => {
    const [held, left] = await Promise.all([
      redis.zcard(keys.leases(partition)),
      redis.xlen(keys.usage(partition)),
    ]).catch(() => [1, 1]);
    // The drainer trims after its commit, so what has left the stream is in Postgres.
    return held === 0 && left === 0 ? true : undefined;
  }, 60_000);
}

type Found = {
  readonly samples: Samples;
  readonly reckoning: Reckoning;
  readonly limit: number;
  readonly settled: number;
  /** Places among the calls under way that are taken when no call is. */
  readonly active: number;
};

function violationsOf({ samples, reckoning, limit, settled, active }: Found): string[] {
  const faults: string[] = [];
  if (active !== 0) faults.push(`${active} places are not free`);
  const { ledgerMicrousd, billedMicrousd } = reckoning;
  if (ledgerMicrousd !== settled)
    faults.push(`the ledger's rows come to ${ledgerMicrousd}, its budget to ${settled}`);
  if (samples.over > 0) faults.push(`above the limit in ${samples.over} samples, up to ${samples.most}`);
  if (billedMicrousd > limit) faults.push(`the provider billed ${billedMicrousd}`);
  if (ledgerMicrousd > limit) faults.push(`the ledger has ${ledgerMicrousd}`);
  for (const model of reckoning.missing) faults.push(`${model}: not in the ledger`);
  return [...faults, ...reckoning.violations];
}

/** A call may be this long under way, in ms: one that came before the loss may have settled in it. */
const CALL_MS = 250;

/** A loss may cost what was admitted from its first write until it was detected, and no more. */
function judgeLoss(found: Found, billed: Books['billed'], since: number) {
  const { samples, reckoning, limit, active } = found;
  const [, ...later] = samples.epochs.values(); // the first is the one that the calls began in
  const detected = Math.min(...later.filter((at) => at > since));
  const inLoss = ({ atMs }: Billed) => atMs > since - CALL_MS && atMs < detected + CALL_MS;
  const sum = (calls: readonly Billed[]) => calls.reduce((all, { microusd }) => all + microusd, 0);
  const bound = sum([...billed.values()].filter(inLoss));
  const lost = reckoning.missing.flatMap((model) => billed.get(model) ?? []);
  const beyond = Math.max(0, reckoning.billedMicrousd - limit);
  const violations = [...reckoning.violations];
  if (active !== 0) violations.push(`${active} places are not free`);
  if (!Number.isFinite(detected)) violations.push('the loss was not detected');
  if (beyond > bound) violations.push(`${beyond} beyond the limit, ${bound} stated`);
  for (const call of lost.filter((each) => !inLoss(each)))
    violations.push(`a call that came ${call.atMs - since} ms after the loss began is not in the ledger`);
  const loss: Loss = {
    ms: detected - since,
    boundMicrousd: bound,
    notBilled: lost.length,
    notBilledMicrousd: sum(lost),
    beyondMicrousd: beyond,
  };
  return { loss, violations };
}

function countOf(outcomes: readonly Outcome[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { status, code } of outcomes) {
    const name = code ?? (status === 0 ? 'broken' : String(status));
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
