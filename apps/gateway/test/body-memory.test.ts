import { expect, test } from 'vitest';
import { bodyMemory, movable } from '../src/share/body-memory.ts';

const KIB = 1024;

test('large bodies leave an eighth of the memory to small ones, and all bodies together stay within the total', () => {
  const { newReservation } = bodyMemory(800 * KIB, 800 * KIB);
  const [large, second, small, third] = [
    newReservation(),
    newReservation(),
    newReservation(),
    newReservation(),
  ];
  expect(large.reserve(700 * KIB)).toBe(true);
  expect(large.reserve(1)).toBe(false);
  expect(second.reserve(64 * KIB + 1)).toBe(false);
  expect(second.reserve(64 * KIB)).toBe(true);
  expect(second.reserve(1)).toBe(false);
  expect(small.reserve(36 * KIB)).toBe(true);
  expect(third.reserve(1)).toBe(false);
});

test('released memory is free for others, and a second release changes nothing', () => {
  const { newReservation } = bodyMemory(800 * KIB, 800 * KIB);
  const [first, second] = [newReservation(), newReservation()];
  expect(first.reserve(700 * KIB)).toBe(true);
  first.release();
  first.release();
  expect(second.reserve(700 * KIB)).toBe(true);
  expect(first.reserve(65 * KIB)).toBe(false);
});

test('the small bodies of one URL leave room for those of others', () => {
  const { newReservation } = bodyMemory(800 * KIB, 16 * KIB);
  const of = (url: string) => {
    const reservation = newReservation();
    reservation.belongsTo(url);
    return reservation;
  };
  let taken = 0;
  while (taken < 1_000 && of('attacker').reserve(10 * KIB)) taken++;
  // A quarter of the 700 KiB for large bodies, and half of the 100 KiB for small ones.
  expect(taken).toBe(22);
  expect(of('bystander').reserve(64 * KIB)).toBe(true);
});

test.each([1, 5_000, 9_000, 70_000])(
  '%i bytes are moved to another thread, and the shared buffer pool is not',
  (size) => {
    const other = Buffer.from('other');
    const part = Buffer.from('x'.repeat(size));
    const moved = structuredClone<Uint8Array>(part, { transfer: movable([part]) });
    expect(Buffer.from(moved).toString()).toBe('x'.repeat(size));
    expect(other.toString()).toBe('other');
  },
);
