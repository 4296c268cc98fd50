/**
 * Measures what a call costs in Redis and in the gateway's client: `admit`, then `settle`. Then what the first call of a
 * URL costs in Redis (`load`) while the ledger is behind by so many calls.
 *
 *     REDIS_URL=redis://127.0.0.1:6379 npx tsx scripts.ts [other packages/limits/src/index.ts …]
 *
 * Another version of the package, named by its path, is measured in turn with this one, round by round.
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import * as limits from '@presign/limits';

type Limits = typeof limits;
type Figures = { admitUs: number; settleUs: number; clientUs: number };

const ROUNDS = Number(process.env.ROUNDS ?? 15);
const CALLS = 5_000;
const AT_ONCE = 64;
/** URLs loaded at each length of the stream. */
const OPENED = 50;

const LIMITED = {
  revision: 1,
  maxUses: 10_000_000,
  used: 0,
  costLimitMicrousd: 1_000_000_000,
  settledMicrousd: 0,
  endsWithGrant: true,
};
const SHARED = {
  tokenLimit: 1_000_000_000_000,
  endsWithGrant: false,
  window: { startsMs: 0, endsMs: Date.now() + 86_400_000 },
};
const HOLD = { fixedMicrousd: 10, ratePerMtok: 600_000, askedTokens: 100, leastTokens: 16 };
const RECORD = '{"acc":"0","prv":"openai","beg":1}';

const redis = limits.connectRedis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', console.error);
await limits.redisReady(redis);
const versions = new Map<string, Limits>([['this', limits]]);
for (const path of process.argv.slice(2)) versions.set(path, (await import(resolve(path))) as Limits);

// The URL's own, and then windows of shared ones.
for (const budgets of [1, 2, 3, 5, 9]) {
  const rounds = new Map<string, Figures[]>([...versions.keys()].map((name) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, version] of versions) {
      const figures = await measure(version, budgets);
      // The first round loads the scripts and warms the code up.
      if (round > 0) rounds.get(name)?.push(figures);
    }
  }
  for (const [name, all] of rounds) {
    const of = (figure: keyof Figures) => spread(all.map((each) => each[figure]));
    console.log(`${budgets} budget(s), ${name}: lowest and median of ${ROUNDS} rounds
  admit ${of('admitUs')} µs, settle ${of('settleUs')} µs in Redis; client ${of('clientUs')} µs of CPU a call`);
  }
}
for (const backlog of [0, 10_000, 99_000]) {
  for (const [name, version] of versions) {
    const loadUs = await measureOpen(version, backlog);
    console.log(`${backlog} calls behind, ${name}: load ${loadUs.toFixed(1)} µs in Redis`);
  }
}
redis.disconnect();

/** A partition that admits calls. */
async function newPartition({ reopen, drain }: Limits): Promise<number> {
  const partition = randomInt(1_000, 2 ** 40);
  await reopen(redis, partition, 1);
  await drain(redis, { partition, epoch: 1, lastId: '0-0' }, 1);
  return partition;
}

async function openOne({ loadGrant }: Limits, partition: number, budgets: number): Promise<limits.GrantRef> {
  const ref = {
    id: randomUUID(),
    partition,
    accountId: randomUUID(),
    credentialId: randomUUID(),
    budgetIds: Array.from({ length: budgets }, () => randomUUID()),
  };
  await loadGrant(redis, {
    ref,
    epoch: 1,
    lastId: '0-0',
    expiresAtMs: Date.now() + 60_000,
    signedUntilMs: undefined,
    credential: { version: 1, sealed: 'k1.sealed' },
    budgets: ref.budgetIds.map((id, i) => ({ ...LIMITED, id, ...(i > 0 && SHARED) })),
    doc: '{}',
  });
  return ref;
}

/** Microseconds of `load` in Redis, with so many calls in the stream that the ledger does not have. */
async function measureOpen(version: Limits, backlog: number): Promise<number> {
  const partition = await newPartition(version);
  const stream = version.keys.usage(partition);
  const entry = [
    'hold',
    'h',
    'grant',
    'g',
    'budgets',
    randomUUID(),
    'uses',
    '1',
    'cost',
    '7',
    'record',
    RECORD,
  ];
  for (let done = 0; done < backlog; done += 1_000) {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 1_000; i++) pipeline.xadd(stream, '*', ...entry);
    await pipeline.exec();
  }
  const loadUs = await timed(async () => {
    for (let i = 0; i < OPENED; i++) await openOne(version, partition, 1);
  });
  await redis.del(stream);
  return loadUs;
}

async function measure(version: Limits, budgets: number): Promise<Figures> {
  const { admit, settle, keys } = version;
  const ref = await openOne(version, await newPartition(version), budgets);
  const holds = Array.from({ length: CALLS }, () => randomBytes(16).toString('hex'));
  const cpu = process.cpuUsage();
  const admitUs = await timed(() =>
    each(holds, async (holdId) => {
      const { is } = await admit(redis, ref, {
        holdId,
        uses: 1,
        hold: HOLD,
        worstTokens: 200,
        leaseMs: 60_000,
        record: RECORD,
      });
      if (is !== 'admitted') throw new Error(is);
    }),
  );
  const settleUs = await timed(() =>
    each(holds, (holdId) =>
      settle(redis, ref, { holdId, epoch: '1', uses: 1, costMicrousd: 7, usedTokens: 120, record: RECORD }),
    ),
  );
  const { user, system } = process.cpuUsage(cpu);
  await redis.del(keys.usage(ref.partition));
  return { admitUs, settleUs, clientUs: (user + system) / CALLS };
}

/** Microseconds that Redis spent on each script meanwhile, by its own count. */
async function timed(run: () => Promise<void>): Promise<number> {
  await redis.config('RESETSTAT');
  await run();
  const stats = await redis.info('commandstats');
  return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1]);
}

async function each(holds: readonly string[], run: (holdId: string) => Promise<unknown>): Promise<void> {
  const left = holds.values();
  const worker = async () => {
    for (const holdId of left) await run(holdId);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

function spread(figures: number[]): string {
  const sorted = figures.sort((a, b) => a - b);
  return [sorted[0], sorted[sorted.length >> 1]].map((figure) => figure?.toFixed(1)).join(' ');
}
