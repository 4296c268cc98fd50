import { readFileSync } from 'node:fs';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  FEE_UNITS,
  type Prices,
  type Provider,
  pricingOf,
  readPriceList,
} from '../packages/providers/src/index.ts';

/**
 * Measures how many models have a price, and how old the bundled list is.
 *
 *     npx tsx bench/price-coverage.ts [--names] [LIST.json…]
 *
 * Each file is a list in a format of PRICES_FILE. Its models are looked up in the bundled list, and then with the file above it.
 * With `--names` the models that have no bundled price, or a lower rate of any kind, are named, and the exit code is 1 if there are any.
 */
const DAY_MS = 86_400_000;
const now = Date.now();
const vendors = [...BUILT_IN_PROVIDERS.values()].filter(({ priceList }) => priceList !== undefined);

type Named = { readonly provider: Provider; readonly model: string };

const modelsOf = (prices: Prices): readonly Named[] =>
  vendors.flatMap((provider) => {
    const listed = prices.layers
      .flat()
      .flatMap(({ providers }) => providers.get(provider.priceList ?? '')?.models ?? []);
    return [...new Set(listed.map(({ id }) => id))].map((model) => ({ provider, model }));
  });

const priced = (models: readonly Named[], prices: Prices) =>
  models.filter(({ provider, model }) => pricingOf(provider, model, { prices, now }) !== undefined);

/** How many times the bundled rates a list's are, for the kind that differs most. Bundled prices hold the dearest rate for a kind without one. */
function dearerThanBundled(
  { provider, model }: Named,
  prices: Prices,
): readonly [kind: string, times: number] {
  const [theirs, ours] = [prices, BUNDLED_PRICES].map((each) =>
    pricingOf(provider, model, { prices: each, now }),
  );
  const dearest = (kind: string) =>
    (kind.startsWith('output') ? ours?.dearestOutput : ours?.dearestInput) ?? 0;
  const kinds = Object.entries(theirs?.rates ?? {}).map(([kind, rate]) => {
    const own = ours?.rates[kind as keyof typeof ours.rates] ?? (isFee(kind) ? 0 : dearest(kind));
    return [`${kind} costs ${rate}, not ${own}`, rate === own ? 1 : rate / own] as const;
  });
  return kinds.reduce<readonly [string, number]>((most, each) => (each[1] > most[1] ? each : most), ['', 1]);
}

const isFee = (kind: string): boolean => FEE_UNITS.some((unit) => unit === kind);

const row = (...cells: readonly (string | number)[]) => console.log(`| ${cells.join(' | ')} |`);

const bundled = modelsOf(BUNDLED_PRICES);
const [list] = BUNDLED_PRICES.layers.flat();
const age = Math.floor((now - Date.parse(list?.date ?? '')) / DAY_MS);
row('list', 'models', 'with a price', 'of them new', 'dearer than bundled', 'over 1.5 × as dear');
row('---', '---', '---', '---', '---', '---');
row(
  `bundled ${list?.id}, ${age} days old`,
  bundled.length,
  priced(bundled, BUNDLED_PRICES).length,
  '',
  '',
  '',
);
const namesModels = process.argv.includes('--names');
const named: string[] = [];
for (const file of process.argv.slice(2).filter((each) => each !== '--names')) {
  const own = readPriceList(readFileSync(file, 'utf8'), { source: 'file', date: '' });
  const alone: Prices = { id: own.id, layers: [[own]] };
  const models = modelsOf(alone);
  const with_ = priced(models, alone);
  const known = priced(with_, BUNDLED_PRICES);
  const dearer = (times: number) => known.filter((each) => dearerThanBundled(each, alone)[1] > times).length;
  const listName = file.split('/').at(-1) ?? '';
  for (const each of with_) {
    const problem = known.includes(each) ? dearerThanBundled(each, alone)[0] : 'is new';
    if (problem !== '') named.push(`${listName}: ${each.provider.id} ${each.model} ${problem}`);
  }
  row(listName, models.length, with_.length, with_.length - known.length, dearer(1), dearer(1.5));
}
if (namesModels) {
  for (const each of named) console.log(each);
  if (named.length > 0) process.exitCode = 1;
}
