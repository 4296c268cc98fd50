import { findRevoked, type GrantRef, type RedisClient } from '@presign/limits';

/** Ends calls that were admitted before their grant was revoked. */
export type Revocations = {
  /** Calls `cut` soon after the grant or its credential is revoked, until the returned function is called. */
  readonly watch: (grant: GrantRef, cut: () => void) => () => void;
  readonly close: () => void;
};

/** How often grants with calls under way are checked. An open stream ends within a second of its revocation. */
const EVERY_MS = 500;

/** A grant with calls under way. */
type Watched = { readonly ref: GrantRef; readonly cuts: Set<() => void> };

/** Checks the grants of all calls under way, with one script per partition. */
export function watchRevocations(redis: RedisClient): Revocations {
  const watched = new Map<number, Map<string, Watched>>();
  const timer = setInterval(() => {
    for (const [partition, grants] of watched) void cutRevoked(redis, partition, grants);
  }, EVERY_MS);
  timer.unref();
  return {
    watch: (ref, cut) => {
      const { id, partition } = ref;
      const grants = watched.get(partition) ?? new Map<string, Watched>();
      const grant = grants.get(id) ?? { ref, cuts: new Set() };
      grant.cuts.add(cut);
      watched.set(partition, grants.set(id, grant));
      return () => {
        grant.cuts.delete(cut);
        if (grant.cuts.size === 0 && grants.get(id) === grant) grants.delete(id);
        if (grants.size === 0) watched.delete(partition);
      };
    },
    close: () => clearInterval(timer),
  };
}

async function cutRevoked(
  redis: RedisClient,
  partition: number,
  grants: ReadonlyMap<string, Watched>,
): Promise<void> {
  const refs = Array.from(grants.values(), ({ ref }) => ref);
  // While Redis does not answer, no call is ended; no new call passes either.
  const revoked = await findRevoked(redis, partition, refs).catch(() => []);
  for (const id of revoked) for (const cut of [...(grants.get(id)?.cuts ?? [])]) cut();
}
