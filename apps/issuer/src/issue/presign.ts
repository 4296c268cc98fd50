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
import { claimIdempotencyKey, readIdempotencyKey } from '../middleware/idempotency.ts';
import { route } from '../route.ts';
import { findProvider } from './find-provider.ts';
import { type Issue, readsNothing, writeGrant } from './grant-rows.ts';
import { type InsertGrant, prepareInsertGrant } from './insert-grant.ts';
import { asIssued, signGrant, wholeSecond } from './sign.ts';

const ROUTE = 'POST /v1/presign';

/** `POST /v1/presign`: session, credential, limits and grant are written as one; then the URL is signed. */
export const presign = route(
  {
    method: 'post',
    path: '/v1/presign',
    summary: 'Issue a signed URL for an LLM provider',
    description:
      'Whoever has the URL may call the provider through it, until it expires or a limit is reached. One of `client_api_key` and `virtual_key` is needed; with both, the virtual key is used.',
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
