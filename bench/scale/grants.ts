/**
 * Measures what live grants cost in Redis: the memory of each, and the CPU time of a call (`admit` and `settle`) among few and
 * among many of them. "hot": the calls are spread over 1,000 grants, and the others are idle. "all": over all grants.
 *
 *     npx tsx bench/scale/grants.ts [1000 100000 1000000]
 *
 * It starts a Redis for each number of grants and each of its settings, and measures them in turn. Further settings are in REDIS,
 * separated by semicolons. A million grants take 1 to 2 GB in each server.
 */
import { randomInt } from 'node:crypto';
import { type GrantRef, keys, type RedisClient } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { cpuMicros, rssOf } from '../processes.ts';
import { callOnce, inLanes, openOne, range, startRedis } from './redis.ts';

const counts = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 100_000, 1_000_000];
const settings = process.env.REDIS?.split(';') ?? ['', '--hash-max-listpack-value 1024'];
const ROUNDS = Number(process.env.ROUNDS ?? 7);
const CALLS = 20_000;
const AT_ONCE = 64;
const HOT = 1_000;
/** Grants whose keys are weighed. */
const WEIGHED = 200;

/** A Redis with grants in it. */
type Filled = {
  readonly name: string;
  readonly pid: number;
  readonly redis: RedisClient;
  readonly grants: readonly GrantRef[];
};

const servers: Filled[] = [];
for (const setting of settings) for (const count of counts) servers.push(await fill(setting, count));
const rounds = new Map<string, number[]>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const server of servers) {
    for (const kind of ['hot', 'all'] as const) {
      const cpuUs = await measure(server, kind);
      const name = `${server.name} | ${kind}`;
      // The first round loads the scripts.
      if (round > 0) rounds.set(name, [...(rounds.get(name) ?? []), cpuUs]);
    }
  }
}
console.log(`\nCPU of Redis for a call, µs: median (lowest–highest) of ${ROUNDS} rounds`);
for (const [name, all] of rounds) console.log(`${name}: ${range(all)}`);
process.exit();

async function fill(setting: string, count: number): Promise<Filled> {
  const { pid, redis } = await startRedis(setting.split(' ').filter(Boolean));
  const before = await usedMemory(redis);
  const grants: GrantRef[] = [];
  await inLanes(Array.from({ length: count }), AT_ONCE, async () => grants.push(await openOne(redis)));
  const bytesEach = ((await usedMemory(redis)) - before) / count;
  const weighed = grants.slice(0, WEIGHED);
  await inLanes(weighed, AT_ONCE, (grant) => callOnce(redis, grant));
  const weights = await Promise.all(weighed.map((grant) => weigh(redis, grant)));
  const [grant, credential, budget] = [0, 1, 2].map(
    (place) => weights.reduce((sum, each) => sum + (each[place] ?? 0), 0) / weights.length,
  );
  const name = `${setting || 'default'} | ${count}`;
  console.log(
    `${name}: ${bytesEach.toFixed(0)} bytes each (used_memory), RSS ${rssOf(pid).toFixed(0)} MB;`,
    `MEMORY USAGE after a call: grant ${grant}, credential ${credential}, budget ${budget}`,
  );
  // A rewrite at a random moment would hit one server and not the next.
  await redis.config('SET', 'auto-aof-rewrite-percentage', '0');
  return { name, pid, redis, grants };
}

/** Bytes of the three keys of a grant. */
function weigh(redis: RedisClient, { partition, id, credentialId, budgetIds }: GrantRef): Promise<number[]> {
  const own = [
    keys.grant(partition, id),
    keys.credential(partition, credentialId),
    keys.budget(partition, budgetIds[0] ?? ''),
  ];
  return Promise.all(own.map(async (key) => Number(await redis.memory('USAGE', key, 'SAMPLES', 0))));
}

/** CPU time of the Redis process for each call. */
async function measure({ redis, pid, grants }: Filled, kind: 'hot' | 'all'): Promise<number> {
  const among = kind === 'hot' ? Math.min(HOT, grants.length) : grants.length;
  const calls = Array.from({ length: CALLS }, () => grants[randomInt(among)] as GrantRef);
  const before = cpuMicros(pid);
  await inLanes(calls, AT_ONCE, (grant) => callOnce(redis, grant));
  const cpuUs = (cpuMicros(pid) - before) / CALLS;
  for (let partition = 0; partition < PARTITIONS; partition++) await redis.del(keys.usage(partition));
  return cpuUs;
}

async function usedMemory(redis: RedisClient): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}
