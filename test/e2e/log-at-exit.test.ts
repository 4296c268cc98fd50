import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const GATEWAY = fileURLToPath(new URL('../../apps/gateway', import.meta.url));

/** Runs a program with a log that gathers its lines; returns the lines that reached its reader. */
async function linesOf(program: string): Promise<number[]> {
  const start = `import { GATHERED, startLog } from '@presign/service/log'; const log = startLog({}, GATHERED);`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', start + program];
  const child = spawn(process.execPath, args, { cwd: GATEWAY, stdio: ['ignore', 'pipe', 'inherit'] });
  const [written] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return written
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { at: number }).at);
}

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);
const log = (count: number) =>
  `for (let at = 0; at < ${count}; at++) log.info({ at, filler: 'x'.repeat(100) });`;

test.each([
  ['a process that exits at once', 3, 'process.exit(1);'],
  ['a process that exits with many lines', 200, 'process.exit(1);'],
  ['a process that ends by itself', 3, ''],
  ['a process that goes on until its lines are written', 2_000, 'setTimeout(() => {}, 300);'],
])('%s loses no line of its log', async (_name, count, end) => {
  expect(await linesOf(log(count) + end)).toEqual(upTo(count));
});
