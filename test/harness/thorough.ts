import { setImmediate } from 'node:timers/promises';

/** Set by `pnpm test:all`: every case instead of a sample, and tests that take over ten seconds. */
export const thorough = Boolean(process.env.TEST_ALL);

/** All numbers below `count`; in `pnpm test` both ends and some between. */
export function sampled(count: number): number[] {
  const all = Array.from({ length: count }, (_, i) => i);
  const step = Math.max(1, Math.floor(count / SAMPLE));
  return thorough ? all : all.filter((i) => i < ENDS || i >= count - ENDS || i % step === 0);
}

const SAMPLE = 12;
const ENDS = 3;

/** Resolves once the sockets of this process have read what was written to them. */
export async function socketsRead(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await setImmediate();
}
