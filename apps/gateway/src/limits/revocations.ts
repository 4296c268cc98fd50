import { type Ends, findEnds, type GrantRef, type RedisClient } from '@presign/limits';
import type { Work } from '@presign/service/metrics';
import { Bag } from '../bag.ts';

/** Ends calls that were admitted before their grant was revoked, and reads the changed expiry of grants. */
export type Revocations = {
  /**
   * Cuts a call soon after its grant or credential is revoked or its account is suspended. The returned function stops this.
   * @param end gets each new expiry of the grant, which may be later than its token's
   */
  readonly watch: (grant: GrantRef, call: Cuttable, end?: Movable) => () => void;
  readonly close: () => void;
};

/** How often grants with calls in flight are checked. An open stream ends within a second of its revocation. */
const EVERY_MS = 500;

/** A call in flight. */
type Watched = {
  readonly ref: GrantRef;
  readonly call: Cuttable;
  readonly end: Movable | undefined;
  /** The newest end that it knows. */
  endsMs: number | undefined;
};

type Cuttable = { cut(why: 'revoked' | 'suspended'): void };
/** In Unix ms. */
type Movable = { moved(endsMs: number): void };

/** Checks the grants of all calls in flight, with one script per partition. */
export function watchRevocations(redis: RedisClient, work: Work): Revocations {
  const watched = new Bag<Watched>();
  const look = async () => {
    work.begins();
    const partitions = [...byPartition(watched)];
    const looked = await Promise.all(
      partitions.map(([partition, grants]) => endCalls(redis, partition, grants, watched)),
    );
    if (!looked.includes(false)) work.succeeds();
  };
  const timer = setInterval(() => void look(), EVERY_MS);
  timer.unref();
  return {
    watch: (ref, call, end) => watched.add({ ref, call, end, endsMs: undefined }),
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
async function endCalls(
  redis: RedisClient,
  partition: number,
  grants: ReadonlyMap<string, GrantRef>,
  watched: Iterable<Watched>,
): Promise<boolean> {
  // While Redis does not answer, no call is ended, and no new call passes.
  const found = await findEnds(redis, partition, [...grants.values()]).catch(() => undefined);
  if (!found?.length) return found !== undefined;
  const ends = new Map(found.map((each) => [each.id, each]));
  // This does not iterate over a copy, because a call that has ended meanwhile must not be cut.
  for (const each of watched) {
    const end = ends.get(each.ref.id);
    if (end) act(each, end);
  }
  return true;
}

function act(watched: Watched, found: Ends): void {
  if (found.why !== 'moved') watched.call.cut(found.why);
  else if (watched.endsMs !== found.endsMs) {
    watched.endsMs = found.endsMs;
    watched.end?.moved(found.endsMs);
  }
}
