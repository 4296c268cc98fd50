import { expect, test } from 'vitest';
import { type FacetRow, valuesOf } from '../src/data/facets.ts';
import { report } from './report.ts';

const [SUMS] = report({ adam: 0 }).data;
const row = (model: string | null, calls: number): FacetRow => ({ ...(SUMS as FacetRow), model, calls });
const callsOf = ({ calls }: FacetRow) => calls;

test('a facet adds up the calls of each value, and has the eight with the most calls', () => {
  const rows = Array.from({ length: 10 }, (_, at) => row(`model-${at}`, at));
  const values = valuesOf([...rows, row('model-1', 20), row(null, 99)], 'model', callsOf, undefined);
  expect(values).toEqual([['model-1', 21], ...[9, 8, 7, 6, 5, 4, 3].map((at) => [`model-${at}`, at])]);
});

test('a facet has the chosen value, which leads back to all values, even if others have more calls or no row has it', () => {
  const rows = Array.from({ length: 10 }, (_, at) => row(`model-${at}`, at + 1));
  const of = (chosen: string) => valuesOf(rows, 'model', callsOf, chosen);
  expect(of('model-9')).toHaveLength(8);
  expect(of('model-0').at(-1)).toEqual(['model-0', 1]);
  expect(of('unknown').at(-1)).toEqual(['unknown', undefined]);
});
