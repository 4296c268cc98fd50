import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type IssuerOptions, mergeHours, sumMore } from '@presign/issuer';
import { archiveParts } from '@presign/schema/ledger-tables';
import { sql } from 'drizzle-orm';
import { eventually } from '../harness/eventually.ts';
import type { Stack } from '../harness/stack.ts';
import { parseCsv } from './ask-usage.ts';
import { startOwnIssuer } from './own-issuer.ts';

export type Sweeps = Awaited<ReturnType<typeof startSweeps>>;

/** Issuers that sweep a stack's stores, and the folder of their archive. */
export async function startSweeps(stack: Stack) {
  const folder = await mkdtemp(join(tmpdir(), 'presign-archive-'));
  const closers: (() => Promise<void>)[] = [];
  /** Starts an issuer, whose sweep begins at once. Returns what closes it. */
  const sweep = async (
    retention: Partial<IssuerOptions['retention']>,
    changed: Partial<IssuerOptions> = {},
  ) => {
    const kept = {
      ledgerDays: 0,
      grantDays: 0,
      usageDays: 0,
      refusedDays: 0,
      archive: { folder },
      ...retention,
    };
    const { close } = await startOwnIssuer(stack, { ...changed, retention: kept });
    closers.push(close);
    return close;
  };
  /** The rows of a table's files, once all are written. */
  const archived = async (table: string): Promise<Record<string, string>[]> => {
    await eventually(async () => (await stack.db.$count(archiveParts)) === 0);
    const names = await readdir(join(folder, table)).catch(() => []);
    const files = names.filter((name) => /^\w.*\.csv\.gz$/.test(name));
    const texts = await Promise.all(files.map((name) => readFile(join(folder, table, name))));
    return texts.flatMap(rowsIn);
  };
  const close = async () => {
    await Promise.all(closers.map((each) => each()));
    await rm(folder, { recursive: true });
  };
  return { folder, sweep, archived, close };
}

/** The rows of a file of the archive. */
export function rowsIn(file: Buffer): Record<string, string>[] {
  const [head = [], ...rows] = parseCsv(gunzipSync(file).toString());
  return rows.map((cells) => Object.fromEntries(head.map((name, i) => [name, cells[i] ?? ''])));
}

/** Merges the sums by the hour until there is nothing left to merge. */
export async function mergeAllHours({ db }: Pick<Stack, 'db'>): Promise<void> {
  while (await mergeHours(db));
}

/** Moves the sums by day of all accounts on, as a sweep does at this time. */
export async function sumAll({ db }: Pick<Stack, 'db'>, nowMs: number): Promise<void> {
  const now = sql`${new Date(nowMs).toISOString()}::timestamptz`;
  while (await db.transaction((tx) => sumMore(tx, now)));
}
