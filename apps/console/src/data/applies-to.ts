import type { SharedBudget } from '@presign/client';

type Request = Readonly<Record<string, unknown>>;

/** Whether calls of a URL that is requested will draw on a budget. `apiKey` is the id of the key that issues it. */
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
