import { randomUUID } from 'node:crypto';
import { usageReport } from '@presign/schema';
import type { ledger } from '@presign/schema/ledger-tables';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import type { Stack } from '../harness/stack.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { send } from './ask.ts';

/** The caller that reads usage. */
export type Reader = { readonly issuerUrl: string; readonly apiKey: string; readonly account: string };
export type LedgerRow = typeof ledger.$inferInsert;

/** An account of its own with an empty ledger, and a key that may read it. */
export async function fresh(stack: Stack): Promise<Reader> {
  const { id } = await addAccount(stack);
  const apiKey = await addApiKey(stack, id, { scopes: ['read'] });
  return { issuerUrl: stack.issuerUrl, apiKey, account: id };
}
export type Query = Readonly<
  Partial<
    Record<
      | 'from'
      | 'to'
      | 'group_by'
      | 'format'
      | 'session_id'
      | 'request_id'
      | 'limit'
      | 'cursor'
      | 'top'
      | 'externl_user'
      | 'timezone'
      | Filter,
      string
    >
  >
>;
type Filter =
  | ('outcome' | 'external_user' | 'provider' | 'model' | 'virtual_key' | 'api_key')
  | ('server' | 'tool');

/** `GET /v1/usage`. */
export const get = (
  of: Pick<Reader, 'issuerUrl' | 'apiKey'>,
  query: Query,
  headers: Record<string, string> = {},
) => send(of, { method: 'GET', path: `/v1/usage?${new URLSearchParams(query)}`, headers });

/** The usage of all time, unless the query says otherwise. */
export async function report(of: Pick<Reader, 'issuerUrl' | 'apiKey'>, query: Query) {
  const sent = await get(of, { from: '0', ...query });
  expect(sent.status, sent.text).toBe(200);
  expect(sent.headers.get('content-type')).toBe('application/json');
  return usageReport.parse(JSON.parse(sent.text));
}
export async function csv(of: Pick<Reader, 'issuerUrl' | 'apiKey'>, query: Query) {
  const sent = await get(of, { from: '0', format: 'csv', ...query });
  expect(sent.status, sent.text).toBe(200);
  return sent.text;
}

/** A settled call of one use, which another test may change. */
export const row = (of: Reader, fields: Partial<LedgerRow> = {}): LedgerRow => ({
  holdId: randomUUID(),
  accountId: of.account,
  sessionId: randomUUID(),
  grantId: randomUUID(),
  provider: 'openai',
  uses: 1,
  costMicrousd: 10,
  outcome: 'settled',
  startedAt: new Date('2026-01-01T00:00:00Z'),
  settledAt: new Date('2026-01-01T12:00:00Z'),
  ...fields,
});

/** Adds calls with the same fields, as one parameter: 20 for each of thousands would take seconds. */
export async function addToLedger(
  stack: { readonly db: Pick<Stack['db'], 'execute'> },
  calls: readonly LedgerRow[],
): Promise<void> {
  const column = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const rows = calls.map((call) =>
    Object.fromEntries(Object.entries(call).map(([field, value]) => [column(field), value])),
  );
  const names = sql.raw(Object.keys(rows[0] ?? {}).join());
  await stack.db.execute(
    sql`insert into ledger (${names}) select ${names} from json_populate_recordset(null::ledger, ${JSON.stringify(rows)}::json)`,
  );
}

export const none = {
  calls: 0,
  uses: 0,
  cost: 0,
  failed_calls: 0,
  calls_of_unknown_cost: 0,
  input_tokens: 0,
  output_tokens: 0,
};

/** The cells of a text by RFC 4180. */
export function parseCsv(text: string): string[][] {
  expect(text.endsWith('\r\n')).toBe(true);
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === '\r\n') rows.push([]);
  }
  return rows.slice(0, -1);
}
