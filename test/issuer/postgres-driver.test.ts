import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase, isDatabaseOutage, readDatabaseSettings } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import postgres, { type TransactionSql } from 'postgres';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { deferred, eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';

// Each of these fails without patches/postgres@3.4.9.patch. See docs/adr/0006-postgres-driver.md.
const url = process.env.TEST_DATABASE_URL ?? '';
const quiet = { fetch_types: false, onnotice: () => {} } as const;

test('a query fails if its server accepts connections and closes them at once', async () => {
  const server = createServer((socket) => socket.on('error', () => {}).end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { db, close } = connectDatabase(`postgres://a@127.0.0.1:${(server.address() as AddressInfo).port}/a`);
  const error = await db.execute(sql`select 1`).then(
    () => undefined,
    (failed: unknown) => failed,
  );
  expect(isDatabaseOutage(error)).toBe(true);
  await close();
  server.close();
});

test('queries that no connection can take fail with the first one, and do not wait for a server', async () => {
  const client = postgres(`postgres://a@127.0.0.1:${await freePort()}/a`, {
    ...quiet,
    max: 1,
    backoff: () => 5,
  });
  const failed: unknown[] = [];
  const queries = Array.from({ length: 20 }, () => client`select 1`.catch((error) => failed.push(error)));
  await Promise.race(queries);
  await sleep(50);
  expect(failed).toHaveLength(20);
  await client.end({ timeout: 0 });
});

describe.skipIf(url === '')('a connection to Postgres', () => {
  /** Passes all bytes on but those with this word. */
  async function openLine(word: string) {
    const { hostname, port } = new URL(url);
    const server = createServer((inner) => {
      const outer = connect(Number(port), hostname, () => outer.setNoDelay());
      inner.on('data', (bytes) => bytes.includes(word) || outer.write(bytes));
      outer.on('data', (bytes) => inner.write(bytes));
      for (const [from, to] of [
        [inner, outer],
        [outer, inner],
      ] as const)
        from.on('error', () => {}).on('close', () => to.destroy());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const line = Object.assign(new URL(url), { port: String((server.address() as AddressInfo).port) });
    return { url: line.href, close: () => server.close() };
  }

  test('that stops responding fails its statement, and is replaced', async () => {
    const line = await openLine('silent');
    const settings = { DATABASE_POOL_SIZE: '1', DATABASE_STATEMENT_TIMEOUT_SECONDS: '1' };
    const { db, close } = connectDatabase(line.url, readDatabaseSettings(settings));
    const error = await db.execute(sql`select 'silent'`).catch((failed: unknown) => failed);
    expect(isDatabaseOutage(error)).toBe(true);
    await eventually(() => db.execute(sql`select 1`).catch(() => undefined));
    await close();
    line.close();
  }, 20_000);
});

describe.skipIf(url === '')('a connection that Postgres ends', () => {
  const opened: postgres.Sql[] = [];
  const open = () => {
    const client = postgres(url, { ...quiet, max: 1 });
    opened.push(client);
    return client;
  };
  afterEach(() => Promise.all(opened.splice(0).map((client) => client.end({ timeout: 5 }))));

  const pidOf = async (tx: TransactionSql) =>
    (await tx`select pg_backend_pid() as pid`)[0]?.['pid'] as number;
  const end = (pid: number) => open()`select pg_terminate_backend(${pid})`.execute();

  test('in the middle of a transaction is replaced, and the pool can be closed', async () => {
    const client = open();
    const lost = client.begin(async (tx) => {
      const pid = await pidOf(tx);
      const sleeping = tx`select pg_sleep(20)`.execute();
      await Promise.all([end(pid), sleeping, tx`select ${1}::int`, tx`select ${2}::int`]);
    });
    await expect(lost).rejects.toThrow();
    expect(await client`select ${3}::int as three`).toEqual([{ three: 3 }]);
  });

  test('between two statements of a transaction does not run the later ones on another connection', async () => {
    const client = open();
    const ran: unknown[] = [];
    const [begun, tried, over] = [deferred(), deferred(), deferred()];
    let next: Promise<unknown> | undefined;
    const lost = client.begin(async (tx) => {
      const pid = await pidOf(tx);
      // It waits for the only connection, and has it when that has been replaced.
      next = client.begin(async () => {
        begun.resolve();
        await over.promise;
      });
      await end(pid);
      await begun.promise;
      await tx`select 1`.then((rows) => ran.push(rows)).finally(tried.resolve);
    });
    // It rejects when the connection is lost, before its function has ended.
    await expect(lost).rejects.toThrow();
    await tried.promise;
    over.resolve();
    await next;
    expect(ran).toEqual([]);
  });
});

test.skipIf(url === '')(
  'the settings of a service reach Postgres, and its pool is no larger than set',
  async () => {
    const settings = { DATABASE_POOL_SIZE: '2', DATABASE_STATEMENT_TIMEOUT_SECONDS: '3' };
    const { db, close } = connectDatabase(url, readDatabaseSettings(settings));
    const session = sql`select pg_backend_pid()::text as pid, current_setting('statement_timeout') as bound`;
    const answers = await Promise.all(Array.from({ length: 20 }, () => db.execute(session)));
    const rows = answers.flat();
    expect(new Set(rows.map(({ bound }) => bound))).toEqual(new Set(['3s']));
    expect(new Set(rows.map(({ pid }) => pid)).size).toBeLessThanOrEqual(2);
    await close();
  },
);

test.skipIf(url === '')(
  'a transaction that begins behind a full pipeline runs as one transaction',
  async () => {
    const client = postgres(url, { ...quiet, max: 2 });
    await Promise.all([client`select 1`, client`select 1`]);
    // The driver sends up to 100 on a connection before the first is answered.
    const before = Array.from({ length: 200 }, () => client`select 1`.execute());
    const one = client.begin(async (tx) => (await tx`select 1 as one`)[0]?.['one'] as number);
    await Promise.all(before);
    expect(await one).toBe(1);
    await client.end({ timeout: 5 });
  },
);

test.skipIf(url === '')('a pool that is never idle keeps no list that grows with its queries', async () => {
  const client = postgres(url, { ...quiet, max: 2 });
  const indexOf = Array.prototype.indexOf;
  let longest = 0;
  const looks = vi.spyOn(Array.prototype, 'indexOf').mockImplementation(function (
    this: unknown[],
    ...sought
  ) {
    longest = Math.max(longest, this.length);
    return indexOf.apply(this, sought);
  });
  const oneAfterAnother = async () => {
    for (let sent = 0; sent < 50; sent++) await client`select 1`;
  };
  try {
    await Promise.all(Array.from({ length: 50 }, oneAfterAnother));
  } finally {
    looks.mockRestore();
    await client.end({ timeout: 5 });
  }
  expect(longest).toBeGreaterThan(0);
  expect(longest).toBeLessThan(200);
});
