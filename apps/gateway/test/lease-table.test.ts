import { expect, test, vi } from 'vitest';
import { newHoldId } from '../src/limits/admit.ts';
import {
  byPartition,
  keepRenewing,
  LEASE_SLOTS,
  LeaseTable,
  monotonicMs,
} from '../src/limits/lease-table.ts';

test('a table on shared memory lists the active holds by partition', () => {
  const written = new LeaseTable();
  const [first, second, third] = [newHoldId(), newHoldId(), newHoldId()];
  written.fill(0, 0, first);
  written.fill(1, 63, second);
  written.fill(LEASE_SLOTS - 1, 63, third);
  const read = new LeaseTable(written.memory);
  expect([...byPartition([read], 60_000)]).toEqual([
    [0, [first]],
    [63, [second, third]],
  ]);
  written.free(1);
  written.fill(0, 5, second);
  expect([...byPartition([read], 60_000)]).toEqual([
    [5, [second]],
    [63, [third]],
  ]);
});

test('a hold older than the longest call is left out', () => {
  const table = new LeaseTable();
  table.fill(7, 1, newHoldId());
  const ageMs = monotonicMs() - ([...table.held()][0]?.addedMs ?? 0);
  expect(byPartition([table], ageMs + 60_000).size).toBe(1);
  expect(byPartition([table], -1).size).toBe(0);
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
