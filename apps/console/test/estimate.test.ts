import { expect, test } from 'vitest';
import { appliesTo, budgetsOf } from '../src/data/applies-to.ts';
import { about, averageSize, callCost, callsUnder } from '../src/data/estimate.ts';

const RATES = { input: 150_000, output: 600_000 };

test('the price of a call is its tokens times the price for a million, rounded up', () => {
  expect(callCost(RATES, { input: 300, output: 300 })).toBe(225);
  expect(callCost(RATES, { input: 1, output: 0 })).toBe(1);
  expect(callCost({ input: 150_000, output: 600_000 }, { input: 300, output: 300 })).toBe(225);
  expect(callCost({ input: 150_000 }, { input: 1, output: 1 })).toBeUndefined();
});

test('uses and money both bound the number of calls, and the smaller number counts', () => {
  expect(callsUnder({ dollars: 540_000, uses: undefined }, 225)).toBe(2_400);
  expect(callsUnder({ dollars: 540_000, uses: 20 }, 225)).toBe(20);
  expect(callsUnder({ dollars: undefined, uses: undefined }, 225)).toBeUndefined();
  expect(callsUnder({ dollars: 0, uses: undefined }, 225)).toBe(0);
  expect(callsUnder({ dollars: 100, uses: undefined }, 0)).toBeUndefined();
});

test.each([
  [2_437, 2_400],
  [99, 99],
  [7, 7],
  [0, 0],
  [123_456, 120_000],
])('%i calls are about %i', (calls, shown) => {
  expect(about(calls)).toBe(shown);
});

test('without calls the average is unknown', () => {
  expect(averageSize({ calls: 0, input_tokens: 0, output_tokens: 0 })).toBeUndefined();
  expect(averageSize({ calls: 4, input_tokens: 10, output_tokens: 400 })).toEqual({ input: 3, output: 100 });
});

test.each([
  [{ account: true }, true],
  [{ external_user: 'adam' }, true],
  [{ external_user: '*' }, true],
  [{ external_user: 'grace' }, false],
  [{ api_key: 'own' }, true],
  [{ api_key: 'other' }, false],
  [{ virtual_key: 'vk_1' }, false],
  [{ metadata: { team: 'blue' } }, true],
  [{ metadata: { team: '*' } }, true],
  [{ metadata: { plan: '*' } }, false],
] as const)('a budget of %j and a request', (scope, applies) => {
  const request = { external_user: 'adam', metadata: { team: 'blue' } };
  expect(appliesTo({ scope, deleted_at: null }, request, 'own')).toBe(applies);
  expect(appliesTo({ scope, deleted_at: 1 }, request, 'own')).toBe(false);
});

test('a template counts only while its user or value has no budget of that window, and a deleted template never counts', () => {
  const budget = { kind: 'budget', window: 'month', deleted_at: null, template: 't' } as const;
  const each = { ...budget, id: 't', kind: 'template', scope: { external_user: '*' } } as const;
  const adam = { ...budget, id: 'adam', scope: { external_user: 'adam' } };
  const grace = { ...budget, id: 'grace', scope: { external_user: 'grace' } };
  const daily = { ...adam, id: 'daily', window: 'day' } as const;
  const team = { ...each, id: 'team', scope: { metadata: { team: '*' } } };
  const idsOf = (...of: Parameters<typeof budgetsOf>[0]) =>
    budgetsOf(of, { external_user: 'adam', metadata: { team: 'blue' } }, undefined).map(
      (one) => (one as { id?: string }).id,
    );
  expect(idsOf(each, adam, grace)).toEqual(['adam']);
  expect(idsOf(each, grace, daily, team)).toEqual(['t', 'daily', 'team']);
  expect(idsOf(each, { ...adam, deleted_at: 1 })).toEqual(['t']);
});
