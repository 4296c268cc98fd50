import {
  AUDIT_FORMATS,
  type AuditEntry,
  type AuditQuery,
  type AuditTarget,
  auditPage,
  auditQuery,
  type Cursor,
  RefusedError,
} from '@presign/schema';
import { audit } from '@presign/schema/tables';
import { causeOf } from '@presign/service';
import type { Database } from '@presign/service/database';
import { and, eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { Logger } from 'pino';
import { csvLine, textCell } from '../answers/csv.ts';
import { after, filtersOf, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { pump } from '../answers/pump.ts';
import type { ApiKey, IssuerEnv, Scope } from '../identity/caller.ts';
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
      const describe = (entry: typeof audit.$inferSelect) => shownTo(apiKey, describeEntry(entry));
      c.header('vary', 'Accept');
      const format = formatOf(c, query);
      if (format !== 'json') return exportAudit(c, log, { ...EXPORT_FORMATS[format], describe }, read);
      const rows = await read(query.cursor, query.limit);
      return pageOfRows(rows, query.limit, ({ entry }) => describe(entry));
    };
  },
);

/** How an entry is shown to the one who asks. */
type Describing = { readonly describe: (entry: typeof audit.$inferSelect) => AuditEntry };

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

/** An entry with its place in the list. */
type Row = { readonly id: string; readonly micros: string; readonly entry: typeof audit.$inferSelect };

/** Reads entries behind a place: one more than `limit` if there are more. */
type ReadEntries = (cursor: Cursor | undefined, limit: number) => Promise<readonly Row[]>;

type ExportFormat = {
  readonly type: string;
  readonly ending: string;
  readonly head: string;
  readonly line: (entry: AuditEntry) => string;
};

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
const jsonCell = (value: object | null) => textCell(value && JSON.stringify(value));

/** The forms of an export: CSV (RFC 4180), and a line of JSON for each entry. */
const EXPORT_FORMATS: Readonly<Record<'csv' | 'ndjson', ExportFormat>> = {
  csv: {
    type: 'text/csv',
    ending: 'csv',
    head: csvLine(COLUMNS),
    line: ({ id, at, actor, action, target, request_id, remote_address, before, after }) =>
      csvLine([
        id,
        String(at),
        textCell(actor),
        action,
        target.kind,
        textCell(target.id),
        textCell(request_id),
        textCell(remote_address),
        jsonCell(before),
        jsonCell(after),
      ]),
  },
  ndjson: {
    type: 'application/x-ndjson',
    ending: 'ndjson',
    head: '',
    line: (entry) => `${JSON.stringify(entry)}\n`,
  },
};

/** Entries that are read from Postgres and written at a time. */
const PIECE = 500;
/** How long the caller may take to read a piece. No connection to Postgres waits meanwhile. */
const PIECE_MS = 60_000;

/**
 * Answers with all entries, newest first. They are read only as fast as the caller reads them, so that an export takes the same
 * memory however long the log is.
 * @throws RefusedError `invalid_request` for a request of one page
 */
async function exportAudit(
  c: Context<IssuerEnv>,
  log: Logger,
  { type, ending, head, line, describe }: ExportFormat & Describing,
  read: ReadEntries,
): Promise<Response> {
  const paging = ['limit', 'cursor'].find((name) => c.req.query(name) !== undefined);
  if (paging !== undefined) throw notOnePage(paging);
  const headers = {
    'content-type': `${type}; charset=utf-8`,
    'content-disposition': `attachment; filename="audit.${ending}"`,
  };
  // Read before the answer begins, so that an outage is answered as one.
  const first = await read(undefined, PIECE);
  if (c.req.method === 'HEAD') return c.body(null, 200, headers);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const texts = async function* () {
    yield head;
    for await (const rows of pieces(first, read))
      yield rows.map(({ entry }) => line(describe(entry))).join('');
  };
  pump({ writable, outgoing: c.env.outgoing }, texts(), { eachMs: PIECE_MS }).catch((error: unknown) =>
    log.info({ request_id: c.get('requestId'), ...causeOf(error) }, 'export of the audit log broken off'),
  );
  return c.body(readable, 200, headers);
}

async function* pieces(first: readonly Row[], read: ReadEntries): AsyncGenerator<readonly Row[]> {
  let rows = first;
  for (;;) {
    const piece = rows.slice(0, PIECE);
    yield piece;
    const last = piece.at(-1);
    if (rows.length <= PIECE || !last) return;
    rows = await read({ micros: last.micros, id: last.id }, PIECE);
  }
}

function notOnePage(param: string): RefusedError {
  const message = `${param}: an export has all entries. Leave it out, or ask for json.`;
  return new RefusedError({ code: 'invalid_request', param, message });
}
