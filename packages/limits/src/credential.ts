import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import { keys } from './keys.ts';
import { findCredential } from './open.ts';
import { type RedisClient, script } from './script.ts';

const runReplace = script('replace');
const runWithdraw = script('withdraw');

/** A version of a credential, sealed. */
export type CredentialVersion = { readonly id: string; readonly version: number; readonly sealed: string };

/** A version of a credential as Redis has it. */
export type CredentialCopy = CredentialVersion & { readonly partition: number };

/**
 * How long a trace of a change stands where no grant has opened the credential: far longer than a gateway that
 * read Postgres before the change can take to `open`.
 */
const TRACE_MS = 3_600_000;

/** A partition that does not answer is asked again so often, so far apart. */
const TRIES = 3;
const PAUSE_MS = 100;

/** Keys that one step of a scan looks at. */
const SCAN_STEP = 500;

/**
 * Makes every gateway use this version from its next call on, in all these partitions. Postgres must have it first.
 * Throws what ioredis throws when a partition could not be told; the whole may be repeated.
 */
export const replaceCredential = (
  redis: RedisClient,
  { id, version, sealed }: CredentialVersion,
  partitions: readonly number[],
): Promise<void> =>
  inEach(partitions, (at) =>
    runReplace(redis, [keys.partition(at), keys.credential(at, id)], [version, sealed, TRACE_MS]),
  );

/**
 * Makes every gateway refuse all grants of a credential from their next call on, in all these partitions, and
 * erases what was sealed. Postgres must say so first. Throws as `replaceCredential`.
 */
export const withdrawCredential = (
  redis: RedisClient,
  id: string,
  partitions: readonly number[],
): Promise<void> => inEach(partitions, (at) => runWithdraw(redis, [keys.credential(at, id)], [TRACE_MS]));

/** Puts another seal in place of a copy's, unless it is gone or of a later version by now; tells whether it did. */
export async function resealCopy(
  redis: RedisClient,
  { partition: at, id, version, sealed }: CredentialCopy,
): Promise<boolean> {
  const names = [keys.partition(at), keys.credential(at, id)];
  return (await runReplace(redis, names, [version, sealed, ''])) === 1;
}

/**
 * Every copy of a credential that Redis has, a few at a time. A copy that is there all the while is told at least
 * once; one that comes or goes meanwhile may be missed (Redis manual, SCAN).
 */
export async function* scanCredentials(redis: RedisClient): AsyncGenerator<readonly CredentialCopy[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  for (const node of nodes) {
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const [next, names] = await scanStep(node, cursor);
      cursor = next;
      const copies = await Promise.all(names.map((name) => readCopy(redis, name)));
      yield copies.filter((copy) => copy !== undefined);
    }
  }
}

const scanStep = (node: Redis, cursor: string) =>
  node.scan(cursor, 'MATCH', 'presign:{p*}:credential:*', 'COUNT', SCAN_STEP);

async function readCopy(redis: RedisClient, name: string): Promise<CredentialCopy | undefined> {
  const [, digits, id] = /^presign:\{p(\d+)\}:credential:(.+)$/.exec(name) ?? [];
  if (digits === undefined || id === undefined) return undefined;
  const partition = Number(digits);
  const found = await findCredential(redis, partition, id);
  return found && { partition, id, ...found };
}

/** Runs in every partition, again where it failed; throws the last failure when tries are used up. */
async function inEach(partitions: readonly number[], run: (at: number) => Promise<unknown>): Promise<void> {
  let left = partitions;
  for (let tries = 1; ; tries++) {
    const told = await Promise.allSettled(left.map(run));
    const failed = told.find((each) => each.status === 'rejected');
    if (!failed) return;
    if (tries === TRIES) throw failed.reason;
    left = left.filter((_, i) => told[i]?.status === 'rejected');
    await pause(PAUSE_MS);
  }
}
