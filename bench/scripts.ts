/**
 * Measures what a call costs in Redis and in the gateway's client: `admit`, then `settle`.
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

const ROUNDS = 15;
const CALLS = 5_000;
const AT_ONCE = 64;

const LIMITED = {
  maxUses: 10_000_000,
  used: 0,
  costLimitMicrousd: 1_000_000_000,
  settledMicrousd: 0,
  callsPerMinute: null,
  endsWithGrant: true,
};
const HOLD = { fixedMicrousd: 10, ratePerMtok: 600_000, askedTokens: 100, leastTokens: 16 };
const RECORD = '{"acc":"0","prv":"openai","beg":1}';

const redis = limits.connectRedis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', console.error);
await limits.redisReady(redis);
const versions = new Map<string, Limits>([['this', limits]]);
for (const path of process.argv.slice(2)) versions.set(path, (await import(resolve(path))) as Limits);

for (const budgets of [1, 2]) {
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
redis.disconnect();

async function measure(
  { admit, settle, openGrant, reopen, drain, keys }: Limits,
  budgets: number,
): Promise<Figures> {
  const partition = randomInt(1_000, 2 ** 40);
  await reopen(redis, partition, 1);
  await drain(redis, { partition, epoch: 1, lastId: '0-0' }, 1);
  const ref = {
    id: randomUUID(),
    partition,
    credentialId: randomUUID(),
    budgetIds: Array.from({ length: budgets }, () => randomUUID()),
  };
  await openGrant(redis, {
    ref,
    epoch: 1,
    lastId: '0-0',
    expiresAtMs: Date.now() + 60_000,
    credential: { version: 1, sealed: 'k1.sealed' },
    budgets: ref.budgetIds.map((id) => ({ ...LIMITED, id })),
    doc: '{}',
  });
  const holds = Array.from({ length: CALLS }, () => randomBytes(16).toString('hex'));
  const cpu = process.cpuUsage();
  const admitUs = await timed(() =>
    each(holds, async (holdId) => {
      const { is } = await admit(redis, ref, {
        holdId,
        uses: 1,
        hold: HOLD,
        leaseMs: 60_000,
        record: RECORD,
      });
      if (is !== 'admitted') throw new Error(is);
    }),
  );
  const settleUs = await timed(() =>
    each(holds, (holdId) =>
      settle(redis, ref, { holdId, epoch: '1', uses: 1, costMicrousd: 7, record: RECORD }),
    ),
  );
  const { user, system } = process.cpuUsage(cpu);
  await redis.del(keys.usage(partition));
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
