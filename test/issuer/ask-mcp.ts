import { readEncryptionKeys, readPublicKeys, unseal, verifyToken } from '@presign/crypto';
import { type McpPresignAnswer, mcpBundleClaims, mcpClaims } from '@presign/schema';
import { budgets, credentialContext, credentials, grants } from '@presign/schema/tables';
import { eq, or } from 'drizzle-orm';
import { expect } from 'vitest';
import type { Stack } from '../harness/stack.ts';
import { type Sent, send } from './ask.ts';

/** The least a server needs. */
export const server = { name: 'docs', url: 'https://mcp.example.com/sse' };

type Issuer = Parameters<typeof send>[0];

/** `POST /v2/mcp-presign`, with one server unless others are named. */
export const sendMcp = (
  issuer: Issuer,
  fields: object = {},
  headers: Record<string, string> = {},
): Promise<Sent> =>
  send(issuer, { path: '/v2/mcp-presign', body: { servers: [server], ...fields }, headers });

/** As `sendMcp`, for requests that must succeed. */
export async function issueMcp(issuer: Issuer, fields: object = {}): Promise<McpPresignAnswer> {
  const sent = await sendMcp(issuer, fields);
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as McpPresignAnswer;
}

/** The token of a server's issued URL. */
export const serverToken = (answer: McpPresignAnswer, name: string): string =>
  new URL(answer.servers[name]?.url ?? '').searchParams.get('token') ?? '';

/** The claims of a token, its signature checked as a gateway does. */
export function verified(stack: Stack, token: string): unknown {
  const read = verifyToken(token, readPublicKeys(stack.keys.publicKeys));
  if (!read.ok) throw new Error(`the token is refused: ${read.reason}`);
  return read.claims;
}

export const serverClaims = (stack: Stack, answer: McpPresignAnswer, name: string) =>
  mcpClaims.parse(verified(stack, serverToken(answer, name)));
export const bundleClaims = (stack: Stack, answer: McpPresignAnswer) =>
  mcpBundleClaims.parse(verified(stack, answer.bundle_token));

/** All that a bundle left in Postgres: its own grant, and those of its servers by name. */
export async function writtenBundle(stack: Stack, answer: McpPresignAnswer) {
  const { jti } = bundleClaims(stack, answer);
  const rows = await stack.db
    .select()
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(credentials, eq(credentials.id, grants.credentialId))
    .where(or(eq(grants.id, jti), eq(grants.bundleId, jti)));
  const own = rows.find((row) => row.grants.id === jti);
  if (!own) throw new Error('the bundle is not in Postgres');
  const ofServers = rows.filter((row) => row !== own);
  const byName = (name: string) => {
    const row = ofServers.find((each) => each.grants.server?.name === name);
    if (!row) throw new Error(`no grant of a server ${name}`);
    return row;
  };
  return { own, ofServers, byName };
}

/** The content of a credential. */
export function unsealed(stack: Stack, row: typeof credentials.$inferSelect): unknown {
  const keys = readEncryptionKeys(stack.keys.encryption);
  return JSON.parse(unseal(keys, row.sealed, credentialContext(row.accountId, row.id)));
}
