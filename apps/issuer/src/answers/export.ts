import { type Cursor, LIST_FORMATS, type ListFormat, RefusedError } from '@presign/schema';
import { causeOf } from '@presign/service';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { Logger } from 'pino';
import type { IssuerEnv } from '../identity/caller.ts';
import { csvLine, textCell } from './csv.ts';
import type { Placed } from './page.ts';
import { pump } from './pump.ts';

/** The form of a list: by the query, or by the header. */
export function formatOf(c: Context<IssuerEnv>, format: ListFormat | undefined): ListFormat {
  c.header('vary', 'Accept');
  if (format !== undefined) return format;
  const supports = LIST_FORMATS.map((each) => TYPES[each]);
  const type = accepts(c, { header: 'Accept', supports, default: TYPES.json });
  return LIST_FORMATS.find((each) => TYPES[each] === type) ?? 'json';
}

const TYPES: Readonly<Record<ListFormat, string>> = {
  json: 'application/json',
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
};

/** A list that can be exported: its name, the columns of its CSV, and an entry of a row. */
type Exported<R extends Placed, Entry> = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly cells: (entry: Entry) => readonly Cell[];
  readonly entryOf: (row: R) => Entry;
  /** Reads rows behind a place: one more than `limit` if there are more. */
  readonly read: (cursor: Cursor | undefined, limit: number) => Promise<readonly R[]>;
};

type Cell = string | number | object | null;

/** Entries that are read from Postgres and written at a time. */
const PIECE = 500;
/** How long the caller may take to read a piece. No connection to Postgres waits meanwhile. */
const PIECE_MS = 60_000;

/**
 * Answers with all entries of a list, newest first: CSV (RFC 4180), or a line of JSON for each. They are read only as fast as the
 * caller reads them, so that an export takes the same memory however long the list is.
 * @throws RefusedError `invalid_request` for a request of one page
 */
export async function exportList<R extends Placed, Entry>(
  c: Context<IssuerEnv>,
  log: Logger,
  format: 'csv' | 'ndjson',
  { name, columns, cells, entryOf, read }: Exported<R, Entry>,
): Promise<Response> {
  const paging = ['limit', 'cursor'].find((each) => c.req.query(each) !== undefined);
  if (paging !== undefined) throw notOnePage(paging);
  const headers = {
    'content-type': `${TYPES[format]}; charset=utf-8`,
    'content-disposition': `attachment; filename="${name}.${format}"`,
  };
  const line = (entry: Entry) =>
    format === 'csv' ? csvLine(cells(entry).map(textOf)) : `${JSON.stringify(entry)}\n`;
  // Read before the answer begins, so that an outage is answered as one.
  const first = await read(undefined, PIECE);
  if (c.req.method === 'HEAD') return c.body(null, 200, headers);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const texts = async function* () {
    yield format === 'csv' ? csvLine(columns) : '';
    for await (const rows of pieces(first, read)) yield rows.map((row) => line(entryOf(row))).join('');
  };
  pump({ writable, outgoing: c.env.outgoing }, texts(), { eachMs: PIECE_MS }).catch((error: unknown) =>
    log.info({ request_id: c.get('requestId'), ...causeOf(error) }, `export of ${name} broken off`),
  );
  return c.body(readable, 200, headers);
}

const textOf = (cell: Cell): string => {
  if (typeof cell === 'number') return String(cell);
  return textCell(cell !== null && typeof cell === 'object' ? JSON.stringify(cell) : cell);
};

async function* pieces<R extends Placed>(
  first: readonly R[],
  read: Exported<R, unknown>['read'],
): AsyncGenerator<readonly R[]> {
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
