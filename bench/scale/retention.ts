/**
 * Measures what URLs take in Postgres, with a call each, and how fast an issuer sums, archives and deletes. Days of URLs are
 * written one after the other, each older than the next. At first an issuer keeps all of them for a month, and then sweeps after
 * each day as if it were the end of that day. In the end it deletes many days at once. Prints bytes and rows a second.
 *
 *     A_DAY=10000 npx tsx bench/scale/retention.ts
 *
 * It needs Linux, redis-server, openssl and Postgres, and starts stores of its own. A `vacuum` after each day does what
 * autovacuum would have done in it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { startServices } from '../table/services.ts';

const A_DAY = Number(process.env.A_DAY ?? 10_000);
const USERS = 1_000;
/** A month in which nothing is deleted, then as many days as it takes until all room has been used again. */
const FULL = 31;
const DAYS = Number(process.env.DAYS ?? 93);
const LEDGER_DAYS = 32;
const GRANT_DAYS = 30;
/** Days that are deleted at once in the end. */
const AT_ONCE = 20;
/** Days between the last one and today, so that Redis has forgotten all URLs, and the ledger is kept for 32 days at least. */
const AGO = AT_ONCE + 4;
const A_MILLION = 1_000_000;

const services = await startServices(process.execPath);
const sql = postgres(services.databaseUrl, { max: 1, onnotice: () => {} });
const archive = join(services.dir, 'archive');
const OF_URL = ['grants', 'sessions', 'budgets', 'credentials'];

await makeOne();
for (let day = 1; day <= FULL; day++) await writeDay(day);
// The first issuer has passed the days that it had no calls of.
await sql`delete from usage_marks`;
const summing = await sweep(FULL, 400, 400);
const month = await sizes();
console.log(`after ${FULL} days of ${A_DAY}, nothing deleted: ${JSON.stringify(month)}`);
console.log(`summed: ${summing}`);
for (let day = FULL + 1; day <= DAYS; day++) {
  await writeDay(day);
  await sweep(day, LEDGER_DAYS, GRANT_DAYS);
  await sql`vacuum`;
  if ((DAYS - day) % 10 === 0) console.log(`day ${day}: ${JSON.stringify(await sizes())}`);
}
const rows =
  await sql`select (select count(*) from grants)::int as urls, (select count(*) from ledger)::int as calls`;
console.log(`steady: ${JSON.stringify(rows[0])}`);
for (const [name, ledgerDays, grantDays] of [
  ['calls', LEDGER_DAYS - AT_ONCE, GRANT_DAYS],
  ['URLs', LEDGER_DAYS - AT_ONCE, GRANT_DAYS - AT_ONCE],
] as const) {
  console.log(`deleted ${AT_ONCE} days of ${name}, archived: ${await sweep(DAYS, ledgerDays, grantDays)}`);
}
process.exit();

/** A URL and its call, as the services write them. The others are copies. */
async function makeOne(): Promise<void> {
  const ask = {
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: `sk-proj-${'x'.repeat(156)}`,
    max_uses: 1,
    cost_limit: 1_000_000,
    expires_in: 3_600,
    external_user: 'user-1',
  };
  const [path] = await services.issue('/v1/presign', ask, 1);
  const gateway = await services.start('gateway', process.execPath);
  const body = { model: 'gpt-4o-mini', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(gateway.origin + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`the call got ${answer.status}: ${await answer.text()}`);
  await answer.text();
  await until(async () => (await sql`select 1 from ledger`).length === 1);
  for (const pid of [gateway.pid, services.pids.issuer]) process.kill(pid, 'SIGKILL');
  for (const table of [...OF_URL, 'ledger'])
    await sql`create temp table ${sql(`one_${table}`)} as select * from ${sql(table)} limit 1`;
  await sql`delete from ledger`;
}

/** Writes the URLs of a day, all of which have been called and have expired since. */
async function writeDay(day: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`create temp table fresh on commit drop as
      select gen_random_uuid() as id, gen_random_uuid() as session_id, gen_random_uuid() as budget_id,
        gen_random_uuid() as credential_id, 'user-' || n % ${USERS} as external_user,
        date_trunc('day', now(), 'UTC') - ${agoOf(day)} * interval '1 day' + n * interval '1 day' / ${A_DAY + 1} as at
      from generate_series(1, ${A_DAY}) n`;
    const copy = (table: string, changed: string) =>
      tx.unsafe(`insert into ${table} select made.* from fresh, one_${table} as one,
        lateral jsonb_populate_record(one, jsonb_build_object(${changed})) as made`);
    await copy('sessions', `'id', session_id, 'created_at', at`);
    await copy('budgets', `'id', budget_id, 'used', 1, 'settled_microusd', 308`);
    await copy('credentials', `'id', credential_id, 'created_at', at`);
    await copy(
      'grants',
      `'id', fresh.id, 'session_id', fresh.session_id, 'budget_id', fresh.budget_id, 'credential_id', fresh.credential_id,
       'external_user', fresh.external_user, 'issued_at', at, 'expires_at', at + interval '1 hour', 'expiry_announced', true`,
    );
    await copy(
      'ledger',
      `'hold_id', gen_random_uuid(), 'request_id', gen_random_uuid(), 'grant_id', fresh.id, 'session_id', fresh.session_id,
       'external_user', fresh.external_user, 'started_at', at, 'settled_at', at + interval '2 seconds'`,
    );
  });
}

