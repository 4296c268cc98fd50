import { type GrantRef, keys } from './keys.ts';
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

/** Which of these grants of one partition have been revoked, themselves or by their credential: their ids. */
export async function findRevoked(
  redis: RedisClient,
  partition: number,
  grants: readonly Pick<GrantRef, 'id' | 'credentialId'>[],
): Promise<readonly string[]> {
  const names = grants.flatMap(({ id, credentialId }) => [
    keys.grant(partition, id),
    keys.credential(partition, credentialId),
  ]);
  const positions = (await runRevoked(redis, names, [])) as number[];
  return positions.map((position) => grants[position - 1]?.id ?? '');
}
