/**
 * Measures how long `POST /v1/presign` takes alone, and while six reports of its account run at once: `GET /v1/usage` by user and
 * day over all calls, one after the other in each of six loops. The rounds alternate. Prints the median and the 99th percentile, how long
 * one report takes alone, also in time zones, and the bytes of the sums. Sums by day are made first, as the sweep of a running issuer makes them, up to `BEHIND_HOURS` ago.
 *
 *     TEST_DATABASE_URL=postgres://… CALLS=10000000 npx tsx bench/scale/reports.ts
 *
 * It makes a database of its own and drops it. The issuer and its callers share one process.
 */
import { startStack } from '@presign/test/harness/stack.ts';
import { sumAll } from '@presign/test/issuer/sweeps.ts';
import postgres from 'postgres';

const CALLS = Number(process.env.CALLS ?? 500_000);
const BEHIND_HOURS = Number(process.env.BEHIND_HOURS ?? 0);
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const USERS = Number(process.env.USERS ?? 1_000);
const ASKED = 200;
const REPORTS = 6;

const stack = await startStack({ providers: {} });
const sql = postgres(stack.databaseUrl ?? '', { max: 1, onnotice: () => {} });
const headers = { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' };
const ASK = JSON.stringify({ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' });

await sql`insert into ledger (hold_id, account_id, session_id, grant_id, provider, model, external_user, uses, cost_microusd,
    input_tokens, output_tokens, status, outcome, started_at, settled_at)
  select gen_random_uuid(), (select account_id from api_keys limit 1), gen_random_uuid(), gen_random_uuid(), 'openai', 'gpt-4o-mini',
    'user-' || n % ${USERS}::int, 1, 300, 250, 450, 200, 'settled', at, at
  from generate_series(1, ${CALLS}::int) n, lateral (select now() - n * interval '28 days' / ${CALLS}::int as at) t`;
const written = async () =>
  Number((await sql`select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes`)[0]?.bytes);
const [summing, before] = [performance.now(), await written()];
await sumAll(stack, Date.now() - BEHIND_HOURS * 3_600_000);
const [took, wal] = [(performance.now() - summing) / 1000, (await written()) - before];
await sql`vacuum full usage_days`;
const [size] =
  await sql`select count(*)::int as sums, (pg_total_relation_size('usage_days') / ${CALLS}::float8)::float8 as bytes,
  (sum(pg_column_size(pieces) + pg_column_size(running)) / ${CALLS}::float8)::float8 as pieces from usage_days`;
console.log(
  `${CALLS} calls summed in ${took.toFixed(0)} s, ${(wal / CALLS).toFixed(0)} bytes of WAL a call; ${size?.sums} sums take ` +
    `${size?.bytes.toFixed(1)} bytes a call, of them ${size?.pieces.toFixed(1)} for pieces`,
);
await sql`vacuum analyze`;
for (const asked of [
  ...['external_user,day', 'external_user', 'day', 'model,month'].map((by) => `group_by=${by}`),
  ...['Europe/Berlin', 'Asia/Kolkata', 'Asia/Kathmandu'].flatMap((zone) =>
    ['external_user,day', 'day', 'month'].map((by) => `group_by=${by}&timezone=${zone}`),
  ),
  `group_by=external_user&from=${Math.floor(Date.now() / 1000) - 20 * 86_400 - 4_321}.5`,
])
  console.log(
    `one report, ${asked}: ${(await reportTimes(asked)).map((each) => each.toFixed(0)).join(', ')} ms`,
  );

const found = { alone: [] as number[], 'under six reports': [] as number[] };
let reports = 0;
let refused = 0;
for (let round = 0; round <= ROUNDS; round++) {
  const alone = await presign();
  const stop = new AbortController();
  const running = Array.from({ length: REPORTS }, () => report(stop.signal));
  const under = await presign();
  stop.abort();
  await Promise.all(running);
  if (round === 0) continue;
  found.alone.push(...alone);
  found['under six reports'].push(...under);
}
for (const [name, millis] of Object.entries(found)) {
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]?.toFixed(1);
  console.log(`${name}: median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${sorted.at(-1)?.toFixed(1)} ms`);
}
console.log(`${reports} reports, ${refused} refused`);
await sql.end();
await stack.close();
process.exit();

/** Issues URLs one after the other. Returns how long each took, in ms. */
async function presign(): Promise<number[]> {
  const millis: number[] = [];
  for (let i = 0; i < ASKED; i++) {
    const began = performance.now();
    const answer = await fetch(`${stack.issuerUrl}/v1/presign`, { method: 'POST', headers, body: ASK });
    await answer.arrayBuffer();
    millis.push(performance.now() - began);
    if (answer.status !== 200) throw new Error(`presign: ${answer.status}`);
  }
  return millis;
}

/** How long each of five reports takes, in ms. */
async function reportTimes(asked: string): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const began = performance.now();
    const answer = await fetch(`${stack.issuerUrl}/v1/usage?${asked}`, { headers });
    await answer.arrayBuffer();
    if (answer.status !== 200) throw new Error(`report: ${answer.status}`);
    times.push(performance.now() - began);
  }
  return times;
}

async function report(stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const answer = await fetch(`${stack.issuerUrl}/v1/usage?group_by=external_user,day`, { headers });
    await answer.arrayBuffer();
    if (answer.status === 200) reports++;
    else refused++;
  }
}
