import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  cheapestCall,
  loadProviders,
  type Prices,
  type Provider,
  readPriceList,
} from '../../src/index.ts';

const NOW = Date.parse('2026-11-28T12:00:00Z');
const vendor = (id: string) => BUILT_IN_PROVIDERS.get(id) ?? expect.unreachable(id);
const CHAT = { method: 'POST', paths: ['/v1/chat/completions'], config: {}, models: null };

const listOf = (...names: string[]): Prices => {
  const models = names.map((id) => ({
    id,
    match: { equals: id },
    prices: { input_mtok: RATES[id], output_mtok: RATES[id] },
  }));
  const list = readPriceList(JSON.stringify([{ id: 'openai', models }]), {
    source: 'file',
    date: '2026-11-20',
  });
  return { id: names.join(), layers: [[list]] };
};
const RATES: Readonly<Record<string, number>> = { dear: 900, middle: 30, cheap: 2, fair: 10 };

test.each([
  [['cheap', 'middle', 'dear', 'fair']],
  [['dear', 'cheap', 'fair', 'middle']],
  [['middle', 'fair', 'dear', 'cheap']],
])('of %j the cheapest model is named, with the price of its call', async (names) => {
  const at = { prices: listOf(...names), now: NOW };
  const of = (config: object) => cheapestCall(vendor('openai'), { ...CHAT, config: { ...config } }, 0, at);
  const fixed = await of({ model: 'cheap' });
  expect(fixed).toEqual({ model: 'cheap', microusd: expect.any(Number) });
  expect(await of({})).toEqual(fixed);
});

test('before its list is read, a provider may have cheaper models than those of the operator', async () => {
  const pricing = { dear: { input: 900_000_000, output: 900_000_000 } };
  const provider =
    loadProviders(JSON.stringify({ openai: { pricing } })).get('openai') ?? expect.unreachable();
  const judge = (prices: Prices) => cheapestCall(provider, CHAT, 1, { prices, now: NOW });
  expect(await judge({ id: 'none', layers: [] })).toBeUndefined();
  expect(await judge(listOf('cheap', 'fair'))).toMatchObject({ model: 'cheap' });
});

test('searches judge few models in a turn of the event loop, however many requests wait for them', async () => {
  const prices = { ...BUNDLED_PRICES, id: 'not looked up before' };
  let [all, ofTurn, most] = [0, 0, 0];
  const counted = (provider: Provider): Provider => ({
    ...provider,
    publishedRates: (model) => {
      all += 1;
      ofTurn += 1;
      most = Math.max(most, ofTurn);
      return provider.publishedRates?.(model);
    },
  });
  let isOver = false;
  const countTurns = async () => {
    for (; !isOver; ofTurn = 0) await nextTurn();
  };
  const counting = countTurns();
  const limits = [...Array(40).keys()];
  const ask = (provider: Provider) =>
    Promise.all(limits.map((limit) => cheapestCall(provider, CHAT, limit / 40, { prices, now: NOW })));
  const found = await Promise.all(['openai', 'mistral'].map((id) => ask(counted(vendor(id)))));
  isOver = true;
  await counting;
  for (const each of found) {
    expect(each[0]).toEqual({ model: expect.any(String), microusd: expect.any(Number) });
    expect(new Set(each.map((one) => JSON.stringify(one))).size).toBe(1);
  }
  expect(all).toBeGreaterThan(100);
  expect(most).toBeLessThanOrEqual(7);
});
