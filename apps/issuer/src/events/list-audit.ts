import {
  type AuditEntry,
  type AuditQuery,
  type AuditTarget,
  auditPage,
  auditQuery,
  type Cursor,
} from '@presign/schema';
import { audit } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { and, eq } from 'drizzle-orm';
import { exportList, formatOf } from '../answers/export.ts';
import { after, filtersOf, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import type { ApiKey, Scope } from '../identity/caller.ts';
import { hasScope } from '../identity/caller.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { describeEntry } from './audit-log.ts';

/** Entries are ordered by the time of their change. */
const PLACE = { createdAt: audit.at, id: audit.id };

/** `GET /v1/audit`: the changes of the account, newest first. */
export const listAudit = route(
  {
    method: 'get',
    path: '/v1/audit',
    summary: 'List changes, newest first: who made them, when, from where, before and after',
    description:
      'Every accepted request that changes something leaves an entry. Issuing leaves none: `GET /v1/sessions` lists what was issued.',
    scope: 'read',
    query: auditQuery,
    answer: auditPage,
    texts: ['text/csv', 'application/x-ndjson'],
  },
  ({ db, log }) => {
    const take = inTurn();
    return async ({ apiKey, query, c }) => {
      const read = (cursor: Cursor | undefined, limit: number) =>
        take(c, async () => readEntries(db, apiKey.accountId, { ...query, cursor, limit }));
      const entryOf = ({ entry }: Row) => shownTo(apiKey, describeEntry(entry));
      const format = formatOf(c, query.format);
      if (format !== 'json')
        return exportList(c, log, format, { name: 'audit', columns: COLUMNS, cells: cellsOf, entryOf, read });
      return pageOfRows(await read(query.cursor, query.limit), query.limit, entryOf);
    };
  },
);

type Row = { readonly entry: typeof audit.$inferSelect };

/** The entry without the fields of a target that only other scopes may read: who did what, and when, stays. */
function shownTo(apiKey: ApiKey, entry: AuditEntry): AuditEntry {
  const scope = READ_WITH[entry.target.kind];
  return scope === undefined || hasScope(apiKey, scope) ? entry : { ...entry, before: null, after: null };
}

/** The scope of the routes that answer with a target, where it is not `read`. */
const READ_WITH: Partial<Record<AuditTarget, Scope>> = {
  account: 'operator',
  api_key: 'admin',
  webhook: 'admin',
  delivery: 'admin',
};

/** The entries of a page, and one more if there is a next page. */
const readEntries = (db: Database, accountId: string, query: AuditQuery) =>
  db
    .select({ id: audit.id, micros: micros(audit.at), entry: audit })
    .from(audit)
    .where(
      and(eq(audit.accountId, accountId), after(query.cursor, PLACE), ...filtersOf(query, audit.at, FILTERS)),
    )
    .orderBy(...newestFirst(PLACE))
    .limit(query.limit + 1);

const FILTERS = [
  ['actor', audit.actor],
  ['action', audit.action],
  ['target_kind', audit.targetKind],
  ['target_id', audit.targetId],
] as const;

const COLUMNS = [
  'id',
  'at',
  'actor',
  'action',
  'target_kind',
  'target_id',
  'request_id',
  'remote_address',
  'before',
  'after',
];

const cellsOf = ({
  id,
  at,
  actor,
  action,
  target,
  request_id,
  remote_address,
  before,
  after,
}: AuditEntry) => [id, at, actor, action, target.kind, target.id, request_id, remote_address, before, after];
