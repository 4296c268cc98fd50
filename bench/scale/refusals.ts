/**
 * Sends a storm of calls to a URL that has no uses left, beside a bystander of another URL, and prints what the storm leaves and costs.
 * First `STORM_SECONDS` over HTTP, as fast as the gateway refuses. Then `REFUSALS`, as many as a day has, through the gateway's
 * own room, Redis and the issuer into Postgres: each hour of the day takes three seconds, by the clock that the room is given.
 *
 *     STORM_SECONDS=120 REFUSALS=10000000 npx tsx bench/scale/refusals.ts
 *
 * It needs Linux, redis-server, openssl and Postgres, and starts stores of its own.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import postgres from 'postgres';
import { Pool } from 'undici';
import { sendRefused } from '../../apps/gateway/src/limits/refused-calls.ts';
import { startServices } from '../table/services.ts';

const STORM_SECONDS = Number(process.env.STORM_SECONDS ?? 120);
const REFUSALS = Number(process.env.REFUSALS ?? 10_000_000);
const CONNECTIONS = 32;
/** Requests that a connection has under way. The gateway takes three. */
const PIPELINED = 2;
const BYSTANDER_EACH_MS = 20;
const CALM_MS = 10_000;
const HOURS = 24;
const HOUR_MS = 3_600_000;
const HOUR_TAKES_MS = 3_000;

const services = await startServices(process.execPath);
const sql = postgres(services.databaseUrl, { max: 1, onnotice: () => {} });
const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-bench' };
const [spent = ''] = await services.issue('/v1/presign', { ...ask, max_uses: 1, external_user: 'storm' }, 1);
const [other = ''] = await services.issue('/v1/presign', ask, 1);
const [later = ''] = await services.issue('/v1/presign', { ...ask, max_uses: 1, external_user: 'day' }, 1);
const gateway = await services.start('gateway', process.execPath);
const calm = new Pool(gateway.origin, { connections: 2 });
const chat = { model: 'gpt-4o-mini', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] };
const body = JSON.stringify(chat);

async function call(path: string): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  const answer = await calm.request({ path, method: 'POST', headers, body });
  await answer.body.dump();
  return answer.statusCode;
}

/** Calls of the bystander until `until` resolves: their latency in ms. */
async function bystander(until: Promise<unknown>): Promise<string> {
  let isOver = false;
  until.finally(() => {
    isOver = true;
  });
  const times: number[] = [];
  while (!isOver) {
    const began = performance.now();
    if ((await call(other)) !== 200) throw new Error('the bystander was refused');
    times.push(performance.now() - began);
    await sleep(BYSTANDER_EACH_MS);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  return `${times.length} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

/** Sends requests on one connection, some at a time, until the time is over. Counts answers by their status. */
function lane(endMs: number, counts: Map<string, number>): Promise<void> {
  const { hostname, port, host } = new URL(gateway.origin);
  const request = `POST ${spent} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(request.repeat(PIPELINED)));
    socket.setNoDelay(true).on('error', reject).on('close', resolve);
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      for (;;) {
        const head = text.indexOf('\r\n\r\n');
        if (head < 0) return;
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? Number.NaN);
        if (Number.isNaN(length))
          return reject(new Error(`an answer without a length: ${text.slice(0, head)}`));
        if (text.length < head + 4 + length) return;
        const status = text.slice(9, 12);
        counts.set(status, (counts.get(status) ?? 0) + 1);
        text = text.slice(head + 4 + length);
        if (Date.now() < endMs) socket.write(request);
        else socket.end();
      }
    });
  });
}

const used = async () => Number(/^used_memory:(\d+)/m.exec(await services.redis.info('memory'))?.[1]);
const rss = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
/** The CPU that a process has used, in seconds. */
const cpu = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
};
const entries = async () => {
  const all = Array.from({ length: PARTITIONS }, (_, at) => services.redis.xlen(keys.refused(at)));
  return Math.max(...(await Promise.all(all)));
};

