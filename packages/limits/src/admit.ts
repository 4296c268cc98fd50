import type { RateLimit, RateName } from '@presign/schema';
import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { type Field, figure, flag, number, oneOf, optional, text } from './reply.ts';
import { script } from './script.ts';

/**
 * Entries of stream and leases that a partition may hold without asking. Beyond it, calls are admitted only while Redis has room:
 * `lua/shared/room.lua`.
 */
export const BACKLOG_MAX = 100_000;
/** The part of `maxmemory` below which Redis has room, as `lua/shared/room.lua` has it. */
export const BACKLOG_ROOM = 0.75;

/** Every refusal of a budget has these. */
const ofBudget = { lastCall: optional(text), isVisible: flag, endsMs: optional(figure) } as const;

const overLimit = {
  of: number,
  limitMicrousd: figure,
  settledMicrousd: figure,
  heldMicrousd: figure,
  neededMicrousd: figure,
  ...ofBudget,
} as const;

const overTokens = { of: number, needed: figure, ...ofBudget, limit: figure, used: figure } as const;

/** The text that `rate_text` of the script writes for each rate limit. */
const rateLimits: Field<readonly RateLimit[]> = {
  lua: (value) => value,
  read: (raw) => readRates(String(raw)),
};

/** The text of one rate limit. */
const rateLimit: Field<RateLimit> = {
  lua: (value) => value,
  read: (raw) => {
    const [first] = readRates(String(raw));
    if (!first) throw new Error('admit names no rate limit');
    return first;
  },
};

/** `lua/admit.lua`. Both `admit` and `charge` run it. */
export const admitScript = script('admit', {
  keys: ['partition', 'account', 'grant', 'credential', 'hold', 'leases', 'usage'],
  args: [
    'mode',
    'holdId',
    'leaseMs',
    'uses',
    'calls',
    'backlogMax',
    'grantId',
    'budgetIds',
    'record',
    'places',
    'fixed',
    'rate',
    'tokens',
    'leastTokens',
    'worstTokens',
  ],
  each: { keys: ['budget'] },
  reply: oneOf({
    admitted: {
      epoch: text,
      credentialVersion: number,
      usesLeft: optional(figure),
      microusdLeft: optional(figure),
      heldMicrousd: figure,
      tokens: figure,
      isReturnable: flag,
      places: number,
      rateLimits,
      limitsCost: flag,
      limitsTokens: flag,
    },
    unknown: {},
    closed: {},
    backlog: {},
    revoked: {},
    credential_revoked: {},
    suspended: {},
    expired: {},
    unbounded: {},
    another_window: { nowMs: figure },
    uses_exhausted: { of: number, limit: figure, used: figure, ...ofBudget },
    rate_limited: { rateLimit, waitMs: figure, needed: optional(figure) },
    batch_over_rate: { rateLimit, needed: number },
    concurrency_limited: { limit: number, active: number, needed: number },
    token_rate_too_low: { limit: figure, needed: figure },
    cost_limit_reached: overLimit,
    cost_held: overLimit,
    cost_limit_too_low: overLimit,
    token_limit_reached: overTokens,
    tokens_held: overTokens,
    token_limit_too_low: overTokens,
  }),
});

/** The worst cost of a call. Tokens times rate must stay below 2^53: the script multiplies them. */
export type Hold = {
  /** The most that input and fees can cost. */
  readonly fixedMicrousd: number;
  /** Microdollars per million tokens of the output bound, all choices together; undefined: no output is paid for. */
  readonly ratePerMtok: number | undefined;
  readonly askedTokens: number;
  /** The script may lower the bound to this, where what is settled leaves no room for what the call asked. */
  readonly leastTokens: number;
};

/** The hold of a call whose cost is known, or has no output in it. */
export const fixedHold = (fixedMicrousd: number): Hold => ({
  fixedMicrousd,
  ratePerMtok: undefined,
  askedTokens: 0,
  leastTokens: 0,
});

