/**
 * Writes the second bundled price list, `data/lite-llm.json`: LiteLLM's list, reduced to the vendors, models and rates that
 * Presign reads. The file is `model_prices_and_context_window_backup.json` of the package `litellm` on PyPI.
 *
 *     npx tsx packages/providers/generate/lite-llm-list.ts model_prices_and_context_window_backup.json 1.110.2 2026-11-20
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { readPriceList } from '../src/prices/price-list.ts';

const [file, version, date] = process.argv.slice(2);
if (file === undefined || version === undefined || date === undefined) {
  throw new Error('Name the file, the version of litellm, and the day of its release.');
}
const { providers } = readPriceList(readFileSync(file, 'utf8'), { source: 'file', date });
const list = [...providers].map(([id, { models }]) => ({
  id,
  models: models.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
}));
const lines = list.map(
  ({ id, models }) =>
    `{"id":${JSON.stringify(id)},"models":[\n${models.map((model) => JSON.stringify(model)).join(',\n')}\n]}`,
);
const to = new URL('../data/lite-llm.json', import.meta.url);
writeFileSync(
  to,
  `{"version":${JSON.stringify(version)},"date":${JSON.stringify(date)},"providers":[\n${lines.join(',\n')}\n]}\n`,
);
