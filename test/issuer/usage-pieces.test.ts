import { once } from 'node:events';
import net from 'node:net';
import { USAGE_SUMS } from '@presign/schema';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { issue } from './ask.ts';
import { csv, fresh, parseCsv, type Reader, report } from './ask-usage.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';

const GROUPS = 20_000;
const PIECE = 2_000;

let takeAway = async () => {};
let stack: Stack;
let of: Reader;

beforeAll(async () => {
  if (canReachDatabase) takeAway = await reachableDatabase();
  stack = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
  of = await filled();
});
/** An account with calls of 20,000 users, whose names have so many characters more. */
async function filled(more = 0): Promise<Reader> {
  const reader = await fresh(stack);
  // In pieces: a statement has 5 s, and six accounts may be filled at once on a busy machine.
  for (let from = 1; from <= GROUPS; from += PIECE) {
    await stack.db.execute(sql`
    insert into ledger (hold_id, account_id, session_id, grant_id, provider, external_user, uses, cost_microusd, outcome,
      started_at, settled_at)
    select gen_random_uuid(), ${reader.account}::uuid, gen_random_uuid(), gen_random_uuid(), 'openai', 'user-' || n || repeat('x', ${more}::int), 1, n,
      'settled', now(), now() - interval '1 s' from generate_series(${from}::int, ${from + PIECE - 1}::int) n`);
  }
  return reader;
}
afterAll(async () => {
  await stack.close();
  await takeAway();
});

/** Asks for the whole report on a connection of its own and reads only the first bytes. */
async function beginReading(reader = of): Promise<net.Socket> {
  const socket = net.connect(Number(new URL(stack.issuerUrl).port), '127.0.0.1');
  const query = 'from=0&group_by=external_user,session_id';
  socket.write(
    `GET /v1/usage?${query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reader.apiKey}\r\nConnection: close\r\n\r\n`,
  );
  const [head] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  expect(String(head)).toMatch(/^HTTP\/1\.1 200 /);
  return socket;
}

describe('a report of 20,000 groups', () => {
  const cost = (GROUPS * (GROUPS + 1)) / 2;

  test('has every group once, in order, and the total, as JSON and as CSV', async () => {
    const { data, total } = await report(of, { group_by: 'external_user' });
    const users = data.map((each) => each.external_user ?? '');
    expect(new Set(users).size).toBe(GROUPS);
    expect(users.slice(0, 3)).toEqual(['user-1', 'user-10', 'user-100']);
    expect(total).toMatchObject({ calls: GROUPS, uses: GROUPS, cost });
    const [head = [], ...lines] = parseCsv(await csv(of, { group_by: 'external_user' }));
    expect(head).toEqual(['external_user', ...USAGE_SUMS]);
    expect(lines.map(([user]) => user)).toEqual(users);
  });

  test('does not block the next report if its callers disconnect in the middle', async () => {
    for (let round = 0; round < 3; round++) {
      const sockets = await Promise.all(Array.from({ length: 3 }, () => beginReading()));
      for (const socket of sockets) socket.destroy();
    }
    expect((await report(of, {})).total).toMatchObject({ calls: GROUPS });
  });

  test.skipIf(!canReachDatabase)(
    'is read from Postgres no faster than its caller reads, and URLs are issued meanwhile',
    async () => {
      const socket = await beginReading();
      const waiting = () =>
        eventually(async () => {
          const [found] = (await stack.db.execute(
            sql`select query from pg_stat_activity where datname = current_database() and state = 'idle in transaction' and query like 'fetch%'`,
          )) as unknown as { readonly query: string }[];
          return found?.query;
        });
      expect(await waiting()).toMatch(/^fetch/);
      await issue(stack, {});
      expect(await waiting()).toMatch(/^fetch/);
      let rest = 0;
      socket.on('data', (chunk: Buffer) => {
        rest += chunk.length;
      });
      socket.resume();
      await once(socket, 'end');
      expect(rest).toBeGreaterThan(1_000_000);
    },
  );

  test.skipIf(!canReachDatabase)(
    "that three accounts do not read blocks no other account's report, and ends incomplete",
    async () => {
      // More than the buffers of a connection hold.
      const accounts = await Promise.all(Array.from({ length: 6 }, () => filled(800)));
      const [first = of, second = of, third = of, ...others] = accounts;
      const stalled = await Promise.all([first, second, third].map((each) => beginReading(each)));
      const [fourth = of] = others;
      const { data, total } = await report(fourth, { group_by: 'external_user' });
      expect(data).toHaveLength(GROUPS);
      expect(total).toMatchObject({ calls: GROUPS, cost });
      // Three others that do not read either take the turns of the first three.
      const later = await Promise.all(others.map((each) => beginReading(each)));
      for (const socket of stalled) {
        let end = '';
        socket.on('data', (chunk: Buffer) => {
          end = (end + chunk.toString('latin1')).slice(-200);
        });
        socket.on('error', () => {});
        socket.resume();
        await once(socket, 'close');
        expect(end).not.toContain('"total"');
      }
      for (const socket of later) socket.destroy();
      for (const each of accounts) expect((await report(each, {})).total).toMatchObject({ calls: GROUPS });
    },
  );
});