/** A call to admit. */
export type Ask = {
  /** 128 random bits, hex: names this admission for good. */
  readonly holdId: string;
  readonly uses: number;
  /** The most the call can cost, held until it is settled; undefined where no bound is known. */
  readonly hold: Hold | undefined;
  /** The most tokens that it can use, input and output together; undefined where no bound is known. */
  readonly worstTokens?: number | undefined;
  /** The places that it takes among the calls under way. One when left out. */
  readonly places?: number;
  /** How long the hold stands unless it is renewed. */
  readonly leaseMs: number;
  /** JSON, kept with the hold: the ledger gets it should this gateway die. */
  readonly record: string;
};

export type Admission =
  | {
      readonly is: 'admitted';
      readonly epoch: string;
      readonly credentialVersion: number;
      /** Undefined: unlimited. */
      readonly usesLeft: number | undefined;
      readonly microusdLeft: number | undefined;
      /** The amount that is held for the call, or that was charged. */
      readonly heldMicrousd: number;
      /** The output bound it may have, all choices together: what it asked or less. */
      readonly tokens: number;
      /** Whether a refused call would get its uses and its cost back, as far as is known now: see `lua/shared/give-back.lua`. */
      readonly isReturnable: boolean;
      /** The rate limits of the URL itself, after this call. */
      readonly rateLimits: readonly RateLimit[];
      /** The places it takes among the calls under way; 0 where they are not limited. They are free when it is settled or `leave`s. */
      readonly places: number;
      /** Whether any budget of the grant limits what its calls cost, or the tokens that they use. */
      readonly limitsCost: boolean;
      readonly limitsTokens: boolean;
    }
  | { readonly is: 'unknown' }
  | { readonly is: 'closed' | 'backlog' | 'revoked' | 'credential_revoked' | 'suspended' }
  /** `expired`: the grant's end was moved, and has passed. `unbounded`: a budget has a limit that the gateway does not know of. */
  | { readonly is: 'expired' }
  | { readonly is: 'unbounded' }
  /** By the clock of Redis, which says `nowMs`, a window of a budget has ended or not begun. */
  | { readonly is: 'another_window'; readonly nowMs: number }
  | ({
      readonly is: 'uses_exhausted';
      /** The budget whose limit it is: its place in `budgetIds`, from 1, which is the grant's own. */
      readonly of: number;
      readonly limit: number;
      readonly used: number;
    } & OfBudget)
  | {
      readonly is: 'rate_limited';
      readonly rateLimit: RateLimit;
      /** Until this call may pass. */
      readonly waitMs: number;
      /** The tokens that it may use. Undefined if the limit counts calls. */
      readonly needed: number | undefined;
    }
  /** A batch of `needed` calls never passes: the window of the limit does not hold so many. */
  | { readonly is: 'batch_over_rate'; readonly rateLimit: RateLimit; readonly needed: number }
  | { readonly is: 'token_rate_too_low'; readonly limit: number; readonly needed: number }
  | {
      readonly is: 'concurrency_limited';
      readonly limit: number;
      readonly active: number;
      readonly needed: number;
    }
  | ({
      readonly is: 'cost_limit_reached' | 'cost_held' | 'cost_limit_too_low';
      /** As above. */
      readonly of: number;
      readonly limitMicrousd: number;
      readonly settledMicrousd: number;
      readonly heldMicrousd: number;
      /** The money that this call would have to hold or to pay. */
      readonly neededMicrousd: number;
    } & OfBudget)
  | ({
      readonly is: 'token_limit_reached' | 'tokens_held' | 'token_limit_too_low';
      /** As above: a window of a shared budget. */
      readonly of: number;
      /** The tokens that this call would have to hold. */
      readonly needed: number;
      readonly limit: number;
      readonly used: number;
    } & OfBudget);

type OfBudget = {
  readonly lastCall: LastCallText;
  /** Whether the holder may learn the figures of this budget. */
  readonly isVisible: boolean;
  /** When its window ends, if it has an end and the holder may learn it. */
  readonly endsMs: number | undefined;
};

/** How the grant's last call failed, as the JSON that `settle` stored. Undefined if it did not fail. */
type LastCallText = string | undefined;

/**
 * Counts a call's uses and holds its worst cost in all budgets of its grant, or in none: one atomic round trip.
 * `unknown` asks for `loadGrant` first. Throws what ioredis throws; the call must then not pass.
 */
