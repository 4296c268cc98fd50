import { z } from 'zod';

/** Redis is laid out in this many partitions, for good: a grant's partition is part of its token. */
export const PARTITIONS = 64;

const time = z.iso.datetime();

const registered = {
  /** Grant id. */
  jti: z.guid(),
  /** Session id. */
  sub: z.guid(),
  iat: time,
  exp: time,
  /** The issuer's address. */
  iss: z.string(),
  /** The gateway's address. */
  aud: z.string(),
  /** Redis partition of the grant. */
  prt: z
    .int()
    .min(0)
    .max(PARTITIONS - 1),
};

/** What every token says. */
export type TokenClaims = z.infer<z.ZodObject<typeof registered>>;

/**
 * What an LLM token says: enough to refuse a wrong call before any store is asked, nothing secret.
 * Registered claims as in the PASETO specification (times are ISO 8601 strings).
 */
export const llmClaims = z.strictObject({
  ...registered,
  knd: z.literal('llm'),
  prv: z.string(),
  mth: z.string(),
  pth: z.array(z.string()).min(1),
  /** The model that is written into the path before it is matched, for providers that have it there. */
  mdl: z.string().optional(),
});
export type LlmClaims = z.infer<typeof llmClaims>;

/** What the token of one MCP server's URL says. */
export const mcpClaims = z.strictObject({
  ...registered,
  knd: z.literal('mcp'),
  /** SHA-256 of the server's URL, base64url: the URL itself stands beside the token, and would double its length. */
  srv: z.string().length(43),
});
export type McpClaims = z.infer<typeof mcpClaims>;

/** What a bundle's token says. */
export const mcpBundleClaims = z.strictObject({ ...registered, knd: z.literal('mcp_bundle') });
export type McpBundleClaims = z.infer<typeof mcpBundleClaims>;

/** How far in the future `iat` may lie: clocks differ. `exp` has no leeway. */
export const IAT_LEEWAY_SECONDS = 60;

/** Answer of `GET /v1/keys`. */
export const publicKeysAnswer = z.strictObject({
  /** PASERK ids (`k4.pid`) and the keys themselves (`k4.public`). */
  keys: z.array(z.strictObject({ kid: z.string(), public_key: z.string() })),
});
export type PublicKeysAnswer = z.infer<typeof publicKeysAnswer>;
