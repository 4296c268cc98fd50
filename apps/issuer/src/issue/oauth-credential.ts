import { randomUUID } from 'node:crypto';
import { EncryptionKeys, mac, seal, unseal } from '@presign/crypto';
import type { McpAuth } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { credentialContext, credentials, oauthTokens } from '@presign/schema/tables';
import { eq, inArray, sql } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';

/** OAuth with a refresh token, which its server may exchange for another at every use. */
export type RefreshTokenAuth = Extract<McpAuth, { type: 'oauth' }> & { readonly refresh_token: string };

/** Whether a server's authentication is a refresh token, whose later tokens all its grants must share. */
export const handsInRefreshToken = (auth: McpAuth): auth is RefreshTokenAuth =>
  auth.type === 'oauth' && auth.refresh_token !== undefined;

/**
 * Has requests that hand in the same refresh token wait for each other, until their transactions end. In one
 * order for all, so that no two wait for each other's.
 */
export async function lockOauth(
  tx: Transaction,
  deps: IssuerDeps,
  accountId: string,
  auths: readonly RefreshTokenAuth[],
): Promise<void> {
  const origins = new Set(auths.flatMap((auth) => originsOf(deps.encryptionKeys, accountId, auth)));
  for (const origin of [...origins].sort()) {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${origin}, 0))`);
  }
}

/**
 * The one credential of a refresh token: written when it is handed in for the first time, found again after
 * that, with the tokens it has led to. What else is said of it anew (the client's secret, say) goes before what
 * was said then. Wants `lockOauth`.
 * @returns the credential's id
 */
export async function keepOauthCredential(
  tx: Transaction,
  deps: IssuerDeps,
  accountId: string,
  auth: RefreshTokenAuth,
): Promise<string> {
  const text = JSON.stringify(auth);
  const origins = originsOf(deps.encryptionKeys, accountId, auth);
  const [known] = await tx
    .select({ credential: credentials })
    .from(oauthTokens)
    .innerJoin(credentials, eq(credentials.id, oauthTokens.credentialId))
    .where(inArray(oauthTokens.origin, origins));
  if (known) {
    await amend(tx, deps, known.credential, text);
    return known.credential.id;
  }
  const id = randomUUID();
  const sealed = seal(deps.encryptionKeys, text, credentialContext(accountId, id));
  await tx.insert(credentials).values({ id, accountId, sealed });
  await tx.insert(oauthTokens).values({ credentialId: id, origin: origins[0] ?? '' });
  return id;
}

/** A new version, so that no gateway goes on with a copy of the one before. */
async function amend(
  tx: Transaction,
  { encryptionKeys }: IssuerDeps,
  { id, accountId, sealed, version }: typeof credentials.$inferSelect,
  text: string,
): Promise<void> {
  const context = credentialContext(accountId, id);
  if (unseal(encryptionKeys, sealed, context) === text) return;
  const anew = { sealed: seal(encryptionKeys, text, context), version: version + 1 };
  await tx.update(credentials).set(anew).where(eq(credentials.id, id));
}

/**
 * What a refresh token is found again by, the sealing key's first: a fingerprint under each key, because the row
 * may have been written before the keys were rotated.
 */
export function originsOf(keys: EncryptionKeys, accountId: string, auth: RefreshTokenAuth): string[] {
  const origin = JSON.stringify([accountId, auth.token_url, auth.client_id, auth.refresh_token]);
  return keys.ids.flatMap((id) => {
    const key = keys.get(id);
    return key ? [mac(new EncryptionKeys(new Map([[id, key]])), 'oauth', origin)] : [];
  });
}
