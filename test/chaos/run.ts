import { parseArgs } from 'node:util';
import { concurrentCalls } from './concurrent.ts';
import { DISASTERS } from './disasters.ts';
import type { Kind } from './kind.ts';
import { KINDS, POSTS } from './kinds.ts';
import type { Struck } from './strike.ts';
import { canStrike, openDisasters, tellConcurrent, tellStruck } from './strike-all.ts';

/**
 * `npx tsx test/chaos/run.ts [--seconds N] [--seed S] [--only NAME] [--kind posts|sockets|realtime]`: prints figures; fails if a limit or
 * the ledger did not hold. `--only` leaves out all disasters but those with NAME in theirs, and the calls at once. The calls of `sockets` and
 * `realtime` are turns of sockets.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '10' },
      seed: { type: 'string' },
      only: { type: 'string' },
      kind: { type: 'string', default: 'posts' },
    },
  });
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  tell([`seed ${seed}`, '']);
  const kind = KINDS[values.kind] ?? POSTS;
  let wrong = values.only === undefined ? await together(seed) : 0;
  if (canStrike) wrong += await struck(kind, Number(values.seconds), seed, values.only ?? '');
  else tell(['skipped: what kills servers, for redis-server or postgres is not installed']);
  tell(['', wrong === 0 ? 'nothing wrong' : `${wrong} wrong`]);
  process.exit(wrong === 0 ? 0 : 1);
}

const tell = (lines: readonly string[]) => void process.stdout.write(`${lines.join('\n')}\n`);

/** How much is wrong after many calls at once. */
async function together(seed: number): Promise<number> {
  const run = await concurrentCalls(1_000, seed);
  tell([...tellConcurrent(run), '']);
  const { samples, settledMicrousd, limit, reckoning } = run;
  const held = samples.over === 0 && settledMicrousd >= limit * 0.95;
  return reckoning.violations.length + reckoning.missing.length + (held ? 0 : 1);
}

/** How much is wrong after all disasters. */
async function struck(kind: Kind, seconds: number, seed: number, only: string): Promise<number> {
  const disasters = await openDisasters(seconds, seed, kind);
  const all: Struck[] = [];
  try {
    for (const disaster of DISASTERS.filter(({ name }) => name.includes(only)))
      all.push(await disasters.strike(disaster));
  } finally {
    await disasters.close();
  }
  tell(tellStruck(all));
  return all.reduce((sum, { violations }) => sum + violations.length, 0);
}

await main();
