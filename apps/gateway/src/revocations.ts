import { findRevoked, type RedisClient } from '@presign/limits';

/** What a revocation must cut: calls that were admitted before it. */
export type Revocations = {
  /** Calls `cut` soon after the grant is revoked, until the returned function is called. */
  readonly watch: (grant: { readonly id: string; readonly partition: number }, cut: () => void) => () => void;
  readonly close: () => void;
};

/** How often grants with calls under way are looked at: an open stream ends within a second of its revocation. */
const EVERY_MS = 500;

/** Looks after the grants of calls under way, one script a partition. */
export function watchRevocations(redis: RedisClient): Revocations {
  /** By partition, then grant: what cuts its calls. */
  const watched = new Map<number, Map<string, Set<() => void>>>();
  const look = setInterval(() => {
    for (const [partition, grants] of watched) void cutRevoked(redis, partition, grants);
  }, EVERY_MS);
  look.unref();
  return {
    watch: ({ id, partition }, cut) => {
      const grants = watched.get(partition) ?? new Map<string, Set<() => void>>();
      const cuts = grants.get(id) ?? new Set();
      watched.set(partition, grants.set(id, cuts.add(cut)));
      return () => {
        cuts.delete(cut);
        if (cuts.size === 0 && grants.get(id) === cuts) grants.delete(id);
        if (grants.size === 0) watched.delete(partition);
      };
    },
    close: () => clearInterval(look),
  };
}

async function cutRevoked(
  redis: RedisClient,
  partition: number,
  grants: ReadonlyMap<string, ReadonlySet<() => void>>,
): Promise<void> {
  // While Redis does not answer nothing is cut; no new call passes either.
  const revoked = await findRevoked(redis, partition, [...grants.keys()]).catch(() => []);
  for (const id of revoked) for (const cut of [...(grants.get(id) ?? [])]) cut();
}
