import { type GrantsQuery, grantPage, grantsQuery } from '@presign/schema';
import { grants } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { inArray } from 'drizzle-orm';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { describeOwn } from './describe-grant.ts';
import { liveFiguresOf } from './live-figures.ts';
import { lookUpGrants } from './look-up-grants.ts';
import { findGrants, type GrantRow } from './store-change.ts';

/** `GET /v1/grants`: the account's grants over all sessions, newest first. */
export const listGrants = route(
  {
    method: 'get',
    path: '/v1/grants',
    summary: 'List issued URLs with their limits, uses and spending, newest first',
    description:
      'A page may have fewer entries than `limit`, or none, while its `next_cursor` is not null. The URLs themselves are not stored.',
    scope: 'read',
    query: grantsQuery,
    answer: grantPage,
  },
  ({ db, redis, now }) => {
    const take = inTurn();
    return async ({ apiKey, query, c }) => {
      const asked = { accountId: apiKey.accountId, query, nowMs: now() };
      const { rows, nextCursor } = await take(c, async ({ goOn }) => {
        const { ids, nextCursor } = await lookUpGrants(db, asked, goOn);
        goOn();
        return { rows: await readGrants(db, ids), nextCursor };
      });
      const liveOf = await liveFiguresOf(redis, rows);
      const all = rows.map((row) => describeOwn(row, liveOf(row), now()));
      return { data: all.filter(hasStatus(query)), next_cursor: nextCursor };
    };
  },
);

/** Redis counts calls that have not reached the ledger yet. */
const hasStatus =
  ({ status: wanted }: GrantsQuery) =>
  ({ status }: { readonly status: string }) =>
    wanted === undefined || status === wanted;

/** The grants with these ids, in their order. */
async function readGrants(db: Database, ids: readonly string[]): Promise<GrantRow[]> {
  if (ids.length === 0) return [];
  const rows = await findGrants(db, inArray(grants.id, [...ids]));
  const byId = new Map(rows.map((row) => [row.grants.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
