import { randomUUID } from 'node:crypto';
import { checkPathPattern } from '@presign/providers';
import {
  isJsonObject,
  type PresignAnswer,
  type PresignRequest,
  presignAnswer,
  presignRequest,
  RefusedError,
} from '@presign/schema';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { claimIdempotencyKey, type EarlierGrant, readIdempotencyKey } from '../middleware/idempotency.ts';
import { route } from '../route.ts';
import { findProvider } from './find-provider.ts';
import { type InsertGrant, type Issue, prepareInsertGrant, readsNothing, writeGrant } from './grant-rows.ts';
import { type IssuedGrant, signGrant, wholeSecond } from './sign.ts';

const ROUTE = 'POST /v1/presign';

/** `POST /v1/presign`: writes session, credential, limits and grant at once, and then signs the URL. */
export const presign = route(
  {
    method: 'post',
    path: '/v1/presign',
    summary: 'Issue a signed URL for an LLM provider',
    description:
      'Anyone with the URL can call the provider through it until the URL expires or reaches a limit. Give `client_api_key` or `virtual_key`. If you give both, the virtual key is used.',
    scope: 'presign',
    body: presignRequest,
    answer: presignAnswer,
    errors: ['unknown_provider', 'session_conflict', 'idempotency_conflict'],
  },
  (deps) => {
    const insert = prepareInsertGrant(deps.db);
    return async ({ apiKey, body: request, raw, c }) => {
      const repeatKey = readIdempotencyKey(c);
      const provider = findProvider(deps.providers, request.provider);
      checkPaths(raw.value, request);

      const issuedAt = wholeSecond(deps.now());
      const issue = { grantId: randomUUID(), accountId: apiKey.accountId, provider, request, issuedAt };
      const repeat = repeatKey === undefined ? undefined : { key: repeatKey, body: raw.bytes };
      return inTime(issueOnce(deps, insert, issue, repeat));
    };
  },
);

type Repeat = { readonly key: string; readonly body: Uint8Array };

/** Writes and signs a grant. A repeated `Idempotency-Key` finds the grant written before and signs that. */
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
    const { accountId, grantId } = issue;
    const earlier =
      repeat &&
      (await claimIdempotencyKey(
        tx,
        deps,
        { accountId, route: ROUTE, key: repeat.key, grantId },
        repeat.body,
      ));
    if (earlier) return signGrant(deps, asIssued(earlier));
    return signGrant(deps, await writeGrant(deps, prepareInsertGrant(tx), issue, tx));
  });
}

/** An LLM grant that was written earlier. */
function asIssued(grant: EarlierGrant): IssuedGrant {
  const { method, paths } = grant;
  if (method === null || paths === null) throw new Error(`grant ${grant.id} is not an LLM grant`);
  return { ...grant, method, paths };
}

/** @param body as the caller wrote it, where a single path may appear without an array */
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
