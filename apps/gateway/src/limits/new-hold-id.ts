import { randomFillSync } from 'node:crypto';

const BYTES = 16;
/** Random bytes are drawn for many ids at once: a call to the system for each took 4% of a call. */
const pool = Buffer.alloc(BYTES * 256);
let next = pool.length;

/** 128 random bits, hex: names one admission for good. */
export function newHoldId(): string {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const id = pool.toString('hex', next, next + BYTES);
  next += BYTES;
  return id;
}