export const admit = (
  redis: RedisClient,
  grant: GrantRef,
  { holdId: id, uses, hold, worstTokens, places = 1, leaseMs, record }: Ask,
): Promise<Admission> => {
  const call = {
    mode: 'hold',
    id,
    calls: uses,
    places,
    uses,
    hold,
    worstTokens,
    leaseMs,
    record,
  } as const;
  return countCall(redis, grant, call);
};

/**
 * Asks whether a call may pass, and counts nothing: the uses, and for a call that spends one microdollar, are there.
 * Throws what ioredis throws.
 */
export const checkGrant = (
  redis: RedisClient,
  grant: GrantRef,
  { uses, spends }: { readonly uses: number; readonly spends: boolean },
): Promise<Admission> =>
  countCall(redis, grant, {
    id: '',
    mode: 'check',
    uses,
    calls: uses,
    places: uses,
    hold: fixedHold(spends ? 1 : 0),
    worstTokens: 0,
    record: '',
  });

/**
 * Whether a budget of a grant limits what its calls cost, or the tokens that they use. Undefined: Redis does not have the grant as
 * `ref` names it, or refuses all its calls. It counts nothing. Throws what ioredis throws.
 */
export async function hasLimit(
  redis: RedisClient,
  grant: GrantRef,
  of: 'cost' | 'tokens',
): Promise<boolean | undefined> {
  const none = { id: '', mode: 'check', uses: 0, calls: 0, places: 0, record: '' } as const;
  const unbounded =
    of === 'cost' ? { hold: undefined, worstTokens: 0 } : { hold: fixedHold(0), worstTokens: undefined };
  const { is } = await countCall(redis, grant, { ...none, ...unbounded });
  return is === 'unbounded' ? true : is === 'admitted' ? false : undefined;
}

type Counted = {
  /** A charge holds nothing, and a check counts nothing. */
  readonly mode: 'hold' | 'charge' | 'check';
  readonly id: string;
  /** The lease of the hold, or of the places of a charge. */
  readonly leaseMs?: number | undefined;
  readonly uses: number;
  /** How many calls count for the rate limit. */
  readonly calls: number;
  /** Its calls under way, while their number is limited. */
  readonly places: number;
  readonly hold: Hold | undefined;
  readonly worstTokens?: number | undefined;
  readonly record: string;
};

/** Counts a call in all budgets of its grant, or in none. */
export function countCall(redis: RedisClient, grant: GrantRef, call: Counted): Promise<Admission> {
  const at = grant.partition;
  const { mode, id, leaseMs, uses, calls, places, hold, worstTokens, record } = call;
  return admitScript.run(redis, {
    keys: {
      partition: keys.partition(at),
      account: keys.account(at, grant.accountId),
      grant: keys.grant(at, grant.id),
      credential: keys.credential(at, grant.credentialId),
      hold: keys.hold(at, id),
      leases: keys.leases(at),
      usage: keys.usage(at),
    },
    args: {
      mode,
      holdId: id,
      leaseMs,
      uses,
      calls,
      backlogMax: BACKLOG_MAX,
      grantId: grant.id,
      budgetIds: grant.budgetIds.join(','),
      record,
      places,
      fixed: hold?.fixedMicrousd,
      rate: hold?.ratePerMtok ?? 0,
      tokens: hold?.askedTokens ?? 0,
      leastTokens: hold?.leastTokens ?? 0,
      worstTokens,
    },
    each: grant.budgetIds.map((budgetId) => ({ budget: keys.budget(at, budgetId) })),
  });
}

const NO_RATES: readonly RateLimit[] = [];

function readRates(text: string): readonly RateLimit[] {
  if (text === '') return NO_RATES;
  const parts = text.trimEnd().split(' ');
  const rates: RateLimit[] = [];
  for (let i = 0; i < parts.length; i += 4) {
    const [name, limit, left, resetMs] = parts.slice(i, i + 4);
    rates.push({
      name: name as RateName,
      limit: Number(limit),
      left: Number(left),
      resetMs: Number(resetMs),
    });
  }
  return rates;
}
