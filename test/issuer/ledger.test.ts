import { createHash, randomBytes } from 'node:crypto';
import { keys, type RedisClient, trimScript } from '@presign/limits';
import type { PresignAnswer } from '@presign/schema';
import { ledger, partitions } from '@presign/schema/ledger-tables';
import { budgets, grants } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { type Logger, pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, least, send } from './ask.ts';
import { type OwnIssuer, startOwnIssuer } from './own-issuer.ts';

let stack: Stack;
let upstream: Upstream;
const running: OwnIssuer[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
  // Only the issuers of each test drain here.
  await stack.issuer.close();
});
afterEach(async () => {
  for (const issuer of running.splice(0)) await issuer.close();
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const start = async (changed: { db?: Database; redis?: RedisClient; log?: Logger } = {}) => {
  const issuer = await startOwnIssuer(stack, changed);
  running.push(issuer);
  return issuer;
};
const stop = async (issuer: OwnIssuer) => {
  running.splice(running.indexOf(issuer), 1);
  await issuer.close();
};

async function issueOn(issuer: OwnIssuer, fields: object = {}): Promise<string> {
  const sent = await send(issuer, { body: { ...least, ...fields } });
  expect(sent.status, sent.text).toBe(200);
  return (JSON.parse(sent.text) as PresignAnswer).url;
}

/** Calls, and waits until all calls under way are settled: that may be a moment after their answers. */
async function call(url: string): Promise<number> {
  const { status } = await fetch(url, { method: 'POST', body: '{}' });
  await eventually(async () =>
    (await total((at) => stack.redis.zcard(keys.leases(at)))) === 0 ? true : undefined,
  );
  return status;
}
const times = async (count: number, url: string) => {
  const statuses = await Promise.all(Array.from({ length: count }, () => call(url)));
  return statuses.filter((status) => status === 200).length;
};
/** A sum over all partitions. */
async function total(of: (partition: number) => Promise<number>): Promise<number> {
  const figures = await Promise.all(Array.from({ length: 64 }, (_, at) => of(at)));
  return figures.reduce((sum, figure) => sum + figure, 0);
}

const rowsOf = (url: string) =>
  stack.db
    .select()
    .from(ledger)
    .where(eq(ledger.grantId, claimsOf(stack, url).jti));
async function budgetOf(url: string) {
  const [row] = await stack.db
    .select()
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(eq(grants.id, claimsOf(stack, url).jti));
  if (!row) throw new Error('no such grant');
  return row.budgets;
}
/** Entries that wait in Redis for the ledger. */
const waiting = () => total((at) => stack.redis.xlen(keys.usage(at)));

/** Adds settled calls to a grant's stream as `settle` writes them, with some fields changed. */
async function settleBare(
  url: string,
  changes: readonly { hold?: string; uses?: number; cost?: string; mod?: string; lin?: unknown }[],
) {
  const { prt, jti, sub } = claimsOf(stack, url);
  const [grant] = await stack.db.select().from(grants).where(eq(grants.id, jti));
  const pipeline = changes.map(
    ({ hold = randomBytes(16).toString('hex'), uses = 1, cost = '', mod, lin }) => {
      const record = JSON.stringify({
        acc: grant?.accountId,
        ses: sub,
        grt: jti,
        prv: 'openai',
        beg: Date.now(),
        ...{ mod, lin },
      });
      const fields = {
        hold,
        grant: jti,
        budgets: grant?.budgetId ?? '',
        uses: String(uses),
        cost,
        outcome: 'settled',
        record,
      };
      return stack.redis.xadd(keys.usage(prt), '*', ...Object.entries(fields).flat());
    },
  );
  await Promise.all(pipeline);
}

describe('settled calls reach the ledger exactly once', () => {
  test('while two issuers drain one Redis', async () => {
    const [a, b] = [await start(), await start()];
    const urls = await Promise.all(Array.from({ length: 10 }, (_, i) => issueOn(i % 2 ? a : b)));
    for (let round = 0; round < 3; round++) {
      expect(await Promise.all(urls.map((url) => times(4, url)))).toEqual(urls.map(() => 4));
      await Promise.all([a.ledger.drainAll(), b.ledger.drainAll()]);
    }
    await Promise.all([a.ledger.drainAll(), b.ledger.drainAll()]);
    for (const url of urls) {
      const rows = await rowsOf(url);
      expect(new Set(rows.map((row) => row.holdId)).size).toBe(12);
      expect(await budgetOf(url)).toMatchObject({ used: 12 });
    }
    expect(await waiting()).toBe(0);
  });

  test('when there are more calls than one transaction writes', async () => {
    const issuer = await start();
    const url = await issueOn(issuer);
    await settleBare(
      url,
      Array.from({ length: 1_201 }, () => ({ cost: '3' })),
    );
    await issuer.ledger.drainAll();
    expect(await rowsOf(url)).toHaveLength(1_201);
    expect(await budgetOf(url)).toMatchObject({ used: 1_201, settledMicrousd: 3_603 });
  });

  test('when a call appears twice in the stream, in one batch or in two', async () => {
    const issuer = await start();
    const url = await issueOn(issuer);
    const [first, second] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')];
    await settleBare(url, [{ hold: first, cost: '5' }, { hold: second }, { hold: first, cost: '5' }]);
    await issuer.ledger.drainAll();
    await settleBare(url, [{ hold: second }, { hold: first, cost: '5' }]);
    await issuer.ledger.drainAll();
    expect(await rowsOf(url)).toHaveLength(2);
    expect(await budgetOf(url)).toMatchObject({ used: 2, settledMicrousd: 5 });
  });

  test('with a null cost if it is unknown, and 0 uses if the use was returned', async () => {
    const issuer = await start();
    const url = await issueOn(issuer, { external_user: 'user-7' });
    await settleBare(url, [
      { cost: '' },
      { cost: '0', uses: 0 },
      { cost: String(Number.MAX_SAFE_INTEGER - 1) },
    ]);
    await issuer.ledger.drainAll();
    const rows = await rowsOf(url);
    expect(rows.map((row) => row.costMicrousd)).toEqual(
      expect.arrayContaining([null, 0, Number.MAX_SAFE_INTEGER - 1]),
    );
    expect(await budgetOf(url)).toMatchObject({ used: 2, settledMicrousd: Number.MAX_SAFE_INTEGER - 1 });
    expect(rows.every((row) => row.settledAt.getTime() > Date.now() - 60_000)).toBe(true);
  });

  test('with any text that a holder sends as the model', async () => {
    const issuer = await start();
    const url = await issueOn(issuer);
    await settleBare(url, [{ mod: 'a\0b' }, { mod: '\ud800' }, { mod: 'm'.repeat(100_000) }, { mod: '' }]);
    await issuer.ledger.drainAll();
    const models = (await rowsOf(url)).map((row) => row.model);
    expect(models).toHaveLength(4);
    expect(models).toEqual(expect.arrayContaining(['ab', 'm'.repeat(255), '']));
  });

  test.each<[string, unknown]>([
    ['an unsafe count', [['input_tokens', -18_014_398_509_481_972, 0]]],
    ['a count that is no number', [['input_tokens', null, 1]]],
    ['a part of a microdollar', [['web_searches', 1, 0.5]]],
    ['more lines than a usage has units', Array.from({ length: 1_000 }, () => ['calls', 0, 1])],
    ['another form', { input_tokens: 1 }],
    ['another sum than the cost', [['web_searches', 1, 4]]],
  ])('without its price lines, if they have %s', async (_what, lin) => {
    const issuer = await start();
    const url = await issueOn(issuer);
    await settleBare(url, [{ cost: '5', lin }, { cost: '5', lin: [['web_searches', 1, 5]] }, { cost: '5' }]);
    await issuer.ledger.drainAll();
    const lines = (await rowsOf(url)).map((row) => row.priceLines);
    expect(lines).toHaveLength(3);
    expect(lines).toEqual(expect.arrayContaining([null, [['web_searches', 1, 5]], null]));
    expect(await budgetOf(url)).toMatchObject({ used: 3, settledMicrousd: 15 });
  });
});

describe('an issuer that cannot trim, or stops between commit and trim', () => {
  const sha = createHash('sha1').update(trimScript.text).digest('hex');

  /** The stack's Redis, on which a `trim` fails. */
  const untrimmed = (fails = () => true) =>
    new Proxy(stack.redis, {
      get(redis, name) {
        const value: unknown = Reflect.get(redis, name, redis);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (name === 'evalsha' && args[0] === sha && fails()) return Promise.reject(new Error('cut off'));
          return (value as (...args: unknown[]) => unknown).apply(redis, args);
        };
      },
    });

  test('trims when it can again, even without another call', async () => {
    let fails = true;
    const issuer = await start({ redis: untrimmed(() => fails) });
    const url = await issueOn(issuer);
    expect(await times(3, url)).toBe(3);
    await eventually(async () => (await rowsOf(url)).length === 3);
    expect(await waiting()).toBe(3);
    fails = false;
    await eventually(async () => (await waiting()) === 0);
    expect(await budgetOf(url)).toMatchObject({ used: 3 });
  });

  test('leaves the trim to the next issuer, which trims at its start and counts no call again', async () => {
    const dying = await start({ redis: untrimmed() });
    const url = await issueOn(dying, { max_uses: 9 });
    expect(await times(5, url)).toBe(5);
    await eventually(async () => ((await rowsOf(url)).length === 5 ? true : undefined));
    expect(await waiting()).toBe(5);
    await stop(dying);
    expect(await waiting()).toBe(5);

    const next = await start();
    await eventually(async () => (await waiting()) === 0);
    expect(await times(2, url)).toBe(2);
    await next.ledger.drainAll();
    expect(await rowsOf(url)).toHaveLength(7);
    expect(await budgetOf(url)).toMatchObject({ used: 7 });
    expect(await waiting()).toBe(0);
    expect(await times(5, url)).toBe(2);
  });
});

describe('Postgres down for a while', () => {
  /** The stack's database, of which some transactions fail. */
  const failing = (fails: () => boolean): Database =>
    new Proxy(stack.db, {
      get(db, name) {
        const value: unknown = Reflect.get(db, name, db);
        if (typeof value !== 'function') return value;
        const refuse = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
        const wanted = (...args: unknown[]) => (value as (...args: unknown[]) => unknown).apply(db, args);
        return name === 'transaction'
          ? (...args: unknown[]) => (fails() ? refuse() : wanted(...args))
          : wanted;
      },
    });

  test('leaves settled calls in Redis, and the ledger catches up without intervention', async () => {
    let away = false;
    const issuer = await start({ db: failing(() => away) });
    const urls = await Promise.all(Array.from({ length: 8 }, () => issueOn(issuer)));
    await Promise.all(urls.map(call));
    await issuer.ledger.drainAll();
    away = true;
    expect(await Promise.all(urls.map((url) => times(3, url)))).toEqual(urls.map(() => 3));
    await expect(issuer.ledger.drainAll()).rejects.toThrow('refused');
    // The issuer of the stack drains them, too, once a second.
    expect(await waiting()).toBeGreaterThan(0);
    away = false;
    await eventually(async () => ((await waiting()) === 0 ? true : undefined));
    for (const url of urls) {
      expect(await rowsOf(url)).toHaveLength(4);
      expect(await budgetOf(url)).toMatchObject({ used: 4 });
    }
  });

  test.runIf(thorough)('for some partitions does not stop the others', async () => {
    let flaky = true;
    // By chance: a fixed turn can meet the same partition in every round.
    const issuer = await start({ db: failing(() => flaky && Math.random() < 0.5) });
    const urls = await Promise.all(Array.from({ length: 16 }, () => issueOn(issuer)));
    await Promise.all(urls.map(call));
    await eventually(async () => ((await waiting()) === 0 ? true : undefined));
    flaky = false;
    await Promise.all(urls.map(call));
    await eventually(async () => ((await waiting()) === 0 ? true : undefined));
    for (const url of urls) expect(await budgetOf(url)).toMatchObject({ used: 2 });
  });
});

describe('Redis after a loss of all data', () => {
  test('is opened with a new epoch, and a grant with 3 of 5 uses in the ledger allows 2 more', async () => {
    const logs: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line) => void logs.push(line) });
    const issuer = await start({ log });
    await start({ log });
    const url = await issueOn(issuer, { max_uses: 5 });
    expect(await times(3, url)).toBe(3);
    await issuer.ledger.drainAll();
    const epochs = async () => {
      const rows = await stack.db.select().from(partitions);
      return new Map(rows.map((row) => [row.id, row.epoch]));
    };
    const before = await epochs();
    // A new issuer may have opened partitions that were not open yet.
    logs.length = 0;
    await flush(stack.redis);
    expect(await call(url)).toBe(503);
    await issuer.ledger.drainAll();
    const after = await epochs();
    for (const [id, epoch] of before) expect(after.get(id)).toBe(epoch + 1);
    expect(await times(10, url)).toBe(2);
    await issuer.ledger.drainAll();
    expect(await budgetOf(url)).toMatchObject({ used: 5 });
    expect(await rowsOf(url)).toHaveLength(5);
    // Rounds at once share the partitions; a line for each partition would drown all else.
    const lines = logs.map((line) => JSON.parse(line) as { msg: string; partitions: number });
    const reopened = lines.filter(({ msg }) => msg.startsWith('Redis restarted or lost data'));
    expect(reopened.length).toBeLessThan(5);
    expect(reopened.reduce((sum, line) => sum + line.partitions, 0)).toBe(before.size);
  });
});
