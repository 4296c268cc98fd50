import type { Logger } from 'pino';

/** Refused requests that are logged in a second: of one API key, and of all requests together that show no valid one. */
const LINES_A_SECOND = 20;
const EVERY_MS = 1_000;

/**
 * Bounds the lines of refused requests, so that a flood of them does not fill the disk. Once a second it logs how many were left out.
 * @returns whether one more line may be logged, by the id of the API key, or '' for all requests that have none
 */
export function boundLines(log: Logger): (apiKey: string) => boolean {
  const counts = new Map<string, number>();
  const flush = () => {
    for (const [apiKey, count] of counts) {
      if (count <= LINES_A_SECOND) continue;
      const left_out = count - LINES_A_SECOND;
      log.warn({ api_key: apiKey === '' ? undefined : apiKey, left_out }, 'refused requests were not logged');
    }
    counts.clear();
  };
  return (apiKey) => {
    if (counts.size === 0) setTimeout(flush, EVERY_MS).unref();
    const count = (counts.get(apiKey) ?? 0) + 1;
    counts.set(apiKey, count);
    return count <= LINES_A_SECOND;
  };
}
