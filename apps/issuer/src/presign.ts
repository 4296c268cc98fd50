import { randomUUID } from 'node:crypto';
import { mac } from '@presign/crypto';
import { checkPathPattern, type Provider } from '@presign/providers';
import {
  idempotencyKey,
  invalidRequest,
  isJsonObject,
  type PresignAnswer,
  type PresignRequest,
  presignRequest,
  RefusedError,
} from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import type { Context, Handler } from 'hono';
import type { IssuerDeps, IssuerEnv } from './app.ts';
import { requireScope } from './authenticate.ts';
import { claimIdempotencyKey } from './idempotency.ts';
import { inTime } from './in-time.ts';
import { type InsertGrant, prepareInsertGrant } from './insert-grant.ts';
import { readJson } from './read-json.ts';
import { signGrant } from './sign-grant.ts';
import { type Issue, readsNothing, writeGrant } from './write-grant.ts';

const ROUTE = 'POST /v1/presign';

/** `POST /v1/presign`: session, credential, limits and grant are written as one; then the URL is signed. */
export function presign(deps: IssuerDeps): Handler<IssuerEnv> {
  const insert = prepareInsertGrant(deps.db);
  return async (c) => {
    const apiKey = c.get('apiKey');
    requireScope(apiKey, 'presign');
    const repeatKey = readIdempotencyKey(c);
    const { bytes, value } = await readJson(c);
    const request = parse(value);
    const provider = findProvider(deps, request);
    checkPaths(value, request);

    const issuedAt = wholeSecond(deps.now());
    const issue = { grantId: randomUUID(), accountId: apiKey.accountId, provider, request, issuedAt };
    const repeat = repeatKey === undefined ? undefined : { key: repeatKey, body: bytes };
    return c.json(await inTime(issueOnce(deps, insert, issue, repeat)));
  };
}

type Repeat = { readonly key: string; readonly body: Uint8Array };

/** Writes and signs; the same `Idempotency-Key` finds what it wrote before and signs that again. */
async function issueOnce(
  deps: IssuerDeps,
  insert: InsertGrant,
  issue: Issue,
  repeat: Repeat | undefined,
): Promise<PresignAnswer> {
  if (repeat === undefined && readsNothing(issue.request)) {
    return signGrant(deps, await writeGrant(deps, insert, issue, undefined));
  }
  return deps.db.transaction(async (tx) => {
    const earlier = repeat && (await claim(deps, tx, issue, repeat));
    return signGrant(deps, earlier ?? (await writeGrant(deps, prepareInsertGrant(tx), issue, tx)));
  });
}

function claim(deps: IssuerDeps, tx: Transaction, { accountId, grantId }: Issue, { key, body }: Repeat) {
  const bodyMac = mac(deps.encryptionKeys, 'idempotency', body);
  return claimIdempotencyKey(tx, deps, { accountId, route: ROUTE, key, grantId, bodyMac }, body);
}

/** Tokens and answers speak in whole seconds. */
const wholeSecond = (ms: number) => new Date(Math.floor(ms / 1000) * 1000);

function parse(body: unknown): PresignRequest {
  const read = presignRequest.safeParse(body);
  if (!read.success) throw new RefusedError(invalidRequest(read.error));
  return read.data;
}

function findProvider(deps: IssuerDeps, { provider: id }: PresignRequest): Provider {
  const provider = deps.providers.get(id);
  if (provider?.baseUrl !== undefined) return provider;
  const known = [...deps.providers.values()].filter((each) => each.baseUrl !== undefined);
  const message = provider
    ? `provider: ${provider.id} needs a base_url in the operator's PROVIDERS_FILE.`
    : `provider: expected one of ${known.map((each) => each.id).join(', ')}.`;
  throw new RefusedError({ code: 'unknown_provider', param: 'provider', message });
}

/** @param body as the caller wrote it, who may have written one path without an array */
function checkPaths(body: unknown, { path: paths }: PresignRequest): void {
  const isArray = isJsonObject(body) && Array.isArray(body.path);
  for (const [i, path] of paths.entries()) {
    const callable = i > 0 || !path.includes('*');
    const problem = callable ? checkPathPattern(path) : 'must not contain *: the URL ends in its first path';
    if (problem === undefined) continue;
    const param = isArray ? `path[${i}]` : 'path';
    throw new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });
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
