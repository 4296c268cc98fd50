import { AUDIT_FORMATS, type AuditQuery, auditPage, auditQuery, type Cursor } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { audit } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { IssuerEnv } from '../deps.ts';
import { inTurn } from '../in-time.ts';
import { after, filtersOf, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { describeEntry } from './audit-log.ts';
import { EXPORT_FORMATS, exportAudit } from './export-audit.ts';

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
      c.header('vary', 'Accept');
      const format = formatOf(c, query);
      if (format !== 'json') return exportAudit(c, log, EXPORT_FORMATS[format], read);
      const rows = await read(query.cursor, query.limit);
      return pageOfRows(rows, query.limit, ({ entry }) => describeEntry(entry));
    };
  },
);

/** The form of the answer: by the query, or by the header. */
function formatOf(c: Context<IssuerEnv>, { format }: AuditQuery): (typeof AUDIT_FORMATS)[number] {
  if (format !== undefined) return format;
  const types = AUDIT_FORMATS.map((each) =>
    each === 'json' ? 'application/json' : EXPORT_FORMATS[each].type,
  );
  const type = accepts(c, { header: 'Accept', supports: types, default: 'application/json' });
  return AUDIT_FORMATS[types.indexOf(type)] ?? 'json';
}

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
