import type { SharedBudget } from '@presign/client';
import { short } from './format.ts';

/** A budget's name, or what it is for. */
export const nameOf = ({ name, scope, kind, id }: SharedBudget): string =>
  name ?? (kind === 'template' ? 'each user' : (scope.external_user ?? short(id)));

/** The larger share of what is used of its limits, holds included. */
export function shareOf({ current, cost_limit: costLimit, max_uses: maxUses }: SharedBudget): number {
  const live = current?.live ?? { used: 0, spent: 0, held: 0 };
  const spent = costLimit === null ? 0 : part(live.spent + live.held, costLimit);
  return Math.max(spent, maxUses === -1 ? 0 : part(live.used, maxUses));
}

const part = (used: number, most: number) => (most === 0 ? 1 : used / most);
