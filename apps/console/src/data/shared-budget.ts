import type { SharedBudget } from '@presign/client';
import { short } from './format.ts';

/** A budget's name, or its user or metadata. */
export function nameOf({ name, scope, id }: SharedBudget): string {
  const { external_user: user, metadata } = scope;
  if (user !== undefined) return name ?? (user === '*' ? 'each user' : user);
  return name ?? (metadata ? metadataOf(metadata) : short(id));
}

/** A selector of metadata has one key. */
export function metadataOf(metadata: Readonly<Record<string, string>>): string {
  const [key = '', value = ''] = Object.entries(metadata)[0] ?? [];
  return value === '*' ? `each ${key}` : `${key} ${value}`;
}

type Most = { readonly cost_limit: number | null; readonly max_uses: number };
type Used = { readonly used: number; readonly spent: number; readonly held: number };

/** The largest share of what is used of the limits of a shared budget, holds included. */
export function shareOf(budget: SharedBudget): number {
  const live = budget.current?.live;
  if (!live) return 0;
  const ofTokens = budget.tokens === null ? 0 : part(live.tokens + live.tokens_held, budget.tokens);
  return Math.max(shareOfLimits(budget, live), ofTokens);
}

/** The larger share of what is used of `cost_limit` and `max_uses`, holds included. */
export const shareOfLimits = (
  { cost_limit: cost, max_uses: uses }: Most,
  { used, spent, held }: Used,
): number => Math.max(cost === null ? 0 : part(spent + held, cost), uses === -1 ? 0 : part(used, uses));

const part = (used: number, most: number) => (most === 0 ? 1 : used / most);
