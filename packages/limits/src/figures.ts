import { type BudgetLimits, budgetLimits, LIMIT_NAMES, limitKind, TOKEN_LIMIT } from '@presign/schema/limits';
import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** A budget as Redis has it. */
export type BudgetFigures = BudgetLimits & {
  readonly used: number;
  readonly settledMicrousd: number;
  readonly heldMicrousd: number;
  /** Tokens of input and output. Counted in windows of shared budgets alone. */
  readonly tokenLimit: number | null;
  readonly tokens: number;
  readonly tokensHeld: number;
  /** Whether holders may see them, and the window that they are of. */
  readonly visible: boolean;
  readonly endsMs: number | undefined;
  /** Calls under way. Only counted where they are limited. */
  readonly activeCalls: number;
  /** How the last call failed, as the JSON that `settle` stored. Undefined if it did not fail. */
  readonly lastCall: string | undefined;
};

/**
 * Reads the live figures of these budgets.
 * @returns them in the order of `budgetIds`; undefined for a budget that is not loaded in the epoch of its partition: Redis
 *   does not know it, or has its figures from before a loss. Throws what ioredis throws.
 */
export async function readFigures(
  redis: RedisClient,
  { partition, budgetIds }: Pick<GrantRef, 'partition' | 'budgetIds'>,
): Promise<(BudgetFigures | undefined)[]> {
  // Sent first, so that figures of this epoch were those of the moment if a new epoch begins in between.
  const asked = redis.hget(keys.partition(partition), 'epoch');
  const read = budgetIds.map((id) => readBudget(redis, keys.budget(partition, id), asked));
  return Promise.all(read);
}

const FIGURES = [
  'epoch',
  'used',
  'settled',
  'held',
  'active',
  'last_call',
  'tokens',
  'tokens_held',
  'visible',
  'window',
] as const;
const FIELDS = [...FIGURES, TOKEN_LIMIT.field, ...LIMIT_NAMES.map((name) => limitKind(name).field)];

async function readBudget(
  redis: RedisClient,
  key: string,
  asked: Promise<string | null>,
): Promise<BudgetFigures | undefined> {
  const [epochNow, found] = await Promise.all([asked, redis.hmget(key, ...FIELDS)]);
  const [epoch, used, settled, held, active, lastCall, tokens, tokensHeld, ...others] = found;
  const [visible, window, tokenLimit, ...limits] = others;
  if (!used || epoch !== epochNow) return undefined;
  return {
    ...budgetLimits((name) => readLimit(limits[LIMIT_NAMES.indexOf(name)])),
    used: Number(used),
    settledMicrousd: Number(settled),
    heldMicrousd: Number(held),
    tokenLimit: readLimit(tokenLimit),
    tokens: Number(tokens ?? 0),
    tokensHeld: Number(tokensHeld ?? 0),
    visible: visible !== null,
    endsMs: Number(window?.split(' ')[1] || Number.NaN) || undefined,
    activeCalls: Number(active ?? 0),
    lastCall: lastCall ?? undefined,
  };
}

const readLimit = (text = null as string | null): number | null =>
  text === null || Number(text) < 0 ? null : Number(text);
