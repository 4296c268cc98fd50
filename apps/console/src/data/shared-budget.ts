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

/** The largest share of what is used of its limits, holds included. */
export function shareOf({ current, cost_limit: cost, max_uses: uses, tokens }: SharedBudget): number {
  const live = current?.live ?? { used: 0, spent: 0, held: 0, tokens: 0, tokens_held: 0 };
  return Math.max(
    cost === null ? 0 : part(live.spent + live.held, cost),
    uses === -1 ? 0 : part(live.used, uses),
    tokens === null ? 0 : part(live.tokens + live.tokens_held, tokens),
  );
}

const part = (used: number, most: number) => (most === 0 ? 1 : used / most);
