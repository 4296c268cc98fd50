import { type AuditEntry, type AuditQuery, auditPage, auditQuery } from '@presign/schema';
import { audit } from '@presign/schema/tables';
import { and, eq, gte, lt, type SQL } from 'drizzle-orm';
import { inTurn } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';

/** Entries are ordered by the time of their change. */
const PLACE = { createdAt: audit.at, id: audit.id };

/** `GET /v1/audit`: the changes of the account, newest first. */
export const listAudit = route(
  {
    method: 'get',
    path: '/v1/audit',
    summary: 'List changes, newest first: who made them, when, from where, before and after',
    description:
      'Every accepted request that changes something leaves one entry. Issuing leaves none: `GET /v1/sessions` lists what was issued.',
    scope: 'read',
    query: auditQuery,
    answer: auditPage,
  },
  ({ db }) => {
    const take = inTurn();
    return async ({ apiKey, query, c }) => {
      const own = and(eq(audit.accountId, apiKey.accountId), after(query.cursor, PLACE), ...matching(query));
      const rows = await take(c, async () =>
        db
          .select({ id: audit.id, micros: micros(audit.at), entry: audit })
          .from(audit)
          .where(own)
          .orderBy(...newestFirst(PLACE))
          .limit(query.limit + 1),
      );
      return pageOfRows(rows, query.limit, ({ entry }) => describeEntry(entry));
    };
  },
);

/** The conditions of a query's filters. */
const matching = (query: AuditQuery): (SQL | undefined)[] => [
  query.from && gte(audit.at, query.from),
  query.to && lt(audit.at, query.to),
  ...FILTERS.map(([name, column]) => {
    const value = query[name];
    return value === undefined ? undefined : eq(column, value);
  }),
];

const FILTERS = [
  ['actor', audit.actor],
  ['action', audit.action],
  ['target_kind', audit.targetKind],
  ['target_id', audit.targetId],
] as const;

const describeEntry = (row: typeof audit.$inferSelect): AuditEntry => ({
  id: row.id,
  at: row.at.getTime() / 1000,
  actor: row.actor,
  action: row.action,
  target: { kind: row.targetKind, id: row.targetId },
  request_id: row.requestId,
  remote_address: row.remoteAddress,
  before: row.before,
  after: row.after,
});
