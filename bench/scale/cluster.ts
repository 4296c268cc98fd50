/**
 * Puts load on four gateways, a Redis Cluster of three masters, an issuer, and a Postgres with a replica. Many URLs have room for all
 * calls, and some are spent on the way. Prints figures of each part. Fails unless
 *
 * - settled and held together stayed within the `cost_limit` of each spent URL in every sample, and uses within `max_uses`;
 * - each answered call, by its request id, is in the ledger exactly once and at its price, and nothing else is;
 * - each budget has the same sums in Redis and in Postgres, and holds nothing;
 * - the replica has the same ledger.
 *
 *     npx tsx bench/scale/cluster.ts
 *
 * CALLS (20,000) says how many calls it makes. It needs Linux, redis-server, redis-cli, openssl and Postgres, and starts stores of
 * its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { keys, readFigures } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { Cluster, Command } from 'ioredis';
import postgres from 'postgres';
import { Pool } from 'undici';
import { childrenOf, cpuMicros } from '../processes.ts';
import { LOADS } from '../table/load.ts';
import { NEWER_NODES } from '../table/peers.ts';
import { LIMITED } from '../table/rows.ts';
import { type Services, startReplica, startServices } from '../table/services.ts';

const CALLS = Number(process.env.CALLS ?? 20_000);
const GATEWAYS = 4;
const NODES = 3;
const CONNECTIONS_EACH = 16;
const ROOMY_URLS = 400;
const SPENT_URLS = 40;
const COST = LOADS.json.costMicrousd ?? 0;
/** Room for some twenty calls; more uses than money in half of them. */
const SPENT = { ...LIMITED, cost_limit: 20 * COST + 1_000 };
const FEW_USES = { ...LIMITED, max_uses: 20 };

/** A budget as Postgres has it. */
type Budget = {
  id: string;
  partition: number;
  limit: string | null;
  uses: number | null;
  used: string;
  settled: string;
};
type Answers = {
  readonly ids: Set<string>;
  readonly refusals: Map<string, number>;
  readonly millis: number[];
};

const node = NEWER_NODES.at(-1) ?? process.execPath;
const services = await startServices(node, NODES);
const replica = await startReplica(services.databaseUrl);
const gateways: Awaited<ReturnType<Services['start']>>[] = [];
for (let i = 0; i < GATEWAYS; i++) gateways.push(await services.start('gateway', node));
const paths = [
  ...(await services.issue('/v1/presign', LIMITED, ROOMY_URLS)),
  ...(await services.issue('/v1/presign', SPENT, SPENT_URLS / 2)),
  ...(await services.issue('/v1/presign', FEW_USES, SPENT_URLS / 2)),
];
const sql = postgres(services.databaseUrl, { max: 2 });
const limited = await sql<Budget[]>`
  select id, partition, cost_limit_microusd as limit, max_uses as uses, used, settled_microusd as settled
  from budgets where cost_limit_microusd < 1000000000 or max_uses > 0`;

const before = spent();
const began = performance.now();
const sampling = sample();
const answers = await load();
const seconds = (performance.now() - began) / 1_000;
while ((await services.settled()) > 0) await sleep(50);
const drained = (performance.now() - began) / 1_000;
const wrong = [...(await sampling.stop()), ...(await reckon(services, answers))];
print(answers);
for (const each of wrong) console.log(`WRONG: ${each}`);
console.log(wrong.length === 0 ? 'every check passed' : `${wrong.length} checks failed`);
process.exit(wrong.length === 0 ? 0 : 1);

/** Makes the calls, each URL in turn, on all gateways alike. */
async function load(): Promise<Answers> {
  const answers: Answers = { ids: new Set(), refusals: new Map(), millis: [] };
  let begun = 0;
  const lane = async (pool: Pool) => {
    while (begun < CALLS) {
      const path = paths[begun++ % paths.length] ?? '';
      await callOnce(pool, path, answers);
    }
  };
  const pools = gateways.map(
    ({ origin }) => new Pool(origin, { connections: CONNECTIONS_EACH, pipelining: 1 }),
  );
  await Promise.all(pools.flatMap((pool) => Array.from({ length: CONNECTIONS_EACH }, () => lane(pool))));
  return answers;
}

async function callOnce(pool: Pool, path: string, { ids, refusals, millis }: Answers): Promise<void> {
  const { body, headers } = LOADS.json;
  const at = performance.now();
  const answer = await pool.request({ path, method: 'POST', headers, body });
  const text = await answer.body.text();
  if (answer.statusCode === 200) {
    millis.push(performance.now() - at);
    const id = String(answer.headers['x-presign-request-id']);
    if (ids.has(id)) throw new Error(`two answers have the request id ${id}`);
    ids.add(id);
    return;
  }
  const code = `${answer.statusCode} ${(JSON.parse(text) as { error: { code: string } }).error.code}`;
  refusals.set(code, (refusals.get(code) ?? 0) + 1);
}

