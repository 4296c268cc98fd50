import { isAliveInSql, timeInSql } from '@presign/schema/grant-status';
import { grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, type SQL } from 'drizzle-orm';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { checkFirstLimit } from './check-callable.ts';

type Needs = Pick<RouteDeps, 'providers' | 'prices' | 'now'>;

/**
 * Refuses the first limit of a budget that live URLs draw on, if no call of one of them could pass under it.
 * @param which the URLs
 * @param param the limit in the request
 * @throws RefusedError `invalid_request`
 */
export async function refuseDeadUrls(
  tx: Transaction,
  deps: Needs,
  which: SQL,
  { of, param }: { readonly of: 'cost' | 'tokens'; readonly param: string },
): Promise<void> {
  // Many URLs allow the same.
  const { provider, method, paths, config } = grants;
  const kinds = await tx
    .selectDistinct({ provider, method, paths, config })
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(which, eq(grants.kind, 'llm'), isAliveInSql(timeInSql(deps.now()))));
  for (const each of kinds) {
    const served = deps.providers.get(each.provider);
    if (!served || !each.method || !each.paths) continue;
    const url = { provider: served, method: each.method, paths: each.paths, config: each.config };
    checkFirstLimit(deps, of, param, url);
  }
}
