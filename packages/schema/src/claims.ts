import * as z from 'zod';
import { CRITICAL_LIMIT_NAMES } from './limit-kinds.ts';

/** The number of partitions in Redis. It never changes, because tokens carry the partition of their grant. */
export const PARTITIONS = 64;

/** The Redis partition of a budget. It never changes. Ids are random, so their last byte spreads budgets evenly. */
export const choosePartition = (budgetId: string): number =>
  Number.parseInt(budgetId.slice(-2), 16) % PARTITIONS;

/**
 * The partition of all shared budgets of an account, and of the URLs that draw on them. One script decides about all budgets of a call,
 * and a script reaches one partition. The refusals of an account are counted there, too.
 */
export const homePartition = (accountId: string): number => choosePartition(accountId);

const time = z.iso.datetime();

/** The conditions and limits that a gateway must know of before it serves a URL. */
const CRITICAL = [
  ...CRITICAL_LIMIT_NAMES,
  'max_body_bytes',
  'allowed_fields',
  'shared_budgets',
  'bind',
  'arguments',
  'sockets',
] as const;
export type Critical = (typeof CRITICAL)[number];

/** As `crit` in RFC 7515 §4.1.11: a gateway that does not know one of these refuses the token. */
const crt = z
  .array(z.enum(CRITICAL).meta({ id: 'CriticalClaim' }))
  .min(1)
  .optional()
  .meta({
    description:
      'The names of what restricts the URL and is not in its token, and `sockets` where it may be opened as a socket. Left out: nothing.',
  });

const registered = {
  jti: z.guid().meta({ description: 'Grant id.' }),
  sub: z.guid().meta({ description: 'Session id.' }),
  iat: time.meta({ description: 'When it was issued.' }),
  exp: time.meta({ description: 'When the token ends.' }),
  iss: z.string().meta({ description: "The issuer's address." }),
  aud: z.string().meta({ description: "The gateway's address." }),
  prt: z
    .int()
    .min(0)
    .max(PARTITIONS - 1)
    .meta({ description: 'Redis partition of the grant.' }),
  crt,
};

/** The claims of every token. */
export type TokenClaims = z.infer<z.ZodObject<typeof registered>>;

/** The claim for these names, in a fixed order, because one grant has one token. */
export function criticalClaim(names: readonly string[]): { crt?: Critical[] } {
  const found = CRITICAL.filter((name) => names.includes(name));
  if (found.length < names.length) throw new Error(`no gateway knows one of ${names.join(', ')}`);
  return found.length > 0 ? { crt: found } : {};
}

/**
 * The claims of an LLM token: enough to refuse a wrong call without a store, and nothing secret. Registered claims have
 * the form of the PASETO specification (times are ISO 8601 strings). Unknown claims are refused, so that an older gateway
 * never ignores a new restriction.
 */
export const llmClaims = z
  .strictObject({
    ...registered,
    knd: z.literal('llm'),
    prv: z.string().meta({ description: 'The provider.' }),
    mth: z.string().meta({ description: 'The method of its calls.' }),
    pth: z.array(z.string()).min(1).meta({ description: 'The paths of its calls.' }),
    mdl: z.string().optional().meta({
      description:
        'The model to write into the path before it is matched, for providers that have the model there.',
    }),
  })
  .meta({ id: 'LlmClaims' });
export type LlmClaims = z.infer<typeof llmClaims>;

/** The claims of the token of one MCP server. */
export const mcpClaims = z.strictObject({
  ...registered,
  knd: z.literal('mcp'),
  /** SHA-256 of the server's URL in base64url. The URL itself is a parameter next to the token. */
  srv: z.string().length(43),
});
export type McpClaims = z.infer<typeof mcpClaims>;

/** The claims of a bundle's token. */
export const mcpBundleClaims = z
  .strictObject({ ...registered, knd: z.literal('mcp_bundle') })
  .meta({ id: 'McpBundleClaims' });
export type McpBundleClaims = z.infer<typeof mcpBundleClaims>;

/** How far in the future `iat` may be, because clocks differ. `exp` has no leeway. */
export const IAT_LEEWAY_SECONDS = 60;

/** Answer of `GET /v1/keys`. */
export const publicKeysAnswer = z
  .strictObject({
    /** PASERK ids (`k4.pid`) and the keys themselves (`k4.public`). */
    keys: z.array(z.strictObject({ kid: z.string(), public_key: z.string() }).meta({ id: 'PublicKey' })),
  })
  .meta({ id: 'PublicKeys' });
export type PublicKeysAnswer = z.infer<typeof publicKeysAnswer>;
