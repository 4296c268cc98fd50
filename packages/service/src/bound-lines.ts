/** Lines of one sort that are logged in a second. */
const LINES_A_SECOND = 20;
const EVERY_MS = 1_000;

/**
 * Bounds lines that others cause, so that a flood of them does not fill the disk. Once a second it logs how many were left out, with
 * `said` and the sort under `of`.
 * @returns whether one more line of a sort may be logged. The sort of lines without one is ''
 */
export function boundLines(
  log: { readonly warn: (fields: object, said: string) => void },
  of: string,
  said: string,
): (sort: string) => boolean {
  const counts = new Map<string, number>();
  const flush = () => {
    for (const [sort, count] of counts) {
      if (count <= LINES_A_SECOND) continue;
      log.warn({ [of]: sort === '' ? undefined : sort, left_out: count - LINES_A_SECOND }, said);
    }
    counts.clear();
  };
  return (sort) => {
    if (counts.size === 0) setTimeout(flush, EVERY_MS).unref();
    const count = (counts.get(sort) ?? 0) + 1;
    counts.set(sort, count);
    return count <= LINES_A_SECOND;
  };
}
