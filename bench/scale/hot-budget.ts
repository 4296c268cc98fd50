/**
 * Measures the highest rate of calls (`admit` and `settle`) on one budget, for 64 gateways at once: 4 processes with 16 connections
 * each, and 4 calls under way on each connection. To compare, the same calls on 1,000 budgets of all partitions, and on 1,000 URLs of an
 * account with 1 to 8 shared budgets, which all lie in its home partition.
 *
 *     npx tsx bench/scale/hot-budget.ts
 *
 * The ledger is not written meanwhile. `ledger.ts` measures how many calls a second the issuer takes out of one partition.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { connectRedis, type GrantRef, keys, redisReady } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { cpuMicros } from '../processes.ts';
import { callOnce, newWindows, openOne, range, startRedis } from './redis.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 7);
const SECONDS = Number(process.env.SECONDS ?? 3);
const PROCESSES = 4;
const GATEWAYS_EACH = 16;
const CALLS_EACH = 4;
const BUDGETS = 1_000;
/** Shared budgets of a call. */
const SHARED = [1, 2, 4, 8];
const sharedBy = (count: number) => `an account with ${count} shared budget${count === 1 ? '' : 's'}`;

type Order = { readonly grants: readonly GrantRef[]; readonly seconds: number };
type Report = { readonly calls: number; readonly millis: readonly number[] };

if (process.send) await beGateways(process.argv[2] ?? '');
else await main();

async function main(): Promise<void> {
  const { pid, url, redis } = await startRedis();
  const one = await openOne(redis, 0);
  const many = await Promise.all(Array.from({ length: BUDGETS }, () => openOne(redis)));
  const account = async (shared: number) => {
    const windows = newWindows(shared);
    return Promise.all(Array.from({ length: BUDGETS }, () => openOne(redis, 1, windows)));
  };
  const loads = [
    ['one budget', [one]],
    [`${BUDGETS} budgets`, many],
    ...(await Promise.all(SHARED.map(async (count) => [sharedBy(count), await account(count)] as const))),
  ] as const;
  const workers = Array.from({ length: PROCESSES }, () =>
    fork(fileURLToPath(import.meta.url), [url], { execArgv: process.execArgv }),
  );
  process.on('exit', () => {
    for (const worker of workers) worker.kill('SIGKILL');
  });
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  const found = new Map<string, { perSecond: number; share: number; cpuUs: number; p99Ms: number }[]>();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, grants] of loads) {
      const before = cpuMicros(pid);
      const began = performance.now();
      const reports = await Promise.all(workers.map((worker) => order(worker, { grants, seconds: SECONDS })));
      const seconds = (performance.now() - began) / 1_000;
      const cpu = cpuMicros(pid) - before;
      const calls = reports.reduce((sum, report) => sum + report.calls, 0);
      const millis = reports.flatMap((report) => report.millis).sort((a, b) => a - b);
      const figures = {
        perSecond: calls / seconds,
        share: (100 * cpu) / 1e6 / seconds,
        cpuUs: cpu / calls,
        p99Ms: millis[Math.floor(0.99 * millis.length)] ?? Number.NaN,
      };
      if (round > 0) found.set(name, [...(found.get(name) ?? []), figures]);
      for (let partition = 0; partition < PARTITIONS; partition++) await redis.del(keys.usage(partition));
    }
  }
  for (const [name, all] of found)
    console.log(
      `${name}: ${range(
        all.map(({ perSecond }) => perSecond),
        0,
      )} calls/s;`,
      `Redis took ${range(
        all.map(({ share }) => share),
        0,
      )} % of a core, ${range(all.map(({ cpuUs }) => cpuUs))} µs a call;`,
      `p99 of the two scripts ${range(all.map(({ p99Ms }) => p99Ms))} ms`,
    );
  process.exit();
}

async function order(worker: ChildProcess, wanted: Order): Promise<Report> {
  worker.send(wanted);
  const [report] = (await once(worker, 'message')) as [Report];
  return report;
}

async function beGateways(url: string): Promise<void> {
  const clients = Array.from({ length: GATEWAYS_EACH }, () => connectRedis(url, console.error));
  await Promise.all(clients.map((client) => redisReady(client)));
  process.on('message', async ({ grants, seconds }: Order) => {
    const millis: number[] = [];
    const until = performance.now() + seconds * 1_000;
    let next = 0;
    const lane = async (client: (typeof clients)[0]) => {
      while (performance.now() < until) {
        const began = performance.now();
        await callOnce(client, grants[next++ % grants.length] as GrantRef);
        millis.push(performance.now() - began);
      }
    };
    await Promise.all(clients.flatMap((client) => Array.from({ length: CALLS_EACH }, () => lane(client))));
    process.send?.({ calls: millis.length, millis: millis.filter((_, place) => place % 10 === 0) });
  });
  process.send?.('ready');
}
