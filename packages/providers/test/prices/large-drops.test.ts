import { describe, expect, test } from 'vitest';
import { BUILT_IN_PROVIDERS, pricingOf, readPriceList } from '../../src/index.ts';
import { largeDrops } from '../../src/prices/prices.ts';

const AT = Date.parse('2026-11-21T12:00:00Z');
const listOf = (...models: readonly object[]) =>
  readPriceList(JSON.stringify([{ id: 'openai', models }]), { source: 'file', date: '2026-11-20' });
const model = (prices: unknown, more: object = {}) => ({ id: 'm', match: { equals: 'm' }, prices, ...more });
const rates = (input_mtok: number, output_mtok = 10) => ({ input_mtok, output_mtok });
const units = async (before: ReturnType<typeof listOf>, after: ReturnType<typeof listOf>) =>
  (await largeDrops(before, after, AT)).map(({ model: name, unit }) => `${name} ${unit}`);

describe('a large drop', () => {
  test('is a rate below half of what it was', async () => {
    const before = listOf(model(rates(10)));
    expect(await largeDrops(before, listOf(model(rates(4.9))), AT)).toEqual([
      { vendor: 'openai', model: 'm', unit: 'input', from: 10_000_000, to: 4_900_000 },
    ]);
    expect(await units(before, listOf(model(rates(5))))).toEqual([]);
    expect(await units(before, listOf(model(rates(50))))).toEqual([]);
    expect(await units(before, listOf(model(rates(0))))).toEqual(['m input']);
  });

  test('is one that begins on a later day', async () => {
    const later = [{ prices: rates(10) }, { constraint: { start_date: '2027-01-01' }, prices: rates(1) }];
    expect(await units(listOf(model(rates(10))), listOf(model(later)))).toEqual(['m input']);
    expect(await units(listOf(model(later)), listOf(model(later)))).toEqual([]);
  });

  test('is one by another entry that is found first', async () => {
    const catchAll = { id: 'cheap', match: { starts_with: 'm' }, prices: rates(1) };
    expect(await units(listOf(model(rates(10))), listOf(catchAll, model(rates(10))))).toEqual(['m input']);
  });

  test('is one at any name that a list spells out', async () => {
    const dated = model(rates(10), { match: { starts_with: 'm-dated' } });
    const cheap = { id: 'other', match: { equals: 'm-dated' }, prices: rates(1) };
    expect(await units(listOf(dated), listOf(cheap, dated))).toEqual(['m-dated input']);
  });

  test('is a model that is left out and costs less in the bundled list', async () => {
    const dear = { id: 'gpt-4o', match: { equals: 'gpt-4o' }, prices: rates(100, 100) };
    expect(await units(listOf(dear, model(rates(1))), listOf(model(rates(1))))).toEqual([
      'gpt-4o input',
      'gpt-4o output',
    ]);
  });

  test('is a smaller context window, because calls hold less by it', async () => {
    const before = listOf(model(rates(10), { context_window: 100_000 }));
    expect(await units(before, listOf(model(rates(10), { context_window: 1_000 })))).toEqual([
      'm context_window',
    ]);
  });

  test('is no new model and no model that is gone from all lists', async () => {
    const other = { id: 'n', match: { equals: 'n' }, prices: rates(1) };
    expect(await units(listOf(model(rates(10))), listOf(other))).toEqual([]);
  });
});

test('of two lists in one layer the dearer rate counts, in hold and cost', () => {
  const openai = BUILT_IN_PROVIDERS.get('openai');
  const lists = [
    listOf(model(rates(10, 1))),
    listOf(model(rates(1, 3)), { ...model(rates(2)), id: 'n', match: { equals: 'n' } }),
  ];
  const at = { prices: { id: 'both', layers: [lists] }, now: AT };
  const price = openai && pricingOf(openai, 'm', at);
  expect(price).toMatchObject({ dearestInput: 10_000_000, dearestOutput: 3_000_000 });
  expect(price?.cost({ input_tokens: 100, output_tokens: 0 })).toBe(1_000);
  expect(price?.cost({ input_tokens: 0, output_tokens: 100 })).toBe(300);
  expect(openai && pricingOf(openai, 'n', at)?.rates.input).toBe(2_000_000);
});
