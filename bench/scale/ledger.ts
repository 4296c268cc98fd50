/**
 * Measures how fast an issuer takes settled calls out of Redis and writes them to the ledger: calls in all partitions, and in one
 * partition as with one hot budget. Prints calls a second, and the CPU time of a call in the issuer, Postgres and Redis.
 *
 *     npx tsx bench/scale/ledger.ts
 *
 * It needs Linux, redis-server, openssl and Postgres, and starts stores of its own.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import postgres from 'postgres';
import { childrenOf, cpuMicros } from '../processes.ts';
import { startServices } from '../table/services.ts';
import { range, recordOf } from './redis.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const CALLS = Number(process.env.CALLS ?? 40_000);
const URLS = 640;
const ASK = {
  provider: 'openai',
  path: '/v1/chat/completions',
  client_api_key: 'sk-real',
  cost_limit: 1_000_000_000_000,
  expires_in: 86_400,
};

/** A URL's grant, as its usage entries name it. */
type Grant = { id: string; budget: string; partition: number; session: string; account: string };

const services = await startServices(process.execPath);
const { redis, pids } = services;
await services.issue('/v1/presign', ASK, URLS);
const sql = postgres(services.databaseUrl, { max: 1 });
const grants = await sql<Grant[]>`
  select grants.id, budget_id as budget, partition, session_id as session, grants.account_id as account
  from grants join budgets on budgets.id = budget_id`;
const fullest = grants.filter(({ partition }) => partition === grants[0]?.partition);

const found = new Map<string, Record<string, number>[]>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, among] of [
    ['all partitions', grants],
    ['one partition', fullest.slice(0, 1)],
  ] as const) {
    const figures = await measure(among);
    if (round > 0) found.set(name, [...(found.get(name) ?? []), figures]);
  }
}
for (const [name, all] of found) {
  const of = (figure: string) => range(all.map((each) => each[figure] ?? Number.NaN));
  console.log(
    `${name}: ${range(
      all.map(({ perSecond = 0 }) => perSecond),
      0,
    )} calls/s; µs of CPU a call: issuer ${of('issuer')}, Postgres ${of('postgres')}, Redis ${of('redis')};`,
    `WAL ${of('wal')} bytes`,
  );
}
process.exit();

async function measure(among: readonly Grant[]): Promise<Record<string, number>> {
  await services.pauseIssuer(true);
  for (let done = 0; done < CALLS; done += 1_000) {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 1_000; i++) {
      const grant = among[(done + i) % among.length] as Grant;
      const entry = { hold: randomUUID().replaceAll('-', ''), grant: grant.id, budgets: grant.budget };
      const figures = { uses: '1', cost: '308', outcome: 'settled', record: recordFor(grant) };
      pipeline.xadd(keys.usage(grant.partition), '*', ...Object.entries({ ...entry, ...figures }).flat());
    }
    await pipeline.exec();
  }
  const before = spent();
  const walBefore = await walBytes();
  const began = performance.now();
  await services.pauseIssuer(false);
  while ((await services.settled()) > 0) await sleep(20);
  const seconds = (performance.now() - began) / 1_000;
  const after = spent();
  const each = (name: keyof typeof after) => (after[name] - before[name]) / CALLS;
  const wal = ((await walBytes()) - walBefore) / CALLS;
  return {
    perSecond: CALLS / seconds,
    issuer: each('issuer'),
    postgres: each('postgres'),
    redis: each('redis'),
    wal,
  };
}

function recordFor({ id, session, account }: Grant): string {
  const begun = JSON.parse(recordOf(id, randomUUID())) as object;
  return JSON.stringify({ ...begun, acc: account, ses: session, sta: 200, inp: 250, out: 450 });
}

/** CPU time so far, in µs. The issuer's connections are processes of Postgres that stay. */
function spent() {
  const of = (list: readonly number[]) => list.reduce((sum, pid) => sum + cpuMicros(pid), 0);
  return {
    issuer: cpuMicros(pids.issuer),
    postgres: of([pids.postgres, ...childrenOf(pids.postgres)]),
    redis: of(pids.redis),
  };
}

async function walBytes(): Promise<number> {
  const [row] = await sql`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes`;
  return Number(row?.bytes);
}
