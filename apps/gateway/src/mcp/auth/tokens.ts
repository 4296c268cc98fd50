import { type EncryptionKeys, seal, unseal } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import { oauthTokensContext } from '@presign/schema/tables';

/** A client at its authorization server; with a refresh token, on behalf of the user who gave consent. */
export type OauthClient = {
  /** Of the credential that says all this. */
  readonly id: string;
  readonly accountId: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Undefined: a public client. */
  readonly secret: string | undefined;
  /** As it was handed in. */
  readonly refreshToken: string | undefined;
  /** What every request to the token endpoint says beside. */
  readonly parameters: { readonly scope?: string; readonly audience?: string };
};

/** What a token endpoint gave. */
export type Tokens = {
  readonly accessToken: string;
  /** Unix milliseconds; a little before the access token expires. */
  readonly usableUntilMs: number;
  /** For the next refresh. */
  readonly refreshToken?: string;
};

export type Fetched = { readonly tokens: Tokens } | { readonly refusal: Refusal };

/** Why a token cannot be had: a sentence that says nothing of what the authorization server wrote. */
export const authFailed = (message: string): { readonly refusal: Refusal } => ({
  refusal: { code: 'upstream_auth_failed', message },
});

/** Beyond that a number of seconds says no more, and the largest could not be stored. */
const LONGEST_LIFE_MS = 365 * 86_400_000;
const LONGEST_LEEWAY_MS = 60_000;
const LEEWAY_SHARE = 0.1;

/** RFC 6749 §5.1 leaves it open how long a token is good whose life is not told: until it is refused, or this. */
const UNTOLD_LIFE_MS = 3_600_000;

/**
 * How long an access token is used: until a minute before its end, or a tenth of its life if that is less, so that
 * it does not expire under way.
 *
 * @param expiresIn seconds, as the token endpoint told
 */
export function usableUntil(askedMs: number, expiresIn: number | undefined): number {
  if (expiresIn === undefined) return askedMs + UNTOLD_LIFE_MS;
  const lifeMs = Math.min(expiresIn * 1000, LONGEST_LIFE_MS);
  return askedMs + lifeMs - Math.min(LONGEST_LEEWAY_MS, lifeMs * LEEWAY_SHARE);
}

/** Whether an access token can be sent now, as far as is known. */
export const isUsable = (tokens: Tokens, nowMs: number, refused: string | undefined): boolean =>
  nowMs < tokens.usableUntilMs && tokens.accessToken !== refused;

/** Seals tokens for Postgres or memory. */
export const sealTokens = (keys: EncryptionKeys, client: OauthClient, tokens: Tokens): string =>
  seal(keys, JSON.stringify(tokens), context(client));

/** @throws {SealError} as `unseal` of the crypto package */
export const unsealTokens = (keys: EncryptionKeys, client: OauthClient, sealed: string): Tokens =>
  JSON.parse(unseal(keys, sealed, context(client))) as Tokens;

const context = ({ accountId, id }: OauthClient) => oauthTokensContext(accountId, id);
