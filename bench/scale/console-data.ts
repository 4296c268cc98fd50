import type { Stack } from '@presign/test/harness/stack.ts';
import { sumAll } from '@presign/test/issuer/sweeps.ts';
import type { Sql } from 'postgres';

export type Filled = {
  readonly calls: number;
  readonly users: number;
  /** The request id of a call in the middle. */
  readonly request: string;
  /** A user with as many calls as any other. */
  readonly user: string;
};

const DAYS = 28;
const MODELS = 8;
const BUDGETS = 100;
const API_KEYS = 120;
const ACCOUNTS = 60;
const ALERTS = 5;
/** The calls of a URL, of which each user has some. */
const CALLS_OF_URL = 50;
/** URLs that are in use at a time. */
const CALLED_AT_ONCE = 1_000;

/** Calls of an account as the services write them, their sums, and what else its screens show. */
export async function fillConsole(stack: Stack, sql: Sql, calls: number, users: number): Promise<Filled> {
  const [{ account, key } = { account: '', key: '' }] = await sql<
    { account: string; key: string }[]
  >`select account_id as account, id as key from api_keys`;
  await sql`insert into api_keys (id, account_id, name, hash, hint, scopes)
    select gen_random_uuid(), account_id, 'service ' || n, 'bench-' || n, hint, '{presign}' from api_keys, generate_series(1, ${API_KEYS}::int) n`;
  const urls = Math.max(users, Math.ceil(calls / CALLS_OF_URL));
  await issueUrls(sql, account, key, urls, users);
  await makeCalls(sql, account, calls, urls);
  await sumHours(sql);
  await addOthers(sql, account, key);
  await askFor(stack);
  await sql`vacuum analyze`;
  await sumAll(stack, Date.now());
  await sql`vacuum analyze`;
  const [{ request, user } = { request: '', user: '' }] = await sql<{ request: string; user: string }[]>`
    select request_id as request, external_user as user from ledger order by settled_at offset ${Math.floor(calls / 2)}::int limit 1`;
  return { calls, users, request, user };
}

const userOf = (sql: Sql, n: string) => sql`'customer-' || lpad((${sql.unsafe(n)})::text, 5, '0')`;

/** Sessions with a URL each, of which those of the last two days are in force. */
async function issueUrls(sql: Sql, account: string, key: string, urls: number, users: number): Promise<void> {
  await sql`with made as (select n, gen_random_uuid() as id, gen_random_uuid() as budget, gen_random_uuid() as grant_id,
        now() - n * (${DAYS} * interval '1 day' / ${urls}::float8) as at from generate_series(1, ${urls}::int) n),
      s as (insert into sessions (id, account_id, created_at, name) select id, ${account}::uuid, at, 'Chat ' || n from made),
      b as (insert into budgets (id, partition, max_uses, used, cost_limit_microusd, settled_microusd)
        select budget, 0, 1000, ${CALLS_OF_URL}, 1000000, 15000 from made)
    insert into grants (id, account_id, session_id, budget_id, api_key_id, kind, provider, external_user, issued_at, expires_at)
    select grant_id, ${account}::uuid, id, budget, ${key}::uuid, 'llm', 'openai', ${userOf(sql, `n % ${users}`)}, at,
      at + interval '2 days' from made`;
}

/** Each of the URLs that are in force at a time is called. */
async function makeCalls(sql: Sql, account: string, calls: number, urls: number): Promise<void> {
  await sql`create temporary table urls as
    select row_number() over (order by issued_at desc) - 1 as n, id, session_id, api_key_id, external_user from grants`;
  await sql`create unique index on urls (n)`;
  await sql`analyze urls`;
  await sql`insert into ledger (hold_id, account_id, session_id, grant_id, api_key_id, request_id, provider, model, external_user, uses,
      cost_microusd, held_microusd, price_list, input_tokens, output_tokens, status, outcome, failure, first_byte_ms, total_ms, own_us,
      started_at, settled_at)
    select gen_random_uuid(), ${account}::uuid, g.session_id, g.id, g.api_key_id, gen_random_uuid(), 'openai',
      case when c % 100000 = 0 then 'rare' else 'model-' || c % ${MODELS} end, g.external_user, 1, 100 + c % 400, 600,
      'bench:1', 450, 200, case when c % 50 = 0 then 502 else 200 end, 'settled', case when c % 50 = 0 then 'provider_error' end,
      200 + c % 300, 900 + c % 2000, 500, at - interval '1 second', at
    from generate_series(1, ${calls}::int) c
    join urls g on g.n = (c::bigint * ${urls}::int / ${calls}::int + c::bigint * 7919 % ${CALLED_AT_ONCE}) % ${urls}::int,
    lateral (select now() - interval '1 minute' - c * (${DAYS} * interval '1 day' / ${calls}::float8) as at) t`;
}

/** The sums by the hour, which the drain of a ledger makes. Times are in one interval of 19 %. */
const sumHours = (sql: Sql) => sql`
  insert into call_hours (account_id, hour, provider, model, server, outcome, first_byte, total, calls, is_merged)
  select account_id, date_trunc('hour', settled_at), provider, model, null, case when failure is null then 'passed' else failure end,
    34, 43, count(*), true from ledger group by 1, 2, 3, 4, 6`;

async function addOthers(sql: Sql, account: string, key: string): Promise<void> {
  await sql`insert into refusal_days (account_id, day, code, name, calls)
    select ${account}::uuid, current_date - d, code, '', 100 from generate_series(0, ${DAYS}::int) d,
      unnest(array['uses_exhausted', 'cost_limit_too_low', 'rate_limited', 'token_expired']) code`;
  await sql`insert into audit (account_id, at, actor, action, target_kind, target_id)
    select ${account}::uuid, now() - n * interval '4 minutes', ${key}, 'api_key.created', 'api_key', gen_random_uuid()::text
    from generate_series(1, 10000) n`;
  await sql`insert into accounts (id, name) select gen_random_uuid(), 'account ' || n from generate_series(1, ${ACCOUNTS}::int) n`;
}

/** Budgets, alerts and an endpoint, by the API. */
async function askFor({ issuerUrl, apiKey }: Stack): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${issuerUrl}/v1/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  };
  for (let n = 0; n < BUDGETS; n++)
    await post('budgets', {
      scope: { external_user: `customer-${String(n).padStart(5, '0')}` },
      cost_limit: 1_000_000,
      window: 'month',
    });
  for (let n = 0; n < ALERTS; n++)
    await post('alerts', {
      name: `alert ${n}`,
      condition: { spend: { window: 'day', amount: 1_000_000_000 } },
    });
  await post('webhooks', { url: 'https://example.com/hook' });
}
