import { randomUUID } from 'node:crypto';
import { mac, seal } from '@presign/crypto';
import { checkPathPattern, configMatchesPaths, type Provider } from '@presign/providers';
import {
  credentialContext,
  idempotencyKey,
  invalidRequest,
  ONE_YEAR_SECONDS,
  PARTITIONS,
  type PresignAnswer,
  type PresignRequest,
  presignRequest,
  RefusedError,
} from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { credentials, grants, pots } from '@presign/schema/tables';
import type { Context, Handler } from 'hono';
import type { IssuerDeps, IssuerEnv } from './app.ts';
import { requireScope } from './authenticate.ts';
import { findVirtualKey, type VirtualKey } from './find-virtual-key.ts';
import { claimIdempotencyKey } from './idempotency.ts';
import { joinSession } from './join-session.ts';
import { readJson } from './read-json.ts';
import { signGrant } from './sign-grant.ts';

const ROUTE = 'POST /v1/presign';

/** `POST /v1/presign`: one transaction writes session, credential, limits and grant; then the URL is signed. */
export function presign(deps: IssuerDeps): Handler<IssuerEnv> {
  return async (c) => {
    const apiKey = c.get('apiKey');
    requireScope(apiKey, 'presign');
    const repeatKey = readIdempotencyKey(c);
    const raw = await readJson(c);
    const request = parse(raw.value);
    const provider = findProvider(deps, request);
    checkPaths(request, provider);

    const issue = { ...newIds(), accountId: apiKey.accountId, request, issuedAt: wholeSecond(deps.now()) };
    const answer = await deps.db.transaction(async (tx): Promise<PresignAnswer> => {
      if (repeatKey !== undefined) {
        const claim = { accountId: apiKey.accountId, route: ROUTE, key: repeatKey, grantId: issue.grantId };
        const bodyMac = mac(deps.encryptionKeys, 'idempotency', raw.bytes);
        const earlier = await claimIdempotencyKey(tx, deps, { ...claim, bodyMac }, raw.bytes);
        if (earlier) return signGrant(deps, earlier);
      }
      return signGrant(deps, await writeGrant(tx, deps, issue));
    });
    return c.json(answer);
  };
}

type Issue = {
  readonly grantId: string;
  readonly potId: string;
  readonly credentialId: string;
  readonly sessionId: string;
  readonly accountId: string;
  readonly request: PresignRequest;
  readonly issuedAt: Date;
};

const newIds = () => ({
  grantId: randomUUID(),
  potId: randomUUID(),
  credentialId: randomUUID(),
  sessionId: randomUUID(),
});

/** Tokens and answers speak in whole seconds. */
const wholeSecond = (ms: number) => new Date(Math.floor(ms / 1000) * 1000);

async function writeGrant(tx: Transaction, deps: IssuerDeps, issue: Issue) {
  const { request, accountId, issuedAt } = issue;
  const virtualKey = await findVirtualKey(tx, accountId, request);
  const sessionId = await joinSession(tx, accountId, issue.sessionId, request.session_id, issuedAt);
  const partition = virtualKey?.partition ?? partitionOf(issue.potId);
  const row = grantRow(issue, sessionId, virtualKey);
  const writes: PromiseLike<unknown>[] = [];
  if (!virtualKey) writes.push(tx.insert(credentials).values(sealedCredential(deps, issue)));
  writes.push(
    tx.insert(pots).values({
      id: issue.potId,
      partition,
      maxUses: request.max_uses === -1 ? null : request.max_uses,
      costLimitMicrousd: request.cost_limit ?? null,
    }),
    tx.insert(grants).values(row),
  );
  // Sent together, in this order, on the transaction's one connection.
  await Promise.all(writes);
  return { ...row, partition };
}

function grantRow(issue: Issue, sessionId: string, virtualKey: VirtualKey | undefined) {
  const { request, issuedAt } = issue;
  const seconds = request.expires_in === -1 ? ONE_YEAR_SECONDS : request.expires_in;
  return {
    id: issue.grantId,
    accountId: issue.accountId,
    sessionId,
    potId: issue.potId,
    credentialId: virtualKey?.credentialId ?? issue.credentialId,
    virtualKeyId: virtualKey?.id ?? null,
    kind: 'llm' as const,
    provider: request.provider,
    method: request.method,
    paths: request.path,
    config: mergedConfig(request, virtualKey),
    externalSession: request.external_session ?? null,
    externalUser: request.external_user ?? null,
    metadata: request.metadata ?? null,
    issuedAt,
    expiresAt: new Date(issuedAt.getTime() + seconds * 1000),
  };
}

/** What the request overrides goes before what its virtual key does. */
function mergedConfig(request: PresignRequest, virtualKey: VirtualKey | undefined) {
  if (!virtualKey?.config) return request.config ?? null;
  return { ...virtualKey.config, ...request.config };
}

const sealedCredential = (deps: IssuerDeps, { accountId, credentialId, request }: Issue) => ({
  id: credentialId,
  accountId,
  sealed: seal(deps.encryptionKeys, request.client_api_key ?? '', credentialContext(accountId, credentialId)),
});

/** A pot's id is random, so its last byte spreads pots evenly. */
const partitionOf = (potId: string) => Number.parseInt(potId.slice(-2), 16) % PARTITIONS;

function parse(body: unknown): PresignRequest {
  const read = presignRequest.safeParse(body);
  if (!read.success) throw new RefusedError(invalidRequest(read.error));
  return read.data;
}

function findProvider(deps: IssuerDeps, { provider: id }: PresignRequest): Provider {
  const provider = deps.providers.get(id);
  if (!provider) {
    const known = [...deps.providers.values()]
      .filter((each) => each.baseUrl !== undefined)
      .map((each) => each.id);
    const message = `provider: "${id}" is not known; expected one of ${known.join(', ')}.`;
    throw new RefusedError({ code: 'unknown_provider', param: 'provider', message });
  }
  if (provider.baseUrl === undefined) {
    const message = `provider: "${id}" needs a base_url in the operator's PROVIDERS_FILE.`;
    throw new RefusedError({ code: 'unknown_provider', param: 'provider', message });
  }
  return provider;
}

function checkPaths(request: PresignRequest, provider: Provider): void {
  const refuse = (param: string, problem: string) => {
    throw new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });
  };
  request.path.forEach((path, i) => {
    const problem = checkPathPattern(path);
    if (problem !== undefined) refuse(`path[${i}]`, problem);
  });
  if (request.path[0]?.includes('*')) {
    refuse('path[0]', 'the first path ends the URL, so it must be callable: no "*"');
  }
  if (request.config && !configMatchesPaths(provider, request.config, request.path)) {
    refuse('config.model', 'with this model no path of this URL can be called');
  }
}

function readIdempotencyKey(c: Context<IssuerEnv>): string | undefined {
  const header = c.req.header('idempotency-key');
  if (header === undefined) return undefined;
  const read = idempotencyKey.safeParse(header);
  if (read.success) return read.data;
  const message = 'Idempotency-Key: expected 1 to 255 visible ASCII characters.';
  throw new RefusedError({ code: 'invalid_request', param: 'Idempotency-Key', message });
}
