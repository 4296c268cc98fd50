/**
 * Measures the requests of each screen of the console over a million calls of one account: 28 days, 1,000 users, 8 models, 10,000 sessions
 * with a URL each, 10,000 entries of the audit log and 100 budgets. Prints the median and the longest time of each request.
 *
 *     TEST_DATABASE_URL=postgres://… CALLS=1000000 npx tsx bench/scale/console.ts
 *
 * It makes a database of its own and drops it. Sums by day are made first, as the sweep of a running issuer makes them.
 */

import { eventually } from '@presign/test/harness/eventually.ts';
import { startStack } from '@presign/test/harness/stack.ts';
import { startOwnIssuer } from '@presign/test/issuer/own-issuer.ts';
import postgres from 'postgres';

const CALLS = Number(process.env.CALLS ?? 1_000_000);
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const SESSIONS = 10_000;
const AUDITED = 10_000;
const BUDGETS = 100;
/** Answers of one report that a screen reads. */
const MOST_ANSWERS = 6;

const stack = await startStack({ providers: {} });
const sql = postgres(stack.databaseUrl ?? '', { max: 1, onnotice: () => {} });
const headers = { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' };
const [{ account, key } = { account: '', key: '' }] = await sql<
  { account: string; key: string }[]
>`select account_id as account, id as key from api_keys`;

await fill();
const range = `from=${Math.floor(Date.now() / 86_400_000 - 29) * 86_400}&to=${Date.now() / 1000}&limit=5000`;
/** As long a time before, and the last seven days. */
const day = (ago: number) => Math.floor(Date.now() / 86_400_000 - ago) * 86_400;
const before = `from=${day(58)}&to=${day(29)}&limit=5000`;
const week = `from=${day(7)}&to=${Date.now() / 1000}&limit=5000`;
const [{ request = '', session = '' } = {}] = await sql<{ request: string; session: string }[]>`
  select request_id as request, session_id as session from ledger order by settled_at offset ${Math.floor(CALLS / 2)} limit 1`;

/** The requests of each screen, as `queries.ts` and `usage.ts` in `apps/console/src/data` make them. */
const SCREENS: Readonly<Record<string, readonly string[]>> = {
  home: [
    `usage?${range}`,
    `usage?${before}`,
    `usage?group_by=day,model&${range}`,
    `usage?group_by=external_user&${range}`,
    `usage?group_by=external_user&${before}`,
    `usage?group_by=external_user&${week}`,
    ...['usage/hours', 'refusals?days=90', 'budgets?limit=50', 'virtual-keys?limit=50', 'calls?limit=100'],
  ],
  'chart by user': [
    `usage?group_by=external_user&${range}`,
    ...[1, 2, 3, 4, 5].map((user) => `usage?group_by=day&external_user=user-${user}&${range}`),
    `usage?group_by=day&${range}`,
  ],
  customers: [`usage?group_by=external_user&${range}`, `usage?group_by=external_user&${week}`],
  'one customer': [
    `usage?external_user=user-7&${range}`,
    `usage?external_user=user-7&${week}`,
    `usage?group_by=day,model&external_user=user-7&${range}`,
    `usage?group_by=provider,model,tool&external_user=user-7&${range}`,
    'calls?limit=50&outcome=refused&external_user=user-7',
    'sessions?limit=50&external_user=user-7',
    'budgets?limit=50&external_user=user-7',
  ],
  requests: ['calls?limit=50&outcome=all', `usage?group_by=day,outcome&${range}`, 'refusals?days=90'],
  'one request': [`calls/${request}`, `calls/${request}/similar`],
  'usage by user': [`usage?group_by=external_user&${range}`],
  'usage by model': [`usage?group_by=model&${range}`],
  'usage by day': [`usage?group_by=day&${range}`],
  'usage by API key': [`usage?group_by=api_key&${range}`],
  'usage of one user by day': [`usage?group_by=day&external_user=user-7&${range}`],
  budgets: ['budgets?limit=50'],
  sessions: ['sessions?limit=50'],
  'sessions that are active': ['sessions?limit=50&status=active'],
  'sessions that have ended': ['sessions?limit=50&status=ended'],
  'sessions of one user': ['sessions?limit=50&external_user=user-7'],
  'one session': [`sessions/${session}?limit=50`],
  calls: ['calls?limit=50'],
  'calls of one user': ['calls?limit=50&external_user=user-7'],
  'calls of one session': [`calls?limit=50&session_id=${session}`],
  'calls that were given back': ['calls?limit=50&outcome=refunded'],
  'calls of a rare model': ['calls?limit=50&model=rare'],
  'calls of an absent model': ['calls?limit=50&model=none'],
  'calls of an absent provider': ['calls?limit=50&provider=none'],
  audit: ['audit?limit=50'],
};

for (const [screen, paths] of Object.entries(SCREENS)) {
  const millis: number[] = [];
  let answers = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const began = performance.now();
    answers = 0;
    for (const path of paths) answers += await read(path);
    if (round > 0) millis.push(performance.now() - began);
  }
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (share: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0);
  console.log(`${screen}: median ${at(0.5)} ms, longest ${at(1)} ms, ${answers} answers`);
}
await sql.end();
await stack.close();
process.exit();

