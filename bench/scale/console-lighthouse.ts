import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** `npx` fetches it if it is not installed. The newest version that runs on Node 20. */
const LIGHTHOUSE = 'lighthouse@12.8.2';
const CATEGORIES = ['performance', 'accessibility', 'best-practices'] as const;

/**
 * Scores of an address from 0 to 100, by Lighthouse in a new tab of the browser that is debugged at a port. Its cookies stay, and so
 * does the sign-in.
 */
export async function scoresOf(address: string, port: number): Promise<readonly number[]> {
  const options = [
    ...['--quiet', '--output=json', '--output-path=stdout', '--preset=desktop', '--disable-storage-reset'],
    ...[`--port=${port}`, `--only-categories=${CATEGORIES.join(',')}`],
  ];
  const { stdout } = await promisify(execFile)('npx', ['-y', LIGHTHOUSE, address, ...options], {
    maxBuffer: 2 ** 28,
  });
  const { categories } = JSON.parse(stdout) as { categories: Record<string, { score: number | null }> };
  return CATEGORIES.map((name) => Math.round(100 * (categories[name]?.score ?? Number.NaN)));
}
