import type { UsageReport } from '@presign/client';

export type FacetRow = UsageReport['data'][number];
export type Facet = 'provider' | 'model';
/** A value of a facet with its calls. Undefined: no row has the value. */
export type Value = readonly [value: string, calls: number | undefined];

/** The values of a facet, next to the chosen one. */
const MOST_VALUES = 8;

/** The values with the most calls first. The chosen value is always among them, so that it can be left. */
export function valuesOf(
  rows: readonly FacetRow[],
  by: Facet,
  callsOf: (row: FacetRow) => number,
  chosen: string | undefined,
): readonly Value[] {
  const calls = new Map<string, number>();
  for (const row of rows) {
    const value = row[by];
    if (value != null) calls.set(value, (calls.get(value) ?? 0) + callsOf(row));
  }
  const most = [...calls]
    .filter(([, sum]) => sum > 0)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_VALUES);
  const isShown = chosen === undefined || most.some(([value]) => value === chosen);
  return isShown ? most : [...most, [chosen, calls.get(chosen)]];
}
