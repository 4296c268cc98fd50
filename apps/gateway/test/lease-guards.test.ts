import { connectRedis } from '@presign/limits';
import { NO_WORK } from '@presign/service/metrics';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { newHoldId } from '../src/limits/admit.ts';
import { monotonicMs } from '../src/limits/lease-table.ts';
import { startLeases } from '../src/limits/leases.ts';
import { OUTAGE_MS } from '../src/limits/retry.ts';

const LEASE_MS = 3_600_000;
const CHECKED_EVERY_MS = LEASE_MS / 12;

test('a call whose place is not renewed any more is cut, although its partition is renewed', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  // No renewal is due yet, so none is missed without a connection.
  const redis = connectRedis('redis://127.0.0.1:1', () => {});
  const metrics = { leasesExpired: () => {}, work: () => NO_WORK };
  const leases = startLeases({ redis, leaseMs: LEASE_MS, metrics, log: pino({ level: 'silent' }) });
  try {
    const cut: string[] = [];
    const begin = (name: string, longestMs: number) => {
      const lease = { partition: 3, holdId: newHoldId(), askedMs: monotonicMs() };
      leases.add({ ...lease, microusd: 0, longestMs });
      leases.guard(lease, () => void cut.push(name));
      return lease;
    };
    begin('runs', 60_000);
    begin('stuck', -OUTAGE_MS - 1);
    const ended = begin('ended', -OUTAGE_MS - 1);
    leases.remove(ended.holdId);
    await vi.advanceTimersByTimeAsync(CHECKED_EVERY_MS);
    expect(cut).toEqual(['stuck']);
  } finally {
    await leases.close();
    redis.disconnect();
    vi.useRealTimers();
  }
});
