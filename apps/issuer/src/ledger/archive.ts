import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { archiveParts } from '@presign/schema/ledger-tables';
import type { Database, TextRow, Transaction } from '@presign/service/database';
import { eq, sql } from 'drizzle-orm';

/** A place for files. */
export type ArchiveStore = {
  /** Resolves once the whole file is stored under this name, `folder/name`. Another file of this name is replaced. */
  readonly put: (name: string, bytes: Buffer) => Promise<void>;
  /** Aborts running requests. */
  readonly close: () => Promise<void>;
};

/**
 * The archive of a task that deletes rows. Its rows go into `archive_parts` in the transaction that deletes them, as
 * the bytes and under the name of a file. A part is deleted once the store has confirmed it, so that a retry writes the
 * same bytes under the same name.
 */
export type Archive = {
  readonly add: (tx: Transaction, table: string, rows: readonly TextRow[]) => Promise<void>;
  /** Sends all parts that no other issuer is sending. @throws what the store throws; the part stays */
  readonly send: () => Promise<void>;
  /** Whether parts wait. If so, no more rows may be added. */
  readonly isWaiting: (tx: Transaction) => Promise<boolean>;
};

/** @param job the name of the task. Each task sees only its own parts. */
export function archiveOf(db: Database, job: string, store: ArchiveStore): Archive {
  const ofJob = eq(archiveParts.job, job);
  return {
    add: async (tx, table, rows) => {
      for (const text of csvOf(rows)) {
        const at = new Date().toISOString().replaceAll(':', '');
        const name = `${table}/${table}-${at}-${randomUUID()}.csv.gz`;
        const body = (await compress(text)).toString('base64');
        await tx.insert(archiveParts).values({ name, job, body });
      }
    },
    send: async () => {
      for (;;) {
        const part = await claim(db, job);
        if (!part) return;
        const { name = '', body } = part;
        const isPart = eq(archiveParts.name, name ?? '');
        try {
          await store.put(name ?? '', Buffer.from(body ?? '', 'base64'));
        } catch (error) {
          await db.update(archiveParts).set({ claimedUntil: sql`now()` }).where(isPart);
          throw error;
        }
        await db.delete(archiveParts).where(isPart);
      }
    },
    isWaiting: async (tx) => (await tx.$count(archiveParts, ofJob)) > 0,
  };
}

/** Longer than a store may take for a part. After that, another issuer sends the parts of an issuer that died. */
const CLAIM = sql`interval '5 minutes'`;

async function claim(db: Database, job: string): Promise<TextRow | undefined> {
  const free = sql`select ${archiveParts.name} from ${archiveParts}
    where ${archiveParts.job} = ${job} and ${archiveParts.claimedUntil} <= now()
    order by ${archiveParts.name} limit 1 for update skip locked`;
  const [part] = await db.execute<TextRow>(sql`with free as materialized (${free})
      update ${archiveParts} set claimed_until = now() + ${CLAIM} from free
      where ${archiveParts.name} = free.name returning ${archiveParts.name}, ${archiveParts.body}`);
  return part;
}

const compress = promisify(gzip);

/** Characters of a file before it is compressed, so that a part takes little memory. */
const FILE_MAX_CHARS = 8 * 1024 * 1024;

/**
 * Rows as the texts of CSV files (RFC 4180). `COPY … (FORMAT csv, HEADER)` with the columns of the first line reads them: null
 * is an empty cell, and text is quoted.
 */
function* csvOf(rows: readonly TextRow[]): Generator<string> {
  const cell = (text: string | null) => (text === null ? '' : `"${text.replaceAll('"', '""')}"`);
  const line = (cells: readonly string[]) => `${cells.join(',')}\r\n`;
  const head = line(Object.keys(rows[0] ?? {}));
  let text = head;
  for (const row of rows) {
    const next = line(Object.values(row).map(cell));
    if (text.length + next.length > FILE_MAX_CHARS && text !== head) {
      yield text;
      text = head;
    }
    text += next;
  }
  if (text !== head) yield text;
}
