type OfDay = { readonly day?: string; readonly cost: number };

/**
 * The rest of a limit at the end of each day, in microdollars, between 0 and the limit. It is counted back from what is left now, because
 * the limit may have been changed.
 */
export function leftByDay(
  rows: readonly OfDay[],
  days: readonly string[],
  most: number,
  spent: number,
): number[] {
  const costs = new Map(rows.map(({ day = '', cost }) => [day, cost]));
  let left = most - spent;
  const backwards = days.toReversed().map((day) => {
    const atEnd = Math.min(most, Math.max(0, left));
    left += costs.get(day) ?? 0;
    return atEnd;
  });
  return backwards.toReversed();
}
