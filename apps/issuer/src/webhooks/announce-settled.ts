import type { UsageEntry } from '@presign/limits';
import type { Transaction } from '@presign/schema/database';
import { budgets, grants, sessions } from '@presign/schema/tables';
import { and, asc, eq, gt, inArray, isNull, sql } from 'drizzle-orm';
import { type Noted, noteEvents } from './events.ts';

const LEVELS = [50, 80, 100] as const;
type Level = (typeof LEVELS)[number];

/** A budget as this transaction has left it, its row locked. */
export type ChangedBudget = Omit<typeof budgets.$inferSelect, 'partition'>;

type Grant = typeof grants.$inferSelect;

/** A limit of a budget of which more percent are settled than were told of. */
type Crossing = {
  readonly budget: ChangedBudget;
  readonly limit: 'max_uses' | 'cost_limit';
  readonly levels: readonly Level[];
};

/**
 * Notes `session.threshold` for each level that a budget has reached, and `session.exhausted`. A level is told once for
 * each limit, for good: the budget keeps the highest, under the lock of its row. It keeps it also while nobody listens,
 * so that an endpoint hears of nothing that was before it.
 */
export async function noteThresholds(
  tx: Transaction,
  changed: readonly ChangedBudget[],
  entries: readonly UsageEntry[],
): Promise<void> {
  const crossings = changed.flatMap(crossingsOf);
  if (crossings.length === 0) return;
  for (const { budget, limit, levels } of crossings) {
    const told = limit === 'max_uses' ? 'announcedUsesPercent' : 'announcedCostPercent';
    await tx
      .update(budgets)
      .set({ [told]: levels.at(-1) })
      .where(eq(budgets.id, budget.id));
  }
  const byBudget = await findGrants(tx, crossings, entries);
  const thresholds = crossings.flatMap((crossing) => {
    const grant = byBudget.get(crossing.budget.id);
    return grant ? tellThresholds(crossing, grant) : [];
  });
  await noteEvents(tx, thresholds);
  await noteExhausted(tx, crossings, byBudget);
}

function crossingsOf(budget: ChangedBudget): Crossing[] {
  const uses = levelsOf(budget.used, budget.maxUses, budget.announcedUsesPercent);
  const cost = levelsOf(budget.settledMicrousd, budget.costLimitMicrousd, budget.announcedCostPercent);
  const crossings = [
    { budget, limit: 'max_uses' as const, levels: uses },
    { budget, limit: 'cost_limit' as const, levels: cost },
  ];
  return crossings.filter(({ levels }) => levels.length > 0);
}

/** A limit of 0 allows nothing from the start: there is nothing to reach. */
function levelsOf(figure: number, limit: number | null, told: number): Level[] {
  if (!limit) return [];
  return LEVELS.filter((level) => level > told && BigInt(figure) * 100n >= BigInt(limit) * BigInt(level));
}

/** The grant by whose call each budget was last changed. */
async function findGrants(
  tx: Transaction,
  crossings: readonly Crossing[],
  entries: readonly UsageEntry[],
): Promise<ReadonlyMap<string, Grant>> {
  const wanted = new Set(crossings.map(({ budget }) => budget.id));
  const grantOf = new Map<string, string>();
  for (const { budgetIds, grantId } of entries)
    for (const id of budgetIds) if (wanted.has(id)) grantOf.set(id, grantId);
  const rows = await tx
    .select()
    .from(grants)
    .where(inArray(grants.id, [...new Set(grantOf.values())]));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const found = Array.from(grantOf, ([budgetId, grantId]) => [budgetId, byId.get(grantId)] as const);
  return new Map(found.filter((pair): pair is [string, Grant] => pair[1] !== undefined));
}

function tellThresholds({ budget, limit, levels }: Crossing, grant: Grant): Noted[] {
  const whose = isOwn(budget, grant)
    ? { ...ofGrant(grant), virtual_key: null }
    : {
        session_id: null,
        grant_id: null,
        virtual_key: grant.virtualKeyId,
        external_session: null,
        external_user: null,
      };
  const timestamp = new Date().toISOString();
  return levels.map((percent) => ({
    accountId: grant.accountId,
    event: {
      type: 'session.threshold',
      timestamp,
      data: { ...whose, percent, limit, ...figures(budget) },
    },
  }));
}

/**
 * A session is exhausted when a limit is reached and none of its grants is active any more. Its row is locked first:
 * of two transactions that each reach a limit, the second sees what the first has done.
 */
async function noteExhausted(
  tx: Transaction,
  crossings: readonly Crossing[],
  byBudget: ReadonlyMap<string, Grant>,
): Promise<void> {
  const reached = new Map<string, Noted>();
  for (const { budget, limit, levels } of crossings) {
    const grant = byBudget.get(budget.id);
    const before = limit === 'max_uses' ? budget.announcedCostPercent : budget.announcedUsesPercent;
    if (!grant || !levels.includes(100) || before === 100 || !isOwn(budget, grant)) continue;
    const data = { ...ofGrant(grant), limit, ...figures(budget) };
    const event = { type: 'session.exhausted' as const, timestamp: new Date().toISOString(), data };
    reached.set(grant.sessionId, { accountId: grant.accountId, event });
  }
  if (reached.size === 0) return;
  const ids = [...reached.keys()].sort();
  const locked = tx.select({ id: sessions.id }).from(sessions).where(inArray(sessions.id, ids));
  await locked.orderBy(asc(sessions.id)).for('no key update');
  for (const id of await sessionsWithActive(tx, ids)) reached.delete(id);
  await noteEvents(tx, [...reached.values()]);
}

/** Those of the sessions that still have an active grant. */
async function sessionsWithActive(tx: Transaction, ids: readonly string[]): Promise<string[]> {
  const usable = sql`(${budgets.maxUses} is null or ${budgets.used} < ${budgets.maxUses})
    and (${budgets.costLimitMicrousd} is null or ${budgets.costLimitMicrousd} = 0 or ${budgets.settledMicrousd} < ${budgets.costLimitMicrousd})`;
  const rows = await tx
    .selectDistinct({ id: grants.sessionId })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(
      and(
        inArray(grants.sessionId, [...ids]),
        isNull(grants.revokedAt),
        gt(grants.expiresAt, sql`now()`),
        usable,
      ),
    );
  return rows.map((row) => row.id);
}

const isOwn = (budget: ChangedBudget, grant: Grant) => grant.budgetId === budget.id;

const ofGrant = (grant: Grant) => ({
  session_id: grant.sessionId,
  // The grants of a bundle share its budget.
  grant_id: grant.bundleId ?? grant.id,
  external_session: grant.externalSession,
  external_user: grant.externalUser,
});

const figures = (budget: ChangedBudget) => ({
  max_uses: budget.maxUses ?? -1,
  cost_limit: budget.costLimitMicrousd,
  settled: { used: budget.used, spent: budget.settledMicrousd },
});
