import { keys } from './keys.ts';
import { keysEndMs } from './open.ts';
import { type RedisClient, script } from './script.ts';

const runRevoke = script('revoke');
const runRevoked = script('revoked');

/** Makes every gateway refuse a grant from its next call on, known to Redis or not. Postgres must say so first. */
export async function revokeGrant(
  redis: RedisClient,
  grant: { readonly id: string; readonly partition: number; readonly expiresAtMs: number },
): Promise<void> {
  await runRevoke(redis, [keys.grant(grant.partition, grant.id)], [keysEndMs(grant.expiresAtMs)]);
}

/** Which of these grants of one partition have been revoked. */
export async function findRevoked(
  redis: RedisClient,
  partition: number,
  ids: readonly string[],
): Promise<readonly string[]> {
  const names = ids.map((id) => keys.grant(partition, id));
  const positions = (await runRevoked(redis, names, [])) as number[];
  return positions.map((position) => ids[position - 1] ?? '');
}
