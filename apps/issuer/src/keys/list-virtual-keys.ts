import { pageQuery, virtualKeyPage } from '@presign/schema';
import { virtualKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import { inTime } from '../in-time.ts';
import { after, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { selectVirtualKeys, tellVirtualKey } from './tell-virtual-key.ts';

/** `GET /v1/virtual-keys`: the account's virtual keys, newest first; those that are deleted, too. */
export const listVirtualKeys = route(
  {
    method: 'get',
    path: '/v1/virtual-keys',
    summary: 'Virtual keys, newest first, with what of their budgets is used and spent',
    scope: 'read',
    query: pageQuery,
    answer: virtualKeyPage,
  },
  ({ db, redis }) =>
    async ({ apiKey, query }) => {
      const rows = selectVirtualKeys(db)
        .where(and(eq(virtualKeys.accountId, apiKey.accountId), after(query.cursor, virtualKeys)))
        .orderBy(...newestFirst(virtualKeys))
        .limit(query.limit + 1);
      const page = pageOfRows(await inTime(rows), query.limit, (row) => row);
      const data = await Promise.all(page.data.map((row) => tellVirtualKey(redis, row)));
      return { data, next_cursor: page.next_cursor };
    },
);
