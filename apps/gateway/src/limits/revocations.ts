import { findRevoked, type GrantRef, type RedisClient, type Revoked } from '@presign/limits';
import type { Work } from '@presign/service/metrics';
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
export function watchRevocations(redis: RedisClient, work: Work): Revocations {
  const watched = new Bag<Watched>();
  const look = async () => {
    work.begins();
    const partitions = [...byPartition(watched)];
    const looked = await Promise.all(
      partitions.map(([partition, grants]) => cutRevoked(redis, partition, grants, watched)),
    );
    if (!looked.includes(false)) work.succeeds();
  };
  const timer = setInterval(() => void look(), EVERY_MS);
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

/** Returns whether Redis has answered. */
async function cutRevoked(
  redis: RedisClient,
  partition: number,
  grants: ReadonlyMap<string, GrantRef>,
  watched: Iterable<Watched>,
): Promise<boolean> {
  // While Redis does not answer, no call is ended; no new call passes either.
  const found = await findRevoked(redis, partition, [...grants.values()]).catch(() => undefined);
  if (!found?.length) return found !== undefined;
  const revoked = new Map(found.map(({ id, why }) => [id, why]));
  // Not of a copy: a call that ends meanwhile must not be cut any more.
  for (const { ref, cut } of watched) {
    const why = revoked.get(ref.id);
    if (why) cut(why);
  }
  return true;
}
