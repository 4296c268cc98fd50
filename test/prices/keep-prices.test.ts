import { guardedDispatcher } from '@presign/outbound';
import { BUILT_IN_PROVIDERS, pricingOf } from '@presign/providers';
import { acceptList, storedLists } from '@presign/providers/keep-list';
import { keepPrices, PRICES, type PriceKeeper } from '@presign/providers/keep-prices';
import { priceLists } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stores, startStores } from '../harness/stores.ts';
import { listOf, startPriceSource } from './price-source.ts';

/** No timer reads the source during a test. */
const NEVER_MS = 3_600_000;

let stores: Stores;
let source: Awaited<ReturnType<typeof startPriceSource>>;
let keepers: PriceKeeper[];
let logs: { readonly message: string; readonly fields: object }[];

beforeAll(async () => {
  stores = await startStores();
});
afterAll(() => stores.close());
beforeEach(async () => {
  await stores.db.delete(priceLists);
  source = await startPriceSource(listOf({ m: 1 }));
  keepers = [];
  logs = [];
});
afterEach(async () => {
  await Promise.all(keepers.map((keeper) => keeper.close()));
  await source.close();
});

const note = (fields: object, message: string) => void logs.push({ message, fields });

async function start({
  url = source.url,
  db = stores.db as Database,
  isPublicOnly = false,
  sourceMs = 60_000,
} = {}) {
  const dispatcher = guardedDispatcher(!isPublicOnly);
  const keeper = await keepPrices({
    ...{ db, dispatcher, now: Date.now, everyMs: NEVER_MS },
    ...{ source: { is: 'url', url } as const, sourceMs },
    log: { info: note, warn: note, error: note },
  });
  keepers.push(keeper);
  return keeper;
}

/** Dollars for a million tokens, or undefined. */
function dollars(keeper: PriceKeeper, model = 'm'): number | undefined {
  const openai = BUILT_IN_PROVIDERS.get('openai');
  const pricing = openai && pricingOf(openai, model, { prices: keeper.current(), now: Date.now() });
  return pricing && Number(pricing.rates.input) / 1e6;
}

const sources = (keeper: PriceKeeper) => keeper.status().lists.map((list) => list.source);

test("the operator's list has priority, and the bundled list prices what it omits", async () => {
  source.serve(listOf({ m: 1, 'gpt-4o': 9 }));
  const keeper = await start();
  expect([dollars(keeper), dollars(keeper, 'gpt-4o'), dollars(keeper, 'gpt-4o-mini')]).toEqual([1, 9, 0.15]);
  expect(sources(keeper)).toEqual(['url', 'bundled', 'bundled']);
  expect(logs.map(({ message }) => message)).toEqual(['prices in use']);
});

test('a changed list is used from the next read on', async () => {
  const keeper = await start();
  source.serve(listOf({ m: 5, n: 2 }));
  await keeper.refresh();
  expect([dollars(keeper), dollars(keeper, 'n')]).toEqual([5, 2]);
});

describe('a source that is down', () => {
  const down = () => source.answer((_seen, response) => void response.writeHead(503).end());

  test('leaves the last list in use, reports it, and does not fall back to the bundled list', async () => {
    source.serve(listOf({ 'gpt-4o': 9 }));
    const keeper = await start();
    down();
    await keeper.refresh();
    expect(dollars(keeper, 'gpt-4o')).toBe(9);
    expect(keeper.status().problem).toBe('the source answers 503');
    expect(logs.at(-1)?.message).toBe('prices are not refreshed');
  });

  test('lets a starting service use the last list of any service', async () => {
    source.serve(listOf({ 'gpt-4o': 9 }));
    const first = await start();
    down();
    const second = await start();
    expect(dollars(second, 'gpt-4o')).toBe(9);
    expect(second.status().lists[0]).toEqual(first.status().lists[0]);
    expect(second.status().problem).toBe('the source answers 503');
  });

  test('leaves no price if no list was ever read', async () => {
    down();
    const keeper = await start();
    expect([dollars(keeper, 'gpt-4o'), sources(keeper)]).toEqual([undefined, []]);
    source.serve(listOf({ 'gpt-4o': 9 }));
    await keeper.refresh();
    expect([dollars(keeper, 'gpt-4o'), keeper.status().problem]).toEqual([9, undefined]);
  });
});

test.each([
  ['the same text', undefined],
  ['another one', listOf({ m: 2 })],
])(
  'a stored list from another version is not an outage of Postgres while the source has %s',
  async (_what, next) => {
    const first = await start();
    expect(dollars(first)).toBe(1);
    await stores.db
      .update(priceLists)
      .set({ list: '{"of":"a later version"}', ...(next === undefined ? {} : { id: 'x' }) });
    if (next !== undefined) source.serve(next);
    const second = await start();
    expect(second.status().problem).toMatch(/^the stored list has no price/);
    expect(dollars(second)).toBeUndefined();
    // A service that has read it before goes on with it.
    await first.refresh();
    expect(dollars(first)).toBe(1);
  },
);

test('without Postgres no list is accepted, because its drops could not be detected', async () => {
  const away = new Proxy({} as Database, {
    get: () => {
      throw new Error('away');
    },
  });
  const keeper = await start({ db: away });
  expect(dollars(keeper)).toBeUndefined();
  expect(keeper.status().problem).toMatch(/^Postgres does not answer/);
});

