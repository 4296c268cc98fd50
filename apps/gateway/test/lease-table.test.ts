import { expect, test, vi } from 'vitest';
import { newHoldId } from '../src/limits/admit.ts';
import { byPartition, keepRenewing, LEASE_SLOTS, LeaseTable } from '../src/limits/lease-table.ts';

const LONGEST_MS = 60_000;

test('a table on shared memory lists the active holds by partition', () => {
  const written = new LeaseTable();
  const [first, second, third] = [newHoldId(), newHoldId(), newHoldId()];
  written.fill(0, 0, first, LONGEST_MS);
  written.fill(1, 63, second, LONGEST_MS);
  written.fill(LEASE_SLOTS - 1, 63, third, LONGEST_MS);
  const read = new LeaseTable(written.memory);
  expect([...byPartition([read])]).toEqual([
    [0, [first]],
    [63, [second, third]],
  ]);
  written.free(1);
  written.fill(0, 5, second, LONGEST_MS);
  expect([...byPartition([read])]).toEqual([
    [5, [second]],
    [63, [third]],
  ]);
});

test('each hold is renewed for as long as its own call may take', () => {
  const table = new LeaseTable();
  const [ended, longer] = [newHoldId(), newHoldId()];
  table.fill(7, 1, ended, -1);
  table.fill(8, 1, longer, LONGEST_MS);
  expect([...byPartition([new LeaseTable(table.memory)])]).toEqual([[1, [longer]]]);
  // The slot of a hold that was renewed for longer gets the time of the next one.
  table.free(8);
  table.fill(8, 1, ended, -1);
  expect(byPartition([table]).size).toBe(0);
});

test('leases are renewed every third of their length, and a failed renewal is repeated every twelfth', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const failed = [0, 2, 1, 0, 0];
    let renewals = 0;
    const stop = keepRenewing(1_200, async () => failed[renewals++] ?? 0);
    const after = async (parts: number) => {
      await vi.advanceTimersByTimeAsync(parts * 100);
      return renewals;
    };
    // The second and the third one fail, as in two outages.
    const seen = [await after(3), await after(1), await after(4), await after(1), await after(1)];
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect([await after(3), await after(1)]).toEqual([4, 5]);
    stop();
    expect(await after(12)).toBe(5);
  } finally {
    vi.useRealTimers();
  }
});

test('a renewal begins only when the one before has ended', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const ends: (() => void)[] = [];
    const stop = keepRenewing(1_200, () => new Promise((resolve) => ends.push(() => resolve(1))));
    await vi.advanceTimersByTimeAsync(1_200);
    expect(ends).toHaveLength(1);
    ends[0]?.();
    await vi.advanceTimersByTimeAsync(100);
    expect(ends).toHaveLength(2);
    stop();
  } finally {
    vi.useRealTimers();
  }
});