/** Reads a report to its end, as far as a screen does, and one page of anything else. Returns the number of answers. */
async function read(path: string): Promise<number> {
  for (let count = 1, cursor = ''; ; count++) {
    const answer = await fetch(`${stack.issuerUrl}/v1/${path}${cursor}`, { headers });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path}: ${text}`);
    const { next_cursor: next } = JSON.parse(text) as { next_cursor?: string | null };
    if (!path.startsWith('usage') || !next || count === MOST_ANSWERS) return count;
    cursor = `&cursor=${next}`;
  }
}

/** A million calls as the services write them, and their sums by day, which an issuer with a sweep makes. */
async function fill(): Promise<void> {
  await sql`with made as (select n, gen_random_uuid() as id, gen_random_uuid() as budget, gen_random_uuid() as grant_id,
        now() - n * interval '4 minutes' as at from generate_series(1, ${SESSIONS}::int) n),
      s as (insert into sessions (id, account_id, created_at) select id, ${account}::uuid, at from made),
      b as (insert into budgets (id, partition, max_uses, used) select budget, 0, 1000, 100 from made)
    insert into grants (id, account_id, session_id, budget_id, api_key_id, kind, provider, external_user, issued_at, expires_at)
    select grant_id, ${account}::uuid, id, budget, ${key}::uuid, 'llm', 'openai', 'user-' || n % 1000, at, at + interval '7 days' from made`;
  await sql`with g as (select id, session_id, external_user, row_number() over () as n from grants)
    insert into ledger (hold_id, account_id, session_id, grant_id, api_key_id, request_id, provider, model, external_user, uses,
      cost_microusd, input_tokens, output_tokens, status, outcome, failure, started_at, settled_at)
    select gen_random_uuid(), ${account}::uuid, g.session_id, g.id, ${key}::uuid, gen_random_uuid(), 'openai',
      case when c % 100000 = 0 then 'rare' else 'model-' || c % 8 end, g.external_user, 1, 300, 450, 200,
      case when c % 50 = 0 then 502 else 200 end, 'settled', case when c % 50 = 0 then 'provider_error' end, at, at
    from generate_series(1, ${CALLS}::int) c
    join g on g.n = 1 + c % ${SESSIONS}::int,
    lateral (select now() - c * (interval '28 days' / ${CALLS}::float8) as at) t`;
  await sql`insert into audit (account_id, at, actor, action, target_kind, target_id)
    select ${account}::uuid, now() - n * interval '4 minutes', ${key}, 'api_key.created', 'api_key', gen_random_uuid()::text
    from generate_series(1, ${AUDITED}::int) n`;
  for (let user = 0; user < BUDGETS; user++) {
    const body = JSON.stringify({
      scope: { external_user: `user-${user}` },
      cost_limit: 1_000_000,
      window: 'month',
    });
    await fetch(`${stack.issuerUrl}/v1/budgets`, { method: 'POST', headers, body });
  }
  await sql`vacuum analyze`;
  await sql`delete from usage_marks`;
  const sweeper = await startOwnIssuer(stack, {
    retention: { ledgerDays: 0, grantDays: 0, usageDays: 0, refusedDays: 0, archive: undefined },
  });
  await eventually(
    async () =>
      (await sql`select from usage_marks where summed_until >= now() - interval '3 days'`).length > 0,
  );
  await sweeper.close();
  await sql`vacuum analyze`;
}