describe.each<[string, () => void, string]>([
  [
    'a redirect',
    () => source.answer((_seen, response) => void response.writeHead(302, { location: '/elsewhere' }).end()),
    'the source answers 302',
  ],
  ['a page', () => source.serve('<html>Sign in</html>'), 'the source is not a JSON list of models'],
  ['a list of nothing known', () => source.serve('[]'), 'the source has no price of a known provider'],
  ['too many bytes', () => source.serve(' '.repeat(9_000_000)), 'the source is larger than 8388608 bytes'],
  [
    'an answer that breaks off',
    () =>
      source.answer((_seen, response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('[');
        response.destroy();
      }),
    'the source cannot be read',
  ],
  [
    'bytes that are no text',
    () =>
      source.answer((_seen, response) => void response.writeHead(200).end(Buffer.from([0x5b, 0xff, 0x5d]))),
    'the source is not UTF-8',
  ],
])('%s', (_what, breakIt, problem) => {
  test('changes no price, and is a problem that status reports', async () => {
    const keeper = await start();
    breakIt();
    await keeper.refresh();
    expect(dollars(keeper)).toBe(1);
    expect(keeper.status().problem).toContain(problem);
    expect(source.seen.some(({ url }) => url === '/elsewhere')).toBe(false);
  });
});

test('a source whose answer never ends is abandoned', async () => {
  source.answer((_seen, response) => void response.writeHead(200).write('['));
  const keeper = await start({ sourceMs: 200 });
  expect(keeper.status().problem).toContain('the source cannot be read');
});

test('a private address gets no request', async () => {
  const keeper = await start({ isPublicOnly: true });
  expect([dollars(keeper), source.seen.length]).toEqual([undefined, 0]);
  expect(keeper.status().problem).toContain('BLOCKED_ADDRESS');
});

test('a secret in the address is in no log line, status or row', async () => {
  const url = `${source.url}/list?key=s3cret`;
  const keeper = await start({ url });
  source.answer((_seen, response) => void response.writeHead(500).end());
  await keeper.refresh();
  source.answer((_seen, response) => void response.destroy());
  await keeper.refresh();
  const rows = await stores.db.query.priceLists.findMany();
  expect(rows.length).toBe(1);
  expect(JSON.stringify([logs, keeper.status(), rows])).not.toContain('s3cret');
});

describe('a large drop', () => {
  test('waits for approval, while rises, new models and small drops apply at once', async () => {
    source.serve(listOf({ m: 10, rises: 1, falls: 10 }));
    const keeper = await start();
    const cheap = { m: 1, rises: 2, falls: 9, fresh: 3 };
    source.serve(listOf(cheap));
    await keeper.refresh();
    expect([dollars(keeper), dollars(keeper, 'rises'), dollars(keeper, 'fresh')]).toEqual([10, 2, 3]);
    expect(keeper.status().lists.map(({ waits }) => waits)).toEqual([false, true, false, false]);
    const [{ waiting } = { waiting: undefined }] = await storedLists(PRICES, stores.db, Date.now());
    expect(waiting?.loosened.map(({ model, unit }) => `${model} ${unit}`)).toEqual(['m input', 'm output']);
    expect(await acceptList(PRICES, stores.db, waiting?.id ?? '')).toBe(true);
    await keeper.refresh();
    const after = Object.keys(cheap).map((model) => dollars(keeper, model));
    expect(after).toEqual(Object.values(cheap));
    expect(keeper.status().lists.map(({ waits }) => waits)).toEqual([false, false, false]);
  });

  test('waits at every service, also at one that starts later', async () => {
    source.serve(listOf({ m: 10 }));
    const first = await start();
    source.serve(listOf({ m: 1 }));
    const second = await start();
    await first.refresh();
    expect([dollars(first), dollars(second)]).toEqual([10, 10]);
  });

  test('that the source reverts is forgotten', async () => {
    source.serve(listOf({ m: 10 }));
    const keeper = await start();
    source.serve(listOf({ m: 1 }));
    await keeper.refresh();
    source.serve(listOf({ m: 10 }));
    await keeper.refresh();
    expect(keeper.status().lists.map(({ waits }) => waits)).toEqual([false, false, false]);
    expect((await storedLists(PRICES, stores.db, Date.now())).map(({ waiting }) => waiting)).toEqual([
      undefined,
    ]);
  });

  test('that follows another is compared with the last accepted list', async () => {
    source.serve(listOf({ m: 10 }));
    const keeper = await start();
    for (const dollarsNow of [4, 2]) {
      source.serve(listOf({ m: dollarsNow }));
      await keeper.refresh();
      expect(dollars(keeper)).toBe(10);
    }
    expect(await acceptList(PRICES, stores.db, 'another id')).toBe(false);
  });
});

test('services that read different lists at once store one of them, and all use it', async () => {
  const many = await Promise.all(
    Array.from({ length: 4 }, async (_, n) => {
      source.serve(listOf({ m: 1 + n / 10 }));
      return start();
    }),
  );
  await Promise.all(many.map((keeper) => keeper.refresh()));
  await Promise.all(many.map((keeper) => keeper.refresh()));
  expect(new Set(many.map((keeper) => dollars(keeper))).size).toBe(1);
});
