import { parseArgs } from 'node:util';
import { concurrentCalls } from './concurrent.ts';
import { DISASTERS } from './disasters.ts';
import type { Struck } from './strike.ts';
import { canStrike, openDisasters, tellConcurrent, tellStruck } from './strike-all.ts';

/** `npx tsx test/chaos/run.ts [--seconds N] [--seed S]`: prints figures; fails if a limit or the ledger did not hold. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '10' }, seed: { type: 'string' } },
  });
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  const tell = (lines: readonly string[]) => process.stdout.write(`${lines.join('\n')}\n`);
  tell([`seed ${seed}`, '']);
  const together = await concurrentCalls(1_000, seed);
  tell([...tellConcurrent(together), '']);
  const held = together.samples.over === 0 && together.settledMicrousd >= together.limit * 0.95;
  let wrong = together.reckoning.violations.length + together.reckoning.missing.length + (held ? 0 : 1);
  if (canStrike) {
    const disasters = await openDisasters(Number(values.seconds), seed);
    const struck: Struck[] = [];
    for (const disaster of DISASTERS) struck.push(await disasters.strike(disaster));
    await disasters.close();
    tell(tellStruck(struck));
    wrong += struck.reduce((sum, { violations }) => sum + violations.length, 0);
  } else {
    tell(['skipped: what kills servers, for redis-server or postgres is not installed']);
  }
  tell(['', wrong === 0 ? 'nothing wrong' : `${wrong} wrong`]);
  process.exit(wrong === 0 ? 0 : 1);
}

await main();
