/**
 * Writes a price list that ships with Presign, reduced to what Presign reads: `data/genai-prices.json` of the output of
 * `genai-prices-json.py`, or `data/lite-llm.json` of LiteLLM's `model_prices_and_context_window_backup.json`. Both are on PyPI. Name the
 * version of the package and the day of its release.
 *
 *     npx tsx packages/providers/generate/bundled-list.ts genai-prices genai-prices.json 0.2.3 2026-11-10
 *     npx tsx packages/providers/generate/bundled-list.ts lite-llm model_prices_and_context_window_backup.json 1.110.2 2026-11-20
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { type PriceList, readPriceList } from '../src/prices/price-list.ts';

type Entry = {
  readonly id: string;
  readonly fallback_model_providers?: readonly string[];
  readonly models: readonly { readonly id: string }[];
};

const [name, file, version, date] = process.argv.slice(2);
if (file === undefined || version === undefined || date === undefined) {
  throw new Error('Name the list, the file, the version of its package, and the day of its release.');
}
const text = readFileSync(file, 'utf8');
const read = readPriceList(text, { source: 'file', date });
const list = name === 'genai-prices' ? genaiPrices(JSON.parse(text) as Entry[], read) : liteLlm(read);
const lines = list.map(({ models, ...provider }) => {
  const fields = JSON.stringify(provider).slice(1, -1);
  return `{${fields},"models":[\n${models.map((model) => JSON.stringify(model)).join(',\n')}\n]}`;
});
writeFileSync(
  new URL(`../data/${name}.json`, import.meta.url),
  `{"version":${JSON.stringify(version)},"date":${JSON.stringify(date)},"providers":[\n${lines.join(',\n')}\n]}\n`,
);

/** The order of the models stays: the first one that matches a name counts. */
function genaiPrices(all: readonly Entry[], { providers }: PriceList): readonly Entry[] {
  const known = all.filter(({ id }) => providers.has(id));
  const others = new Set(known.flatMap((each) => each.fallback_model_providers ?? []));
  const kept = all.filter(({ id }) => providers.has(id) || others.has(id));
  const count = (ids: readonly string[]) =>
    kept.filter(({ id }) => ids.includes(id)).reduce((sum, { models }) => sum + models.length, 0);
  for (const { id, fallback_model_providers: more = [] } of known) {
    const left = count([id, ...more]) - (providers.get(id)?.models.length ?? 0);
    if (left !== 0) throw new Error(`${left} models of ${id} have a form that Presign does not read.`);
  }
  return kept;
}

function liteLlm({ providers }: PriceList): readonly Entry[] {
  return [...providers].map(([id, { models }]) => ({
    id,
    models: models.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  }));
}
