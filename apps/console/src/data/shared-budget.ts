import type { SharedBudget } from '@presign/client';
import { short } from './format/format.ts';
import type { UsageFilters } from './usage.ts';

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

/** The beginning of a budget's present window. A budget has spent nothing before it was created, and a window may begin in 1970. */
export const startOf = ({ current, created_at: created }: SharedBudget): number =>
  Math.max(current?.starts_at ?? 0, created);

/**
 * The filters of the calls that a budget covers. Undefined: calls cannot be filtered by them.
 * @param summed the keys of metadata by which the issuer sums calls
 */
export function filtersOfScope(
  { account, metadata, ...one }: SharedBudget['scope'],
  summed: readonly string[],
): UsageFilters | undefined {
  if (account) return {};
  const [[name, value] = ['', '']] = Object.entries(metadata ?? one);
  if (value === '*' || value === '') return undefined;
  if (!metadata) return { [name]: value };
  return summed.includes(name) ? { [`metadata.${name}`]: value } : undefined;
}

type Limits = { readonly cost_limit: number | null; readonly max_uses: number | null };
type Figures = { readonly used: number; readonly spent: number; readonly held?: number | null };

/** The figures of Redis, or those of the ledger if Redis does not answer. The ledger knows no holds. */
export const figuresOf = ({ current }: Pick<SharedBudget, 'current'>) =>
  current?.live ?? { used: 0, spent: 0, tokens: 0, ...current?.settled, held: null, tokens_held: null };

/** The used share of its fullest limit, including holds. */
export function shareOf({ current, tokens: most, ...limits }: SharedBudget): number {
  const { tokens, tokens_held: held, ...figures } = figuresOf({ current });
  return Math.max(shareUsed(limits, figures), most === null ? 0 : part(tokens + (held ?? 0), most));
}

/** The used share of the fullest limit of a URL or a virtual key, including holds. */
export const shareUsed = ({ cost_limit: cost, max_uses: uses }: Limits, figures: Figures): number =>
  Math.max(
    cost === null ? 0 : part(figures.spent + (figures.held ?? 0), cost),
    uses === null ? 0 : part(figures.used, uses),
  );

const part = (used: number, most: number) => (most === 0 ? 1 : used / most);
