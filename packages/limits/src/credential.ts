import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { KEYS_KEPT_MS, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { flag } from './reply.ts';
import { script } from './script.ts';

const replaceScript = script('credential/replace', {
  keys: ['partition', 'credential'],
  args: ['version', 'sealed', 'leastMs'],
  reply: flag,
});
const withdrawScript = script('credential/withdraw', {
  keys: ['credential'],
  args: ['leastMs'],
  reply: flag,
});

/** A version of a credential, sealed. */
export type CredentialVersion = { readonly id: string; readonly version: number; readonly sealed: string };

/** A version of a credential as Redis has it. */
export type CredentialCopy = CredentialVersion & { readonly partition: number };

/**
 * How long Redis keeps a new version that no grant has loaded. A gateway may have read the old version from Postgres, and runs `load` long
 * before this time ends.
 */
export const TRACE_MS = 3_600_000;

/**
 * Makes every gateway use this version from its next call on, in all these partitions. Postgres must have committed
 * it. Throws what ioredis throws when a partition did not answer; the whole may be repeated.
 */
export const replaceCredential = (
  redis: RedisClient,
  { id, version, sealed }: CredentialVersion,
  partitions: readonly number[],
): Promise<void> =>
  inEachPartition(partitions, (at) =>
    replaceScript.run(redis, {
      keys: { partition: keys.partition(at), credential: keys.credential(at, id) },
      args: { version, sealed, leastMs: TRACE_MS },
    }),
  );

/**
 * Makes every gateway refuse all grants of a credential from their next call on, in all these partitions, and
 * erases what was sealed. The tombstone lives longer than any call that runs now. Postgres must have committed the
 * change. Throws as `replaceCredential` does.
 */
export const withdrawCredential = (
  redis: RedisClient,
  id: string,
  partitions: readonly number[],
): Promise<void> =>
  inEachPartition(partitions, (at) =>
    withdrawScript.run(redis, {
      keys: { credential: keys.credential(at, id) },
      args: { leastMs: KEYS_KEPT_MS },
    }),
  );

/** Replaces the seal of a copy, unless the copy is gone or has a later version; returns whether it did. */
export const resealCopy = (
  redis: RedisClient,
  { partition: at, id, version, sealed }: CredentialCopy,
): Promise<boolean> =>
  replaceScript.run(redis, {
    keys: { partition: keys.partition(at), credential: keys.credential(at, id) },
    args: { version, sealed, leastMs: undefined },
  });

/** Reads a credential as Redis keeps it. Throws what ioredis throws. */
export async function findCredential(
  redis: RedisClient,
  partition: number,
  id: string,
): Promise<Omit<CredentialVersion, 'id'> | undefined> {
  const [version, sealed] = await redis.hmget(keys.credential(partition, id), 'version', 'sealed');
  return version && sealed ? { version: Number(version), sealed } : undefined;
}

/** Keys that one step of a scan looks at. */
const SCAN_STEP = 500;

/**
 * Yields every copy of a credential that Redis has, a few at a time. A copy that stands all the while is seen at
 * least once; one that appears or disappears meanwhile may be missed (Redis manual, SCAN).
 */
export async function* scanCredentials(redis: RedisClient): AsyncGenerator<readonly CredentialCopy[]> {
  for await (const names of scanKeys(redis, 'credential')) {
    const copies = await Promise.all(names.map((name) => readCopy(redis, name)));
    yield copies.filter((copy) => copy !== undefined);
  }
}

/** Deletes all seeds (see `seeder`). Throws what ioredis throws. */
export async function dropSeeds(redis: RedisClient): Promise<void> {
  for await (const names of scanKeys(redis, 'fresh'))
    await Promise.all(names.map((name) => redis.unlink(name)));
}

async function* scanKeys(
  redis: RedisClient,
  kind: 'credential' | 'fresh',
): AsyncGenerator<readonly string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  for (const node of nodes) {
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const [next, names] = await node.scan(cursor, 'MATCH', `presign:{p*}:${kind}:*`, 'COUNT', SCAN_STEP);
      cursor = next;
      yield names;
    }
  }
}

async function readCopy(redis: RedisClient, name: string): Promise<CredentialCopy | undefined> {
  const [, digits, id] = /^presign:\{p(\d+)\}:credential:(.+)$/.exec(name) ?? [];
  if (digits === undefined || id === undefined) return undefined;
  const partition = Number(digits);
  const found = await findCredential(redis, partition, id);
  return found && { partition, id, ...found };
}

/** A partition that does not answer is asked again so often, so far apart. */
const TRIES = 3;
const PAUSE_MS = 100;

/** Runs in every partition, again where it failed; throws a failure of the last try. */
export async function inEachPartition(
  partitions: readonly number[],
  run: (at: number) => Promise<unknown>,
): Promise<void> {
  let left = partitions;
  for (let tries = 1; ; tries++) {
    const results = await Promise.allSettled(left.map(run));
    const failed = results.find((each) => each.status === 'rejected');
    if (!failed) return;
    if (tries === TRIES) throw failed.reason;
    left = left.filter((_, i) => results[i]?.status === 'rejected');
    await pause(PAUSE_MS);
  }
}
