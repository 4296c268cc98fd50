import { keys } from './keys.ts';
import { keysEndMs } from './open.ts';
import { type RedisClient, script } from './script.ts';

const run = script('revoke');

/** Makes every gateway refuse a grant from its next call on, known to Redis or not. Postgres must say so first. */
export async function revokeGrant(
  redis: RedisClient,
  grant: { readonly id: string; readonly partition: number; readonly expiresAtMs: number },
): Promise<void> {
  await run(redis, [keys.grant(grant.partition, grant.id)], [keysEndMs(grant.expiresAtMs)]);
}
