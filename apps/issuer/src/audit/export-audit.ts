import { type AuditEntry, type Cursor, causeOf, RefusedError } from '@presign/schema';
import type { audit } from '@presign/schema/tables';
import type { Context } from 'hono';
import type { Logger } from 'pino';
import { csvLine, textCell } from '../answers/csv.ts';
import { pump } from '../answers/pump.ts';
import type { IssuerEnv } from '../deps.ts';
import { describeEntry } from './audit-log.ts';

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
  ...['id', 'at', 'actor', 'action', 'target_kind', 'target_id'],
  ...['request_id', 'remote_address', 'before', 'after'],
];
const jsonCell = (value: object | null) => textCell(value && JSON.stringify(value));

/** The forms of an export: CSV (RFC 4180), and a line of JSON for each entry. */
export const EXPORT_FORMATS: Readonly<Record<'csv' | 'ndjson', ExportFormat>> = {
  csv: {
    type: 'text/csv',
    ending: 'csv',
    head: csvLine(COLUMNS),
    line: ({ id, at, actor, action, target, request_id, remote_address, before, after }) =>
      csvLine([
        ...[id, String(at), textCell(actor), action, target.kind, textCell(target.id)],
        ...[textCell(request_id), textCell(remote_address), jsonCell(before), jsonCell(after)],
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
export async function exportAudit(
  c: Context<IssuerEnv>,
  log: Logger,
  { type, ending, head, line }: ExportFormat,
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
      yield rows.map(({ entry }) => line(describeEntry(entry))).join('');
  };
  pump(writable, texts(), undefined, PIECE_MS).catch((error: unknown) =>
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