/** Looks at the budgets that are spent, again and again. */
function sample(): { stop: () => Promise<string[]> } {
  const wrong: string[] = [];
  let [stopped, samples] = [false, 0];
  const look = async ({ id, partition, limit, uses }: Budget) => {
    const [now] = await readFigures(services.redis, { partition, budgetIds: [id] }).catch(() => []);
    if (!now) return;
    samples++;
    const sum = now.settledMicrousd + now.heldMicrousd;
    if (limit !== null && sum > Number(limit)) wrong.push(`budget ${id}: ${sum} of ${limit} microdollars`);
    if (uses !== null && uses > 0 && now.used > uses) wrong.push(`budget ${id}: ${now.used} of ${uses} uses`);
  };
  const running = (async () => {
    while (!stopped) {
      await Promise.all(limited.map(look));
      await sleep(50);
    }
  })();
  return {
    stop: async () => {
      stopped = true;
      await running;
      console.log(`${samples} samples of ${limited.length} budgets that are spent`);
      return wrong;
    },
  };
}

/** Compares the holders' answers, the ledger, Redis and the replica. */
async function reckon({ redis }: Services, { ids }: Answers): Promise<string[]> {
  const wrong: string[] = [];
  const rows = await sql<{ id: string; cost: string | null; outcome: string }[]>`
    select request_id as id, cost_microusd as cost, outcome from ledger where uses > 0 or cost_microusd <> 0`;
  const seen = new Set<string>();
  for (const { id, cost, outcome } of rows) {
    if (seen.has(id)) wrong.push(`request ${id} is in the ledger twice`);
    seen.add(id);
    if (!ids.has(id)) wrong.push(`request ${id} is in the ledger (${outcome}, ${cost}) and was not answered`);
    else if (Number(cost) !== COST) wrong.push(`request ${id} was charged ${cost}`);
  }
  for (const id of ids) if (!seen.has(id)) wrong.push(`request ${id} was answered and is not in the ledger`);
  const budgets = await sql<Budget[]>`
    select id, partition, cost_limit_microusd as limit, max_uses as uses, used, settled_microusd as settled from budgets`;
  for (const { id, partition, used, settled } of budgets) {
    const [now] = await readFigures(redis, { partition, budgetIds: [id] });
    if (!now) continue;
    const [inRedis, inLedger] = [`${now.used} ${now.settledMicrousd}`, `${used} ${settled}`];
    if (inRedis !== inLedger) wrong.push(`budget ${id}: ${inRedis} in Redis, ${inLedger} in Postgres`);
    if (now.heldMicrousd !== 0) wrong.push(`budget ${id} still holds ${now.heldMicrousd}`);
  }
  return [...wrong, ...(await compareReplica(rows.length))];
}

async function compareReplica(wanted: number): Promise<string[]> {
  const copy = postgres(replica.url, { max: 1 });
  const count = async () => {
    const [row] = await copy`select count(*)::int as n from ledger where uses > 0 or cost_microusd <> 0`;
    return Number(row?.n);
  };
  for (let tries = 0; tries < 100 && (await count()) < wanted; tries++) await sleep(100);
  const has = await count();
  await copy.end();
  return has === wanted ? [] : [`the replica has ${has} of ${wanted} calls`];
}

/** CPU time of each part so far, in µs. */
function spent() {
  const { pids } = services;
  return {
    gateways: gateways.map(({ pid }) => cpuMicros(pid)),
    nodes: pids.redis.map(cpuMicros),
    issuer: [cpuMicros(pids.issuer)],
    postgres: [[pids.postgres, ...childrenOf(pids.postgres)].reduce((sum, pid) => sum + cpuMicros(pid), 0)],
    replica: [[replica.pid, ...childrenOf(replica.pid)].reduce((sum, pid) => sum + cpuMicros(pid), 0)],
  };
}

function print({ ids, refusals, millis }: Answers): void {
  const after = spent();
  const made = CALLS;
  millis.sort((a, b) => a - b);
  const at = (share: number) => millis[Math.floor(share * millis.length)]?.toFixed(1);
  const rate = (CALLS / seconds).toFixed(0);
  console.log(
    `${CALLS} calls in ${seconds.toFixed(1)} s (${rate} a second), ${ids.size} answered with 200; p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  );
  for (const [code, count] of refusals) console.log(`  ${count} × ${code}`);
  console.log(`the ledger had them all ${(drained - seconds).toFixed(1)} s after the last call`);
  for (const name of Object.keys(after) as (keyof typeof after)[]) {
    const each = after[name].map((cpu, place) => (cpu - (before[name][place] ?? 0)) / made);
    const sum = each.reduce((all, one) => all + one, 0);
    const shares =
      each.length > 1 ? ` (${each.map((one) => `${((100 * one) / sum).toFixed(0)} %`).join(', ')})` : '';
    console.log(`  ${name}: ${sum.toFixed(0)} µs of CPU a call${shares}`);
  }
  console.log(`  partitions of the nodes: ${partitionsOf()}`);
}

function partitionsOf(): string {
  if (!(services.redis instanceof Cluster)) return String(PARTITIONS);
  const { slots } = services.redis as unknown as { slots: (string[] | undefined)[] };
  const counts = new Map<string, number>();
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const slot = new Command('exists', [keys.partition(partition)]).getSlot() ?? 0;
    const owner = slots[Number(slot)]?.[0] ?? '?';
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  return [...counts.values()].join(', ');
}
