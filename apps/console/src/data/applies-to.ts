import type { SharedBudget } from '@presign/client';

type Request = Readonly<Record<string, unknown>>;

/** Whether a budget will limit the calls of a requested URL. `apiKey` is the id of the key that issues the URL. */
export function appliesTo(
  { scope, deleted_at: deleted }: Pick<SharedBudget, 'scope' | 'deleted_at'>,
  { external_user: user, virtual_key: key, metadata }: Request,
  apiKey: string | undefined,
): boolean {
  if (deleted !== null) return false;
  if (scope.account) return true;
  if (scope.api_key !== undefined) return scope.api_key === apiKey;
  if (scope.virtual_key !== undefined) return scope.virtual_key === key;
  if (scope.external_user !== undefined) return isOne(scope.external_user, user);
  const [tag = '', value = ''] = Object.entries(scope.metadata ?? {})[0] ?? [];
  return isOne(value, ((metadata ?? {}) as Request)[tag]);
}

/** `*` is a budget for each value. */
const isOne = (value: string, given: unknown): boolean =>
  typeof given === 'string' && given !== '' && (value === '*' || value === given);

type Budget = Pick<SharedBudget, 'kind' | 'scope' | 'window' | 'deleted_at'>;

/**
 * The budgets that will limit the calls of a requested URL. A template creates a budget with the first URL, unless one with its window
 * exists.
 */
export function budgetsOf<B extends Budget>(
  budgets: readonly B[],
  request: Request,
  apiKey: string | undefined,
): readonly B[] {
  const fit = budgets.filter((budget) => appliesTo(budget, request, apiKey));
  const made = new Set(fit.flatMap((each) => (each.kind === 'budget' ? selectorOf(each) : [])));
  return fit.filter((each) => each.kind === 'budget' || !made.has(selectorOf(each)));
}

/** At most one budget of each kind limits a call. */
const selectorOf = ({ scope, window }: Budget): string =>
  [...Object.keys(scope), ...Object.keys(scope.metadata ?? {}), window].join('\0');
