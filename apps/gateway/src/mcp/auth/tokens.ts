import { type EncryptionKeys, seal, unseal } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { oauthTokensContext } from '@presign/schema/tables';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';

/** The parts of the gateway that authentication to MCP servers needs. */
export type AuthorizerDeps = {
  readonly db: Database;
  readonly dispatcher: Dispatcher;
  readonly encryptionKeys: EncryptionKeys;
  readonly now: () => number;
  readonly log: Logger;
};

/** A client at its authorization server. With a refresh token it acts for the user who gave consent. */
export type OauthClient = {
  /** The credential's id. */
  readonly id: string;
  readonly accountId: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly secret: string | undefined;
  /** The refresh token that the issuer got. */
  readonly refreshToken: string | undefined;
  /** Further parameters of every request to the token endpoint. */
  readonly parameters: { readonly scope?: string; readonly audience?: string };
};

/** The tokens that a token endpoint returned. */
export type Tokens = {
  readonly accessToken: string;
  /** Unix milliseconds, shortly before the access token expires. */
  readonly usableUntilMs: number;
  /** For the next refresh. */
  readonly refreshToken?: string;
};

export type Fetched = { readonly tokens: Tokens } | { readonly refusal: Refusal };

/** The refusal when there is no access token. The message must not quote the authorization server. */
export const authFailed = (message: string): { readonly refusal: Refusal } => ({
  refusal: { code: 'upstream_auth_failed', message },
});

/** Longer lifetimes are cut to this, because the largest numbers cannot be stored. */
const LONGEST_LIFE_MS = 365 * 86_400_000;
const LONGEST_LEEWAY_MS = 60_000;
const LEEWAY_SHARE = 0.1;

/** How long a token without `expires_in` is used, unless the server refuses it earlier. RFC 6749 §5.1 sets no value. */
const UNSTATED_LIFE_MS = 3_600_000;

/**
 * Until when an access token is used, in Unix milliseconds: a minute before it expires, or a tenth of its lifetime if that
 * is less, so that it does not expire on its way.
 * @param expiresIn seconds, as the token endpoint states them
 */
export function usableUntil(askedMs: number, expiresIn: number | undefined): number {
  if (expiresIn === undefined) return askedMs + UNSTATED_LIFE_MS;
  const lifeMs = Math.min(expiresIn * 1000, LONGEST_LIFE_MS);
  return askedMs + lifeMs - Math.min(LONGEST_LEEWAY_MS, lifeMs * LEEWAY_SHARE);
}

/** Whether an access token is not refused and not about to expire. */
export const isUsable = (tokens: Tokens, nowMs: number, refused: string | undefined): boolean =>
  nowMs < tokens.usableUntilMs && tokens.accessToken !== refused;

/** Seals tokens for Postgres or memory. */
export const sealTokens = (keys: EncryptionKeys, client: OauthClient, tokens: Tokens): string =>
  seal(keys, JSON.stringify(tokens), context(client));

/** @throws {SealError} as `unseal` of the crypto package */
export const unsealTokens = (keys: EncryptionKeys, client: OauthClient, sealed: string): Tokens =>
  JSON.parse(unseal(keys, sealed, context(client))) as Tokens;

const context = ({ accountId, id }: OauthClient) => oauthTokensContext(accountId, id);
