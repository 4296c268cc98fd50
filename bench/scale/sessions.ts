/**
 * Measures `GET /v1/sessions?status=…` over many sessions of one account: in each mix, all or all but a few are of one kind, so
 * that a page of the other kind is hard to find. Prints how many pages it takes to find one, and how long each of them takes.
 *
 *     TEST_DATABASE_URL=postgres://… SESSIONS=200000 npx tsx bench/scale/sessions.ts
 *
 * It makes a database of its own and drops it.
 */
import { startStack } from '@presign/test/harness/stack.ts';
import postgres from 'postgres';
import { range } from './redis.ts';

const SESSIONS = Number(process.env.SESSIONS ?? 200_000);
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const FEW = 5;

/** How the grants of each mix stand: an interval until their expiry, their uses, and whether they were revoked. */
const MIXES = {
  'all active': { ends: '1 year', used: 0, revoked: false },
  'all expired': { ends: '-1 hour', used: 0, revoked: false },
  'all revoked before their expiry': { ends: '1 year', used: 0, revoked: true },
  'all used up before their expiry': { ends: '1 year', used: 10, revoked: false },
};

const stack = await startStack({ providers: {} });
const sql = postgres(stack.databaseUrl ?? '', { max: 1, onnotice: () => {} });
const [{ account } = { account: '' }] = await sql<
  { account: string }[]
>`select account_id as account from api_keys`;
for (const [mix, kind] of Object.entries(MIXES)) {
  await sql`truncate grants, sessions, budgets cascade`;
  await fill(kind, SESSIONS, '1 ms');
  // A few of the other kind, the oldest of all.
  const other = mix === 'all active' ? MIXES['all used up before their expiry'] : MIXES['all active'];
  await fill(other, FEW, '1 day');
  await sql`vacuum analyze`;
  for (const status of ['active', 'ended']) {
    const millis: number[] = [];
    let pages = 0;
    for (let round = 0; round <= ROUNDS; round++) {
      const walked = await walk(status);
      if (round > 0) millis.push(...walked);
      pages = walked.length;
    }
    const sorted = millis.toSorted((x, y) => x - y);
    const p99 = sorted[Math.floor(sorted.length * 0.99)]?.toFixed(0);
    console.log(`${mix} but ${FEW}, ${status}: ${pages} pages, each ${range(millis)} ms, p99 ${p99} ms`);
  }
}
await sql.end();
await stack.close();
process.exit();

/** Reads pages until one has sessions. Returns how long each took, in ms. */
async function walk(status: string): Promise<number[]> {
  const millis: number[] = [];
  for (let cursor = ''; ; ) {
    const began = performance.now();
    const answer = await fetch(`${stack.issuerUrl}/v1/sessions?status=${status}${cursor}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    const text = await answer.text();
    millis.push(performance.now() - began);
    if (answer.status !== 200) throw new Error(text);
    const { data, next_cursor } = JSON.parse(text) as { data: unknown[]; next_cursor: string | null };
    if (data.length > 0) return millis;
    if (next_cursor === null) throw new Error(`no session is ${status}`);
    cursor = `&cursor=${next_cursor}`;
  }
}

/** Adds sessions with one grant each, one every so often into the past. */
async function fill(kind: (typeof MIXES)['all active'], count: number, apart: string) {
  await sql`with made as (
      select gen_random_uuid() as id, gen_random_uuid() as budget, gen_random_uuid() as grant_id,
        now() - interval '2 hours' - n * ${apart}::interval as at from generate_series(1, ${count}::int) n),
    s as (insert into sessions (id, account_id, created_at) select id, ${account}::uuid, at from made),
    b as (insert into budgets (id, partition, max_uses, used) select budget, 0, 10, ${kind.used}::int from made)
    insert into grants (id, account_id, session_id, budget_id, kind, provider, issued_at, expires_at, revoked_at)
    select grant_id, ${account}::uuid, id, budget, 'llm', 'openai', at, now() + ${kind.ends}::interval,
      case when ${kind.revoked}::boolean then at + interval '1 ms' end from made`;
}
