import { randomUUID } from 'node:crypto';
import { unseal } from '@presign/crypto';
import {
  type McpBundle,
  type McpPresignAnswer,
  mcpBundle,
  mcpPresignAnswer,
  mcpPresignRequest,
} from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { credentialContext, credentials } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { claimIdempotencyKey, type EarlierGrant, readIdempotencyKey } from '../middleware/idempotency.ts';
import { route } from '../route.ts';
import { joinSession } from '../sessions/join-session.ts';
import { type BundleIssue, planBundle, writeBundle } from './bundle-rows.ts';
import { wholeSecond } from './sign.ts';
import { answerBundle, signServers } from './sign-bundle.ts';

const ROUTE = 'POST /v2/mcp-presign';

/**
 * `POST /v2/mcp-presign`: session, credentials, one budget, a grant for each server and one for the bundle are
 * written as one.
 */
export const mcpPresign = route(
  {
    method: 'post',
    path: '/v2/mcp-presign',
    summary: 'Issue a bundle of signed URLs for MCP servers',
    description:
      'Whoever has a URL may use its MCP server. `max_uses` and `cost_limit` are one budget, which all servers of the bundle share.',
    scope: 'presign',
    body: mcpPresignRequest,
    answer: mcpPresignAnswer,
    errors: ['session_conflict', 'idempotency_conflict'],
  },
  (deps) =>
    async ({ apiKey, body: request, raw, c }) => {
      const key = readIdempotencyKey(c);
      const issuedAt = wholeSecond(deps.now());
      const issue = { grantId: randomUUID(), accountId: apiKey.accountId, request, issuedAt };
      const repeat = key === undefined ? undefined : { key, body: raw.bytes };
      return inTime(deps.db.transaction((tx) => issueOnce(tx, deps, issue, repeat)));
    },
);

type Repeat = { readonly key: string; readonly body: Uint8Array };

/** Signs and writes; the same `Idempotency-Key` finds what it wrote before. */
async function issueOnce(
  tx: Transaction,
  deps: IssuerDeps,
  issue: BundleIssue,
  repeat: Repeat | undefined,
): Promise<McpPresignAnswer> {
  const { accountId, grantId, issuedAt } = issue;
  if (repeat) {
    const claim = { accountId, route: ROUTE, key: repeat.key, grantId };
    const earlier = await claimIdempotencyKey(tx, deps, claim, repeat.body);
    if (earlier) return answerBundle(deps, earlier, await readBundle(tx, deps, earlier));
  }
  const plan = planBundle(issue);
  const bundle = signServers(deps, plan.grant, plan.servers);
  const answer = answerBundle(deps, plan.grant, bundle);
  await joinSession(tx, accountId, plan.grant.sessionId, issuedAt);
  await writeBundle(tx, deps, issue, plan, bundle);
  return answer;
}

/** The document of a bundle that was issued earlier: its servers' URLs, with the tokens they had then. */
async function readBundle(tx: Transaction, deps: IssuerDeps, grant: EarlierGrant): Promise<McpBundle> {
  const id = grant.credentialId ?? '';
  const [row] = await tx.select().from(credentials).where(eq(credentials.id, id));
  if (!row) throw new Error(`the bundle ${grant.id} has no document`);
  const text = unseal(deps.encryptionKeys, row.sealed, credentialContext(row.accountId, row.id));
  return mcpBundle.parse(JSON.parse(text));
}
