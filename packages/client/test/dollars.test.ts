import { expect, test } from 'vitest';
import { microdollars } from '../src/index.ts';
import { json, pretendIssuer } from './issuer.ts';

test.each([
  [0.05, 50_000],
  ['0.05', 50_000],
  [1.1, 1_100_000],
  ['1.10000000', 1_100_000],
  [0, 0],
  [0.000001, 1],
  ['9007199254.740991', Number.MAX_SAFE_INTEGER],
])('%j dollars are %d microdollars', (dollars, expected) => {
  expect(microdollars(dollars)).toBe(expected);
});

test.each([0.1 + 0.2, 1e-7, -1, Number.NaN, 1e21, '', '1e2', '1.', '0.0000001', '9007199254.740992', ' 1'])(
  '%j is refused, because it would be rounded or is not an amount',
  (dollars) => {
    expect(() => microdollars(dollars)).toThrow(TypeError);
  },
);

test('cost_limit_usd is sent as whole microdollars by every method with a cost_limit', async () => {
  const { presign, seen } = await pretendIssuer([json(200, {})]);
  await presign.presign({ provider: 'openai', path: '/v1/x', cost_limit_usd: 0.05 });
  await presign.mcpPresign({ servers: [], cost_limit_usd: '1.10' });
  await presign.changeGrant({ id: 'a', cost_limit_usd: 2 });
  expect(seen.map(({ body }) => JSON.parse(body) as object)).toEqual([
    { provider: 'openai', path: '/v1/x', cost_limit: 50_000 },
    { servers: [], cost_limit: 1_100_000 },
    { cost_limit: 2_000_000 },
  ]);
});

test('nothing is sent if an amount is given in both fields, or would be rounded', async () => {
  const { presign, seen } = await pretendIssuer([json(200, {})]);
  const wanted = { provider: 'openai', path: '/v1/x' };
  await expect(presign.presign({ ...wanted, cost_limit: 1, cost_limit_usd: 1 })).rejects.toThrow(TypeError);
  await expect(presign.presign({ ...wanted, cost_limit_usd: 0.1 + 0.2 })).rejects.toThrow(
    new TypeError(
      'cost_limit_usd: expected dollars of 0 or more with at most six decimals, not 0.30000000000000004. Round it, as in amount.toFixed(6).',
    ),
  );
  await expect(presign.presign({ ...wanted, cost_limit_usd: -1 })).rejects.toThrow(
    new TypeError('cost_limit_usd: expected dollars of 0 or more with at most six decimals, not -1.'),
  );
  // @ts-expect-error no limit is set there
  await presign.createApiKey({ name: 'a', scopes: [], cost_limit_usd: 1 });
  expect(seen).toHaveLength(1);
});
