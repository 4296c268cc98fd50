import { expect, test } from 'vitest';
import { BUILT_IN_PROVIDERS, BUNDLED_PRICES, type Provider, whyDead } from '../../src/index.ts';

const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-28T12:00:00Z') };

type Row = readonly [id: string, pays: string, free: string, provider: Provider];

/** Paths as a URL has them: any model where a path names one. */
const asPath = (path: string): string => path.replace(/^\/\*\//, '/v1beta/').replaceAll('*', 'zz-unknown-0');

/** Each endpoint of a provider with a price, and each free call of the same method. */
const ROWS: readonly Row[] = [...BUILT_IN_PROVIDERS].flatMap(([id, provider]) => {
  const free = provider.free?.filter(({ method }) => method === 'POST').map(({ path }) => asPath(path)) ?? [];
  const pays = provider.routes.filter(({ dialect }) => dialect.spend).map(({ path }) => asPath(path));
  return pays.flatMap((path) => free.map((each): Row => [id, path, each, provider]));
});

test('the table has every vendor with a free call of the method of its other calls', () => {
  expect(new Set(ROWS.map(([id]) => id))).toEqual(new Set(['anthropic', 'azure-openai', 'google', 'openai']));
});

test.each(ROWS)(
  'at %s a model without a price ends a URL of %s, whatever the free %s allows',
  (_id, pays, free, provider) => {
    const url = (paths: string[]) => ({ method: 'POST', paths, config: { model: 'zz-unknown-0' } });
    const alone = whyDead(provider, url([pays]), NOW);
    const together = whyDead(provider, url([pays, free]), NOW);
    expect(alone).toBeDefined();
    expect(together).toEqual(alone);
    expect(whyDead(provider, url([free, pays]), NOW)).toEqual(alone);
    // The free call alone is of use.
    expect(whyDead(provider, url([free]), NOW)).toBeUndefined();
  },
);
