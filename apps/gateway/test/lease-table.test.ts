import { expect, test } from 'vitest';
import { newHoldId } from '../src/limits/admit.ts';
import { byPartition, LEASE_SLOTS, LeaseTable, monotonicMs } from '../src/limits/lease-table.ts';

test('a table on the same memory shows the holds that are there, by partition', () => {
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

test('a hold that is older than the longest call is left out', () => {
  const table = new LeaseTable();
  table.fill(7, 1, newHoldId());
  const ageMs = monotonicMs() - ([...table.held()][0]?.addedMs ?? 0);
  expect(byPartition([table], ageMs + 60_000).size).toBe(1);
  expect(byPartition([table], -1).size).toBe(0);
});
