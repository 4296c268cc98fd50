import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TOKEN_KINDS } from '../../src/facts/rates.ts';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  loadProviders,
  type PriceLine,
  type Pricing,
  pricedModels,
  pricingOf,
  type Usage,
} from '../../src/index.ts';

const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-21T12:00:00Z') };
const MOST = Number.MAX_SAFE_INTEGER;

const pricing = (provider: string, model: string) => {
  const found = BUILT_IN_PROVIDERS.get(provider);
  const priced = found && pricingOf(found, model, NOW);
  if (!priced) throw new Error(`${provider} ${model}`);
  return priced;
};

/** The operator's price of model `m` at OpenAI. */
const operatorPrice = (price: Readonly<Record<string, number>>) => {
  const openai = loadProviders(JSON.stringify({ openai: { pricing: { m: price } } })).get('openai');
  const priced = openai && pricingOf(openai, 'm', NOW);
  if (!priced) throw new Error('no price');
  return priced;
};

const linesOf = (priced: Pricing, usage: Usage): readonly PriceLine[] | undefined => {
  const cost = priced.cost(usage);
  return cost === undefined ? undefined : priced.lines(usage, cost);
};

const listed = [...BUILT_IN_PROVIDERS.values()].flatMap((provider) =>
  pricedModels(provider, BUNDLED_PRICES).flatMap((model) => pricingOf(provider, model, NOW) ?? []),
);

/** In whole microdollars, rounded up once. */
const sumOf = (lines: readonly PriceLine[]) => {
  const each = lines.map(
    ({ unit, count, rate }) => BigInt(count) * BigInt(rate) * (unit.endsWith('_tokens') ? 1n : 1_000_000n),
  );
  return (each.reduce((sum, part) => sum + part, 0n) + 999_999n) / 1_000_000n;
};

test('lines name the tokens of each kind once, the fees, and nothing that was not used', () => {
  const priced = operatorPrice({ input: 1_000_000, output: 2_000_000, cache_read: 100_000, requests: 7 });
  const usage = { input_tokens: 10, cache_read_tokens: 4, output_tokens: 5, output_reasoning_tokens: 3 };
  expect(priced.cost(usage)).toBe(24);
  expect(linesOf(priced, usage)).toEqual([
    { unit: 'input_tokens', count: 6, rate: 1_000_000 },
    { unit: 'cache_read_tokens', count: 4, rate: 100_000 },
    { unit: 'output_tokens', count: 2, rate: 2_000_000 },
    { unit: 'output_reasoning_tokens', count: 3, rate: 2_000_000 },
    { unit: 'requests', count: 1, rate: 7 },
  ]);
  expect(linesOf(priced, {})).toEqual([{ unit: 'requests', count: 1, rate: 7 }]);
});

test('the lines of a usage add up to its cost, also in its tier and with kinds that have no rate', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const usual = fc
    .tuple(fc.nat(1_000_000), fc.nat(100_000), share, share, share)
    .map(([input, output, read, write, thought]) => ({
      input_tokens: input,
      cache_read_tokens: Math.floor(input * read),
      cache_write_tokens: Math.floor(input * (1 - read) * write),
      output_tokens: output,
      output_reasoning_tokens: Math.floor(output * thought),
    }));
  let some = 0;
  let other = 0;
  fc.assert(
    fc.property(fc.constantFrom(...listed), usual, (priced, usage) => {
      const lines = linesOf(priced, usage);
      if (lines === undefined) return;
      expect(sumOf(lines), JSON.stringify({ usage, lines })).toBe(BigInt(priced.cost(usage) ?? -1));
      some += 1;
      if (lines.some(({ unit }) => unit === 'other')) other += 1;
    }),
    { numRuns: 3_000 },
  );
  expect(some).toBeGreaterThan(2_000);
  // Each rounding of a rate that the list lacks may add a microdollar.
  expect(other).toBeLessThan(some / 20);
});

test('sound that was cached is in one line alone, although its provider counts it as sound and as cached', () => {
  const usage = {
    ...{ input_tokens: 1_000, cache_read_tokens: 400, output_tokens: 0 },
    ...{ input_audio_tokens: 300, cache_audio_read_tokens: 100 },
  };
  const priced = pricing('google', 'gemini-2.5-flash');
  expect(linesOf(priced, usage)).toEqual([
    { unit: 'input_tokens', count: 400, rate: 300_000 },
    { unit: 'cache_read_tokens', count: 300, rate: 30_000 },
    { unit: 'input_audio_tokens', count: 200, rate: 1_000_000 },
    { unit: 'cache_audio_read_tokens', count: 100, rate: 100_000 },
  ]);
  expect(priced.cost(usage)).toBe(339);
});

test('kinds that overlap are in the line of the whole where they have its rate', () => {
  const usage = { input_tokens: 1_000, cache_read_tokens: 900, input_audio_tokens: 300, output_tokens: 0 };
  const priced = operatorPrice({ input: 1_000_000, output: 0 });
  expect(linesOf(priced, usage)).toEqual([{ unit: 'input_tokens', count: 1_000, rate: 1_000_000 }]);
});

test('lines of counts at the edge of exact numbers add up to the cost', () => {
  const priced = operatorPrice({ input: 1_000_001, output: 999_999 });
  const usage = { input_tokens: 4_503_599_627_370_495, output_tokens: 4_499_096_032_743_119 };
  expect(linesOf(priced, usage)?.map(({ unit }) => unit)).toEqual(['input_tokens', 'output_tokens']);
  expect(sumOf(linesOf(priced, usage) ?? [])).toBe(BigInt(priced.cost(usage) ?? 0));
});

test('whatever a provider reports, the lines are countable and add up to the cost, or there are none', () => {
  const units = [...TOKEN_KINDS.map((kind) => `${kind}_tokens`), 'web_searches'];
  const own = operatorPrice({ input: 0, output: 1 });
  const count = fc.oneof(
    fc.constantFrom(0, 1, MOST, MOST - 1, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53),
    fc.nat(1_000),
  );
  let some = 0;
  fc.assert(
    fc.property(
      fc.oneof(fc.constant(own), fc.constantFrom(...listed)),
      fc.dictionary(fc.constantFrom(...units), count, { maxKeys: 6 }),
      (priced, usage) => {
        const lines = linesOf(priced, usage);
        if (lines === undefined) return;
        for (const line of lines) {
          expect(Number.isSafeInteger(line.count) && line.count > 0, JSON.stringify({ usage, lines })).toBe(
            true,
          );
          expect(Number.isSafeInteger(line.rate)).toBe(true);
        }
        expect(sumOf(lines), JSON.stringify({ usage, lines })).toBe(BigInt(priced.cost(usage) ?? -1));
        some += 1;
      },
    ),
    { numRuns: 5_000 },
  );
  expect(some).toBeGreaterThan(500);
});
