/**
 * Opens each screen of the console in Chromium, over a million calls of 10,000 users of one account in 28 days, and prints for each how long it takes
 * until it is whole, and its requests of the API. Postgres is a real one.
 *
 *     TEST_DATABASE_URL=postgres://… npx tsx bench/scale/console.ts
 *     TEST_DATABASE_URL=postgres://… CALLS=20000 USERS=200 ROUNDS=1 npx tsx bench/scale/console.ts
 *
 * With `LIGHTHOUSE=1` it prints Lighthouse's scores of each screen instead. `SCREENS=Home,URLs` measures these alone. It makes a database of its
 * own and drops it.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startConsole } from '@presign/test/console/console-stack.ts';
import { openKeptChromium } from '@presign/test/harness/chromium.ts';
import { freePort } from '@presign/test/harness/free-port.ts';
import postgres from 'postgres';
import { fillConsole } from './console-data.ts';
import { scoresOf } from './console-lighthouse.ts';
import { type Opened, openScreen, screensOf, signIn } from './console-screens.ts';

const CALLS = Number(process.env.CALLS ?? 1_000_000);
const USERS = Number(process.env.USERS ?? 10_000);
const ROUNDS = Number(process.env.ROUNDS ?? 3);

type Screens = readonly (readonly [name: string, path: string])[];
type Context = Awaited<ReturnType<typeof openKeptChromium>>;

const ends: (() => unknown)[] = [];
try {
  await measure();
} finally {
  // The last that began ends first, also after an error.
  for (const end of ends.reverse()) await end();
}
process.exit();

async function measure(): Promise<void> {
  const stack = await startConsole();
  ends.push(stack.close);
  const sql = postgres(stack.databaseUrl ?? '', { max: 1, onnotice: () => {} });
  ends.push(() => sql.end());
  const filled = await fillConsole(stack, sql, CALLS, USERS);
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'presign-bench-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const context = await openKeptChromium(folder, port);
  ends.push(() => context.close());
  const [page = await context.newPage()] = context.pages();
  await signIn(page, stack.consoleUrl, stack.apiKey);
  // A page that is open asks again and again.
  await page.goto('about:blank');
  const wanted = process.env.SCREENS?.split(',');
  const screens = Object.entries(screensOf(filled)).filter(([name]) => wanted?.includes(name) ?? true);
  console.log(
    `${filled.calls} calls of ${filled.users} users, load ${loadavg()
      .map((each) => each.toFixed(1))
      .join(', ')}`,
  );
  if (process.env.LIGHTHOUSE) await printScores(screens, stack.consoleUrl, port);
  else await printTimes(screens, stack.consoleUrl, context);
}

async function printTimes(screens: Screens, consoleUrl: string, context: Context): Promise<void> {
  const times = new Map<string, Opened[]>(screens.map(([name]) => [name, []]));
  // The first round fills the caches of Postgres, and does not count.
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, path] of screens) {
      const opened = await openScreen(context, `${consoleUrl}#/${path}`);
      if (round > 0) times.get(name)?.push(opened);
    }
  console.log('| Screen | Whole, ms | Longest, ms | Requests | All of them, ms | Longest one, ms |');
  console.log('| --- | --: | --: | --: | --: | --: |');
  for (const [name, rounds] of times) {
    const at = (of: keyof Opened) => median(rounds.map((each) => each[of])).toFixed(0);
    const longest = Math.max(...rounds.map(({ ms }) => ms)).toFixed(0);
    console.log(`| ${[name, at('ms'), longest, at('requests'), at('allMs'), at('longestMs')].join(' | ')} |`);
  }
  console.log(`load ${loadavg()[0]?.toFixed(1)} at the end`);
}

async function printScores(screens: Screens, consoleUrl: string, port: number): Promise<void> {
  console.log('| Screen | Performance | Accessibility | Best practices |');
  console.log('| --- | --: | --: | --: |');
  for (const [name, path] of screens)
    console.log(`| ${[name, ...(await scoresOf(`${consoleUrl}#/${path}`, port))].join(' | ')} |`);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
