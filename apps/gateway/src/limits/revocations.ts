import { findRevoked, type GrantRef, type RedisClient, type Revoked } from '@presign/limits';
import { Bag } from '../bag.ts';

/** Ends calls that were admitted before their grant was revoked. */
export type Revocations = {
  /**
   * Calls `cut` soon after the grant or its credential is revoked, or its account is suspended, until the returned function is called.
   */
  readonly watch: (grant: GrantRef, cut: Cut) => () => void;
  readonly close: () => void;
};

/** How often grants with calls under way are checked. An open stream ends within a second of its revocation. */
const EVERY_MS = 500;

/** A call under way. */
type Watched = { readonly ref: GrantRef; readonly cut: Cut };

type Cut = (why: Revoked['why']) => void;

/** Checks the grants of all calls under way, with one script per partition. */
export function watchRevocations(redis: RedisClient): Revocations {
  const watched = new Bag<Watched>();
  const timer = setInterval(() => {
    for (const [partition, grants] of byPartition(watched))
      void cutRevoked(redis, partition, grants, watched);
  }, EVERY_MS);
  timer.unref();
  return {
    watch: (ref, cut) => watched.add({ ref, cut }),
    close: () => clearInterval(timer),
  };
}

/** The grants of these calls, by partition and id. */
function byPartition(calls: Iterable<Watched>): Map<number, Map<string, GrantRef>> {
  const partitions = new Map<number, Map<string, GrantRef>>();
  for (const { ref } of calls) {
    const grants = partitions.get(ref.partition) ?? new Map<string, GrantRef>();
    partitions.set(ref.partition, grants.set(ref.id, ref));
  }
  return partitions;
}

async function cutRevoked(
  redis: RedisClient,
  partition: number,
  grants: ReadonlyMap<string, GrantRef>,
  watched: Iterable<Watched>,
): Promise<void> {
  // While Redis does not answer, no call is ended; no new call passes either.
  const found = await findRevoked(redis, partition, [...grants.values()]).catch(() => []);
  if (found.length === 0) return;
  const revoked = new Map(found.map(({ id, why }) => [id, why]));
  // Not of a copy: a call that ends meanwhile must not be cut any more.
  for (const { ref, cut } of watched) {
    const why = revoked.get(ref.id);
    if (why) cut(why);
  }
}
