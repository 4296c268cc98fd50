import { randomUUID } from 'node:crypto';
import { seal } from '@presign/crypto';
import { configMatchesPaths, type Provider } from '@presign/providers';
import { ONE_YEAR_SECONDS, type PresignRequest, RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { credentialContext } from '@presign/schema/tables';
import type { IssuerDeps } from '../deps.ts';
import { joinSession } from '../sessions/join-session.ts';
import { choosePartition } from './choose-partition.ts';
import { findVirtualKey, type VirtualKey } from './find-virtual-key.ts';
import type { GrantRows, InsertGrant } from './insert-grant.ts';
import type { IssuedGrant } from './sign.ts';

/** A request that is to become a grant. */
export type Issue = {
  readonly grantId: string;
  readonly accountId: string;
  readonly provider: Provider;
  readonly request: PresignRequest;
  readonly issuedAt: Date;
};

/**
 * Writes the grant that a request asks for, with what belongs to it.
 * @param tx wanted where the request names a session or a virtual key, which are read and locked
 */
export async function writeGrant(
  deps: IssuerDeps,
  insert: InsertGrant,
  issue: Issue,
  tx: Transaction | undefined,
): Promise<IssuedGrant> {
  const { request, accountId, issuedAt } = issue;
  const virtualKey = tx && (await findVirtualKey(tx, accountId, request));
  const rows = grantRows(deps, issue, virtualKey);
  checkConfig(issue, rows.grant.config);
  if (tx && request.session_id !== undefined) await joinSession(tx, accountId, request.session_id, issuedAt);
  await insert(rows);
  return { ...rows.grant, partition: rows.partition };
}

/** Whether a request can be written without reading first, so that no transaction is needed. */
export const readsNothing = (request: PresignRequest): boolean =>
  request.session_id === undefined && request.virtual_key === undefined;

function grantRows(deps: IssuerDeps, issue: Issue, virtualKey: VirtualKey | undefined): GrantRows {
  const { request, accountId, issuedAt } = issue;
  const seconds = request.expires_in === -1 ? ONE_YEAR_SECONDS : request.expires_in;
  const budgetId = randomUUID();
  const credentialId = virtualKey?.credentialId ?? randomUUID();
  return {
    grant: {
      id: issue.grantId,
      accountId,
      sessionId: request.session_id ?? randomUUID(),
      budgetId,
      credentialId,
      virtualKeyId: virtualKey?.id ?? null,
      kind: 'llm',
      provider: request.provider,
      method: request.method,
      paths: request.path,
      config: mergedConfig(request, virtualKey),
      externalSession: request.external_session ?? null,
      externalUser: request.external_user ?? null,
      metadata: request.metadata ?? null,
      issuedAt,
      expiresAt: new Date(issuedAt.getTime() + seconds * 1000),
    },
    partition: virtualKey?.partition ?? choosePartition(budgetId),
    maxUses: request.max_uses === -1 ? null : request.max_uses,
    costLimitMicrousd: request.cost_limit ?? null,
    callsPerMinute: request.calls_per_minute ?? null,
    sealed: virtualKey ? undefined : sealedKey(deps, request, credentialContext(accountId, credentialId)),
  };
}

/** What the request overrides goes before what its virtual key does. */
function mergedConfig(request: PresignRequest, virtualKey: VirtualKey | undefined) {
  if (!virtualKey?.config) return request.config ?? null;
  return { ...virtualKey.config, ...request.config };
}

/** Sealed before it leaves this process: neither Postgres nor Redis ever has it in clear. */
const sealedKey = (deps: IssuerDeps, request: PresignRequest, context: string) =>
  seal(deps.encryptionKeys, request.client_api_key ?? '', context);

/** A URL that could never be called is not issued. */
function checkConfig({ provider, request }: Issue, config: Record<string, unknown> | null): void {
  const matches = config === null || configMatchesPaths(provider, config, request.path);
  if (matches === true) return;
  const own = request.config !== undefined && Object.hasOwn(request.config, 'model');
  const param = own ? 'config.model' : 'virtual_key';
  const where = own ? 'with this model' : 'with the model of its config';
  const message = `${param}: ${where} the path ${matches.path} could never be called; allow the path that has the model in it.`;
  throw new RefusedError({ code: 'invalid_request', param, message });
}
