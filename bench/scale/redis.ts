import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { generateEncryptionKey, readEncryptionKeys, seal } from '@presign/crypto';
import {
  admit,
  type BudgetState,
  connectRedis,
  drain,
  type GrantRef,
  loadGrant,
  type RedisClient,
  redisReady,
  reopen,
  settle,
} from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { freePort } from '@presign/test/harness/free-port.ts';
import { listening, run, temporaryFolder } from '../processes.ts';

const ENCRYPTION = readEncryptionKeys(generateEncryptionKey('k1'));
const PROVIDER_KEY = `sk-${'x'.repeat(48)}`;
const HOLD = { fixedMicrousd: 38, ratePerMtok: 600_000, askedTokens: 500, leastTokens: 16 };
const DURABLE = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'];

/** A Redis server of this run's own, whose partitions are open. */
export async function startRedis(
  settings: readonly string[] = [],
): Promise<{ pid: number; url: string; redis: RedisClient }> {
  const port = await freePort();
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', temporaryFolder('presign-scale-')];
  const pid = run('redis-server', [...place, ...DURABLE, ...settings]);
  await listening(port);
  const url = `redis://127.0.0.1:${port}`;
  const redis = connectRedis(url, console.error);
  await redisReady(redis);
  for (let partition = 0; partition < PARTITIONS; partition++) {
    await reopen(redis, partition, 1);
    await drain(redis, { partition, epoch: 1, lastId: '0-0' }, 1);
  }
  return { pid, url, redis };
}

/** Opens a grant as the gateway does on its first call: 0.25 KB of document, a sealed key of 51 characters. */
export async function openOne(
  redis: RedisClient,
  partition = randomInt(PARTITIONS),
  windows: readonly BudgetState[] = [],
): Promise<GrantRef> {
  const [credentialId, budgetId] = [randomUUID(), randomUUID()];
  const budgetIds = [budgetId, ...windows.map(({ id }) => id)];
  const ids = { acc: randomUUID(), crd: credentialId, budget: budgetIds, key: randomUUID() };
  const ref = { id: randomUUID(), partition, accountId: ids.acc, credentialId, budgetIds };
  const loaded = await loadGrant(redis, {
    ref,
    epoch: 1,
    lastId: '0-0',
    expiresAtMs: Date.now() + 86_400_000,
    signedUntilMs: undefined,
    credential: { version: 1, sealed: seal(ENCRYPTION, PROVIDER_KEY, credentialId) },
    budgets: [
      {
        id: budgetId,
        revision: 1,
        maxUses: 100_000_000,
        used: 0,
        costLimitMicrousd: 1_000_000_000_000,
        settledMicrousd: 0,
        endsWithGrant: true,
      },
      ...windows,
    ],
    doc: JSON.stringify({ ...ids, usr: 'user-123456', lim: true }),
  });
  if (loaded !== 'ok') throw new Error(JSON.stringify(loaded));
  return ref;
}

/** The present windows of so many shared budgets that limit calls, money and tokens. */
export const newWindows = (count: number): BudgetState[] =>
  Array.from({ length: count }, () => ({
    id: randomUUID(),
    revision: 1,
    maxUses: 100_000_000,
    used: 0,
    costLimitMicrousd: 1_000_000_000_000,
    settledMicrousd: 0,
    tokenLimit: 1_000_000_000_000,
    endsWithGrant: false,
    window: { startsMs: Date.now() - 3_600_000, endsMs: Date.now() + 86_400_000 },
  }));

/** A call's work in Redis, with a record as long as those of the gateway. */
export async function callOnce(redis: RedisClient, grant: GrantRef): Promise<void> {
  const holdId = randomBytes(16).toString('hex');
  const begun = recordOf(grant.id, randomUUID());
  const { is } = await admit(redis, grant, {
    ...{ holdId, uses: 1, hold: HOLD, worstTokens: 750, leaseMs: 60_000, record: begun },
  });
  if (is !== 'admitted') throw new Error(is);
  const record = `${begun.slice(0, -1)},"sta":200,"inp":250,"out":450}`;
  await settle(redis, grant, {
    ...{ holdId, epoch: '1', uses: 1, costMicrousd: 308, usedTokens: 700, record },
  });
}

/** The record of a call that has begun, as JSON. */
export const recordOf = (grantId: string, requestId: string): string =>
  JSON.stringify({
    ...{ acc: ACCOUNT, ses: SESSION, grt: grantId, rid: requestId, prv: 'openai', beg: Date.now() },
    ...{ usr: 'user-123456', mod: 'gpt-4o-mini' },
  });
const [ACCOUNT, SESSION] = [randomUUID(), randomUUID()];

/** Does the work of each item, so many at once. */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const lane = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** The median, with the lowest and the highest. */
export function range(figures: readonly number[], digits = 1): string {
  const sorted = [...figures].sort((a, b) => a - b);
  const at = (index: number) => sorted[index]?.toFixed(digits);
  return `${at(sorted.length >> 1)} (${at(0)}–${at(sorted.length - 1)})`;
}
