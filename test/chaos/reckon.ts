import { ledger } from '@presign/schema/ledger-tables';
import { budgets } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import type { Billed } from './billing-provider.ts';
import type { Samples } from './sample.ts';

export type Row = typeof ledger.$inferSelect;

/** One URL's calls, held against the provider's own books. */
export type Reckoning = {
  readonly rows: number;
  readonly expired: number;
  /** Microdollars in the ledger, and those that the provider's own books come to. */
  readonly ledgerMicrousd: number;
  readonly billedMicrousd: number;
  /** Calls that the provider has and the ledger has not. */
  readonly missing: readonly string[];
  /** Uses that the ledger has kept. */
  readonly uses: number;
  /** The violated guarantees, one line each. */
  readonly violations: readonly string[];
};

type Books = {
  readonly billed: ReadonlyMap<string, Billed>;
  readonly rows: readonly Row[];
  readonly held: Samples['held'];
  /** The provider's name for the call of a row. */
  readonly nameOf?: ((row: Row) => string) | undefined;
};

/** All rows of a grant. */
export const rowsOf = (db: Database, grantId: string): Promise<Row[]> =>
  db.select().from(ledger).where(eq(ledger.grantId, grantId));

/** The budget's sums in Postgres. */
export async function budgetOf(db: Database, budgetId: string) {
  const [budget] = await db.select().from(budgets).where(eq(budgets.id, budgetId));
  if (!budget) throw new Error('no such budget');
  return budget;
}

/** Holds ledger and provider against each other, call by call. */
export function reckon({ billed, rows, held, nameOf = modelOf }: Books): Reckoning {
  const violations: string[] = [];
  const byModel = new Map<string, Row[]>();
  for (const row of rows) byModel.set(nameOf(row), [...(byModel.get(nameOf(row)) ?? []), row]);
  for (const [model, own] of byModel) {
    if (own.length > 1) violations.push(`${model}: ${own.length} rows in the ledger`);
    for (const row of own) {
      const fault = faultOf(row, billed.get(model), held.get(row.holdId.replaceAll('-', '')));
      if (fault) violations.push(`${model}: ${fault} (${row.outcome}, ${row.failure ?? 'no failure'})`);
    }
  }
  const missing = [...billed.keys()].filter((model) => !byModel.has(model));
  for (const [model, { times }] of billed) if (times > 1) violations.push(`${model}: sent ${times} times`);
  const cost = (row: Row) => row.costMicrousd ?? 0;
  return {
    rows: rows.length,
    expired: rows.filter((row) => row.outcome === 'expired').length,
    ledgerMicrousd: rows.reduce((sum, row) => sum + cost(row), 0),
    billedMicrousd: [...billed.values()].reduce((sum, each) => sum + each.microusd, 0),
    missing,
    uses: rows.reduce((sum, row) => sum + row.uses, 0),
    violations,
  };
}

const modelOf = ({ model }: Row): string => model ?? '';

/** A call is cut if its gateway could not renew its place for too long, as when Redis is away. */
const LOST_PLACE = 'limits_unavailable';

/** The fault of a call's row; undefined if the row is right. */
function faultOf(row: Row, billed: Billed | undefined, held: number | undefined): string | undefined {
  const cost = row.costMicrousd ?? Number.NaN;
  if (row.overrunMicrousd !== 0) return `overrun of ${row.overrunMicrousd}`;
  if (row.outcome === 'expired') return asHeld(cost, held, billed?.microusd ?? 0, 'of an expired hold');
  if (row.failure === LOST_PLACE)
    return asHeld(cost, held, billed?.microusd ?? 0, 'of a call that lost its place');
  if (!billed) return cost === 0 ? undefined : `charged ${cost}, which no provider saw`;
  switch (billed.fate) {
    case 'answer':
      return cost === billed.microusd ? undefined : `charged ${cost}, cost ${billed.microusd}`;
    case 'silent':
    case 'broken':
    case 'hung up':
    case 'page':
      return asHeld(cost, held, billed.microusd, `of a call that ended ${billed.fate}`);
    case 'bad request':
    case 'rate limited':
    case 'own error':
      return cost === 0 ? undefined : `charged ${cost} for ${billed.fate}`;
  }
}

/** The whole hold, where a sample saw it; at least what the work cost in any case, and never nothing. */
function asHeld(cost: number, held: number | undefined, least: number, of: string): string | undefined {
  if (held !== undefined && cost !== held) return `charged ${cost} ${of}, held ${held}`;
  return cost >= Math.max(1, least) ? undefined : `charged ${cost} ${of}, cost ${least}`;
}
