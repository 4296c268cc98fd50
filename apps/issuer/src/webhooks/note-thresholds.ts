import type { UsageEntry } from '@presign/limits';
import type { Transaction } from '@presign/schema/database';
import { grants, pots, sessions } from '@presign/schema/tables';
import { and, asc, eq, gt, inArray, isNull, sql } from 'drizzle-orm';
import { type Noted, noteEvents } from './note-events.ts';

const LEVELS = [50, 80, 100] as const;
type Level = (typeof LEVELS)[number];

/** A pot as this transaction has left it, its row locked. */
export type ChangedPot = Omit<typeof pots.$inferSelect, 'partition'>;

type Grant = typeof grants.$inferSelect;

/** A limit of a pot of which more percent are settled than were told of. */
type Crossing = {
  readonly pot: ChangedPot;
  readonly limit: 'max_uses' | 'cost_limit';
  readonly levels: readonly Level[];
};

/**
 * Notes `session.threshold` for each level that a pot has reached, and `session.exhausted`. A level is told once for
 * each limit, for good: the pot keeps the highest, under the lock of its row. It keeps it also while nobody listens,
 * so that an endpoint hears of nothing that was before it.
 */
export async function noteThresholds(
  tx: Transaction,
  changed: readonly ChangedPot[],
  entries: readonly UsageEntry[],
): Promise<void> {
  const crossings = changed.flatMap(crossingsOf);
  if (crossings.length === 0) return;
  for (const { pot, limit, levels } of crossings) {
    const told = limit === 'max_uses' ? 'toldUsesPercent' : 'toldCostPercent';
    await tx
      .update(pots)
      .set({ [told]: levels.at(-1) })
      .where(eq(pots.id, pot.id));
  }
  const byPot = await findGrants(tx, crossings, entries);
  const thresholds = crossings.flatMap((crossing) => {
    const grant = byPot.get(crossing.pot.id);
    return grant ? tellThresholds(crossing, grant) : [];
  });
  await noteEvents(tx, thresholds);
  await noteExhausted(tx, crossings, byPot);
}

function crossingsOf(pot: ChangedPot): Crossing[] {
  const uses = levelsOf(pot.used, pot.maxUses, pot.toldUsesPercent);
  const cost = levelsOf(pot.settledMicrousd, pot.costLimitMicrousd, pot.toldCostPercent);
  const crossings = [
    { pot, limit: 'max_uses' as const, levels: uses },
    { pot, limit: 'cost_limit' as const, levels: cost },
  ];
  return crossings.filter(({ levels }) => levels.length > 0);
}

/** A limit of 0 allows nothing from the start: there is nothing to reach. */
function levelsOf(figure: number, limit: number | null, told: number): Level[] {
  if (!limit) return [];
  return LEVELS.filter((level) => level > told && BigInt(figure) * 100n >= BigInt(limit) * BigInt(level));
}

/** The grant by whose call each pot was last changed. */
async function findGrants(
  tx: Transaction,
  crossings: readonly Crossing[],
  entries: readonly UsageEntry[],
): Promise<ReadonlyMap<string, Grant>> {
  const wanted = new Set(crossings.map(({ pot }) => pot.id));
  const grantOf = new Map<string, string>();
  for (const { potIds, grantId } of entries)
    for (const id of potIds) if (wanted.has(id)) grantOf.set(id, grantId);
  const rows = await tx
    .select()
    .from(grants)
    .where(inArray(grants.id, [...new Set(grantOf.values())]));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const found = Array.from(grantOf, ([potId, grantId]) => [potId, byId.get(grantId)] as const);
  return new Map(found.filter((pair): pair is [string, Grant] => pair[1] !== undefined));
}

function tellThresholds({ pot, limit, levels }: Crossing, grant: Grant): Noted[] {
  const whose = isOwn(pot, grant)
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
      data: { ...whose, percent, limit, ...figures(pot) },
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
  byPot: ReadonlyMap<string, Grant>,
): Promise<void> {
  const reached = new Map<string, Noted>();
  for (const { pot, limit, levels } of crossings) {
    const grant = byPot.get(pot.id);
    const before = limit === 'max_uses' ? pot.toldCostPercent : pot.toldUsesPercent;
    if (!grant || !levels.includes(100) || before === 100 || !isOwn(pot, grant)) continue;
    const data = { ...ofGrant(grant), limit, ...figures(pot) };
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
  const usable = sql`(${pots.maxUses} is null or ${pots.used} < ${pots.maxUses})
    and (${pots.costLimitMicrousd} is null or ${pots.costLimitMicrousd} = 0 or ${pots.settledMicrousd} < ${pots.costLimitMicrousd})`;
  const rows = await tx
    .selectDistinct({ id: grants.sessionId })
    .from(grants)
    .innerJoin(pots, eq(pots.id, grants.potId))
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

const isOwn = (pot: ChangedPot, grant: Grant) => grant.potId === pot.id;

const ofGrant = (grant: Grant) => ({
  session_id: grant.sessionId,
  // The grants of a bundle share its pot.
  grant_id: grant.bundleId ?? grant.id,
  external_session: grant.externalSession,
  external_user: grant.externalUser,
});

const figures = (pot: ChangedPot) => ({
  max_uses: pot.maxUses ?? -1,
  cost_limit: pot.costLimitMicrousd,
  settled: { used: pot.used, spent: pot.settledMicrousd },
});