/** Watches stores and a process while something runs. */
async function watched<T>(pid: number, run: Promise<T>): Promise<T> {
  const before = { redis: await used(), rss: rss(pid) };
  const most = { redis: 0, rss: 0, entries: 0 };
  const watch = setInterval(async () => {
    most.redis = Math.max(most.redis, await used());
    most.rss = Math.max(most.rss, rss(pid));
    most.entries = Math.max(most.entries, await entries());
  }, 500);
  const result = await run;
  clearInterval(watch);
  const grown = (most.redis - before.redis) / 1024;
  console.log(`  Redis: ${grown.toFixed(0)} KB more at most; at most ${most.entries} entries of a partition`);
  console.log(`  refusing process: ${before.rss.toFixed(0)} MB before, at most ${most.rss.toFixed(0)}`);
  return result;
}

/** Counts the rows of one user in Postgres, once all of them are there. */
async function left(user: string, refused: number): Promise<void> {
  while ((await entries()) > 0) await sleep(500);
  await sleep(2_000);
  while ((await entries()) > 0) await sleep(500);
  const [sums] =
    await sql`select coalesce(sum(calls), 0)::text as calls, count(*)::int as rows from refusal_days`;
  const [kept] = await sql`select count(*)::int as rows from refused_calls where external_user = ${user}`;
  const [size] = await sql`select sum(pg_total_relation_size(inhrelid))::int as bytes from pg_inherits
    where inhparent = 'refused_calls'::regclass`;
  console.log(
    `  Postgres: ${kept?.rows} calls kept, ${size?.bytes} bytes for all; ${sums?.calls} counted in ${sums?.rows} rows`,
  );
  if (Number(sums?.calls) !== refused) throw new Error(`${refused} calls were refused`);
}

await call(spent);
console.log(`before: ${await bystander(sleep(CALM_MS))}`);
const counts = new Map<string, number>();
const [began, busy] = [performance.now(), cpu(gateway.pid)];
const end = Date.now() + STORM_SECONDS * 1_000;
const flooding = Promise.all(Array.from({ length: CONNECTIONS }, () => lane(end, counts)));
const [during] = await Promise.all([bystander(flooding), watched(gateway.pid, flooding)]);
const seconds = (performance.now() - began) / 1_000;
const refused = [...counts.values()].reduce((sum, each) => sum + each, 0);
console.log(`during: ${during}`);
console.log(
  `${refused} refusals over HTTP in ${seconds.toFixed(0)} s, ${Math.round(refused / seconds)} a second, ${JSON.stringify(Object.fromEntries(counts))}; ` +
    `gateway ${((100 * (cpu(gateway.pid) - busy)) / seconds).toFixed(0)} % of a core`,
);
console.log(`after: ${await bystander(sleep(CALM_MS))}`);
await left('storm', refused);

/** A day's refusals of one URL through the room of a gateway, with the clock of that day. */
async function day(grant: { id: string; partition: number }, accountId: string): Promise<void> {
  let nowMs = Date.now() - HOURS * HOUR_MS;
  const room = sendRefused(services.redis, () => nowMs);
  for (let hour = 0; hour < HOURS; hour++) {
    nowMs += HOUR_MS;
    const calls = Math.floor((REFUSALS * (hour + 1)) / HOURS) - Math.floor((REFUSALS * hour) / HOURS);
    const [each, ends] = [Math.ceil(calls / 100), performance.now() + HOUR_TAKES_MS];
    for (let n = 0; n < calls; n += each) {
      for (let i = n; i < Math.min(calls, n + each); i++)
        room.add({
          ...{ grant, accountId, code: 'uses_exhausted', name: undefined },
          describe: () => ({ rid: randomUUID(), sta: 403, mod: 'gpt-4o-mini', siz: body.length }),
        });
      await sleep(HOUR_TAKES_MS / 100);
    }
    await sleep(Math.max(0, ends - performance.now()));
  }
  await room.close();
}

const [row] =
  await sql`select grants.id, grants.account_id, budgets.partition from grants join budgets on budgets.id = grants.budget_id
  where external_user = 'day'`;
if (!row || later === '') throw new Error('the URL of the day is not there');
const whole = day({ id: row.id, partition: row.partition }, row.account_id);
await watched(process.pid, whole);
console.log(`${REFUSALS} refusals of a day, through the room of a gateway`);
await left('day', refused + REFUSALS);
process.exit();
