import { budgets } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { eq } from 'drizzle-orm';

/** Percents of a limit that are announced, unless a shared budget has others. */
export const LEVELS = [50, 80, 100] as const;

/** The columns of each limit of a budget whose levels are announced. */
const LIMITS = {
  max_uses: { figure: 'used', most: 'maxUses', announced: 'announcedUsesPercent' },
  cost_limit: { figure: 'settledMicrousd', most: 'costLimitMicrousd', announced: 'announcedCostPercent' },
  tokens: { figure: 'usedTokens', most: 'tokenLimit', announced: 'announcedTokensPercent' },
} as const;

type AnnouncedLimit = keyof typeof LIMITS;
type Column = (typeof LIMITS)[AnnouncedLimit];

const NAMES = Object.keys(LIMITS) as AnnouncedLimit[];

/** A budget as a transaction has left it, with its row locked. */
export type ChangedBudget = Omit<typeof budgets.$inferSelect, 'partition'>;

/** Levels of one limit of a budget that are reached and not announced yet. */
export type Crossing<Level extends number = number> = {
  readonly budget: ChangedBudget;
  readonly limit: AnnouncedLimit;
  readonly levels: readonly Level[];
};

/** Finds the levels, in rising order, that a budget has reached and that are not announced yet. */
export function crossingsOf<Level extends number>(
  budget: ChangedBudget,
  levels: readonly Level[],
): Crossing<Level>[] {
  const crossings = NAMES.map((limit) => {
    const { figure, most, announced } = LIMITS[limit];
    return { budget, limit, levels: reached(budget[figure], budget[most], budget[announced], levels) };
  });
  return crossings.filter((each) => each.levels.length > 0);
}

/** A limit of 0 allows nothing from the start, so it has no levels. */
function reached<Level extends number>(
  figure: number,
  limit: number | null,
  announced: number,
  levels: readonly Level[],
): Level[] {
  if (!limit) return [];
  return levels.filter(
    (level) => level > announced && BigInt(figure) * 100n >= BigInt(limit) * BigInt(level),
  );
}

/** Stores the highest level of each crossing, under the lock of the budget's row, so that none is announced again. */
export async function markAnnounced(tx: Transaction, crossings: readonly Crossing[]): Promise<void> {
  for (const { budget, limit, levels } of crossings)
    await tx
      .update(budgets)
      .set({ [LIMITS[limit].announced]: levels.at(-1) })
      .where(eq(budgets.id, budget.id));
}

/** Whether the exhaustion of a limit of this budget was announced before. */
export const wasExhausted = (budget: ChangedBudget): boolean =>
  NAMES.some((limit) => budget[LIMITS[limit].announced] === 100);

/** Returns the highest announced levels that are still reached under new limits. The levels above them will be announced again. */
export const announcedUnder = (
  budget: ChangedBudget,
  limits: Pick<ChangedBudget, Column['most']>,
  levels: readonly number[] = LEVELS,
): Record<Column['announced'], number> => {
  const under = NAMES.map((limit) => {
    const { figure, most, announced } = LIMITS[limit];
    const still = reached(budget[figure], limits[most], 0, levels);
    return [announced, still.filter((level) => level <= budget[announced]).at(-1) ?? 0] as const;
  });
  return Object.fromEntries(under) as Record<Column['announced'], number>;
};
