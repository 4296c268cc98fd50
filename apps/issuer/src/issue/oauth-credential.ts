import { randomUUID } from 'node:crypto';
import { EncryptionKeys, mac, seal, unseal } from '@presign/crypto';
import type { McpAuth } from '@presign/schema';
import { credentialContext, credentials, oauthTokens } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { eq, inArray, sql } from 'drizzle-orm';
import type { RouteDeps } from '../middleware/route-deps.ts';

type Needs = Pick<RouteDeps, 'encryptionKeys'>;

/** OAuth with a refresh token. Its server may replace the token each time it is used. */
export type RefreshTokenAuth = Extract<McpAuth, { type: 'oauth' }> & { readonly refresh_token: string };

/** Whether a server's authentication is a refresh token. All grants with that token must share its later tokens. */
export const handsInRefreshToken = (auth: McpAuth): auth is RefreshTokenAuth =>
  auth.type === 'oauth' && auth.refresh_token !== undefined;

/**
 * Makes requests that hand in the same refresh token wait for each other until their transactions end. All take their
 * locks in one order, so that no two deadlock.
 */
export async function lockOauth(
  tx: Transaction,
  deps: Needs,
  accountId: string,
  auths: readonly RefreshTokenAuth[],
): Promise<void> {
  const origins = new Set(auths.flatMap((auth) => originsOf(deps.encryptionKeys, accountId, auth)));
  for (const origin of [...origins].sort()) {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${origin}, 0))`);
  }
}

/**
 * Writes the credential of a refresh token when the token is handed in for the first time, or again after its
 * credential was erased (`eraseCredentials`). Otherwise it finds that credential with its later tokens, and updates its
 * other fields, such as the client's secret. Call `lockOauth` first.
 * @returns the credential's id
 */
export async function keepOauthCredential(
  tx: Transaction,
  deps: Needs,
  accountId: string,
  auth: RefreshTokenAuth,
): Promise<string> {
  const text = JSON.stringify(auth);
  const origins = originsOf(deps.encryptionKeys, accountId, auth);
  const [known] = await tx
    .select({ credential: credentials })
    .from(oauthTokens)
    .innerJoin(credentials, eq(credentials.id, oauthTokens.credentialId))
    .where(inArray(oauthTokens.origin, origins))
    // Locked until the new grant is committed, so that no sweep erases the credential of a grant that it cannot see
    // yet.
    .for('no key update', { of: credentials });
  if (known && known.credential.sealed !== '') {
    await amend(tx, deps, known.credential, text);
    return known.credential.id;
  }
  const id = randomUUID();
  const sealed = seal(deps.encryptionKeys, text, credentialContext(accountId, id));
  await tx.insert(credentials).values({ id, accountId, sealed });
  await tx.insert(oauthTokens).values({ credentialId: id, origin: origins[0] ?? '' });
  return id;
}

/** Writes a new version, so that no gateway keeps using a copy of the old one. */
async function amend(
  tx: Transaction,
  { encryptionKeys }: Needs,
  { id, accountId, sealed, version }: typeof credentials.$inferSelect,
  text: string,
): Promise<void> {
  const context = credentialContext(accountId, id);
  if (unseal(encryptionKeys, sealed, context) === text) return;
  const next = { sealed: seal(encryptionKeys, text, context), version: version + 1 };
  await tx.update(credentials).set(next).where(eq(credentials.id, id));
}

/**
 * The fingerprints that find a refresh token. There is one for each encryption key, because the row may be older than
 * the last rotation. The fingerprint of the sealing key comes first.
 */
export function originsOf(keys: EncryptionKeys, accountId: string, auth: RefreshTokenAuth): string[] {
  const origin = JSON.stringify([accountId, auth.token_url, auth.client_id, auth.refresh_token]);
  return keys.ids.flatMap((id) => {
    const key = keys.get(id);
    return key ? [mac(new EncryptionKeys(new Map([[id, key]])), 'oauth', origin)] : [];
  });
}
