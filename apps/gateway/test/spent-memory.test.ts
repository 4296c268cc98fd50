import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { expect, test } from 'vitest';
import { freeSpentBodies } from '../src/share/spent-memory.ts';

setFlagsFromString('--expose-gc');

const MIB = 1024 * 1024;
const buffersMib = () => process.memoryUsage().arrayBuffers / MIB;

test('bodies that are sent are freed before V8 collects its whole heap for them', async () => {
  const before = buffersMib();
  for (let body = 0; body < 28; body++) {
    Buffer.allocUnsafeSlow(MIB);
    freeSpentBodies();
    await turn();
  }
  // V8 itself would keep all of them.
  await expect.poll(() => buffersMib() - before, { timeout: 60_000 }).toBeLessThan(24);
});