/** How many days ago a day was. */
function agoOf(day: number): number {
  return DAYS - day + AGO;
}

/**
 * Lets an issuer sweep as if it were the end of this day.
 * @returns the rows a second that it takes once it serves requests
 */
async function sweep(day: number, ledgerDays: number, grantDays: number): Promise<string> {
  const shift = agoOf(day) - 1;
  const [ledgerKept, grantsKept] = [shift + ledgerDays, shift + grantDays];
  const kept = { LEDGER_KEPT_DAYS: String(ledgerKept), GRANTS_KEPT_DAYS: String(grantsKept) };
  // Further URLs grow old while it deletes.
  const now = new Date();
  const left = async () => {
    const [row] = await sql`select
      (select count(*) from ledger where settled_at > (select coalesce(min(summed_until), '-infinity') from usage_marks)
        or settled_at < date_trunc('day', ${now}::timestamptz - ${ledgerKept} * interval '1 day', 'UTC'))
      + (select count(*) from grants where expires_at < ${now}::timestamptz - ${grantsKept} * interval '1 day')
      + (select count(*) from archive_parts) as rows`;
    return Number(row?.rows);
  };
  const issuer = await services.start('issuer', process.execPath, { ...kept, ARCHIVE_FOLDER: archive });
  const rows = await left();
  const began = performance.now();
  await until(async () => (await left()) === 0);
  const perSecond = rows / ((performance.now() - began) / 1_000);
  // A URL goes only once its credential is erased.
  await until(async () => {
    const kept =
      await sql`select from credentials where sealed <> '' and created_at < now() - interval '2 days' limit 1`;
    return kept.length === 0;
  });
  // A file that it writes would hold up the next one for five minutes.
  process.kill(issuer.pid, 'SIGTERM');
  await until(async () => !existsSync(`/proc/${issuer.pid}`));
  return `${perSecond.toFixed(0)} a second, ${((perSecond * 86_400) / A_MILLION).toFixed(0)} times a million a day`;
}

/** Bytes of a URL with a call, of the tables and in all. */
async function sizes(): Promise<Record<string, number>> {
  const all = await sql<{ name: string; bytes: number; rows: number }[]>`
    select relname as name, pg_total_relation_size(oid)::float8 as bytes, reltuples::float8 as rows from pg_class
    where relname = any(${[...OF_URL, 'ledger', 'usage_days']}) and relkind = 'r' and relpersistence = 'p'`;
  const bytes = (names: readonly string[]) =>
    all.filter(({ name }) => names.includes(name)).reduce((sum, each) => sum + each.bytes, 0);
  const [count] = await sql`select (select count(*) from grants)::float8 as urls,
    (select count(*) from ledger)::float8 as calls, (select count(*) from usage_days)::float8 as sums`;
  const each = (total: number, of: unknown) => Math.round(total / Number(of));
  return {
    aUrl: each(bytes(OF_URL), count?.urls),
    aCall: each(bytes(['ledger']), count?.calls),
    aSum: each(bytes(['usage_days']), count?.sums),
    megabytes: each(bytes([...OF_URL, 'ledger', 'usage_days']), 1_048_576),
  };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(20);
}
