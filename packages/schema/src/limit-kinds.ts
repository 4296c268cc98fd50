const MOST = Number.MAX_SAFE_INTEGER;

/** A kind of limit of a URL. */
type LimitKind = {
  /** Its name in code, and its column in `budgets`. */
  readonly property: string;
  /** Its field of a budget in Redis, by which scripts know it. */
  readonly field: string;
  /** The range of a value. */
  readonly least: number;
  readonly most: number;
  /** Its unit, if the name does not say it. */
  readonly unit?: string;
  /** Says in the API what a request asks for. */
  readonly description: string;
  readonly example?: number;
  /** `llm`: only URLs of LLM providers can have it. `all`: bundles of MCP servers, too. */
  readonly urls: 'llm' | 'all';
  /** A gateway that does not know of it refuses the token of a URL that has it. */
  readonly isCritical?: true;
  /** A budget in Redis always has it, as -1 where there is no limit. Only the oldest kinds. */
  readonly isAlwaysStored?: true;
  /** Set for a limit that fills again as time passes. */
  readonly rate?: RateKind;
};

/** The state and the refusal of a rate limit, as answers have them. */
type RateKind = {
  /** The window in which all of it fills. */
  readonly seconds: number;
  /** Its name in the headers of answers, and the unit there unless it counts calls. */
  readonly header: string;
  readonly unit?: string;
  /** The window in a message, after a number: `60 a minute`. */
  readonly each: string;
  /** The code and the message of a refusal. */
  readonly code: string;
  readonly message: string;
};

/**
 * The kinds of limits, by their names in requests and answers. Most of a limit follows from its row. Elsewhere are only its column
 * (`tables.ts`), its check (`admit.lua`), and rules of single kinds (`fields.ts`, `store-change.ts`). Bundles share one budget over all
 * their servers.
 */
export const LIMITS = {
  cost_limit: {
    property: 'costLimitMicrousd',
    field: 'cost_limit',
    least: 0,
    most: MOST,
    unit: 'Microdollars',
    description:
      'Microdollars that may be spent (1 dollar = 1000000). 0: only calls that cost nothing pass. Left out: unlimited.',
    example: 250_000,
    urls: 'all',
    isAlwaysStored: true,
  },
  max_uses: {
    property: 'maxUses',
    field: 'max_uses',
    least: 1,
    most: MOST,
    unit: 'Calls',
    description: 'How many calls may be made. -1, null: unlimited.',
    urls: 'all',
    isAlwaysStored: true,
  },
  calls_per_minute: {
    property: 'callsPerMinute',
    field: 'per_minute',
    least: 1,
    most: 1_000_000,
    description: 'How many calls may be made in a minute, at once or spread over it. Left out: unlimited.',
    example: 60,
    urls: 'all',
    rate: {
      seconds: 60,
      header: 'presign',
      each: 'a minute',
      code: 'rate_limited',
      message: 'Too many requests came within a minute. Wait as long as Retry-After says.',
    },
  },
  calls_per_day: {
    property: 'callsPerDay',
    field: 'per_day',
    least: 1,
    most: 1_000_000_000,
    description: 'How many calls may be made in 24 hours, at once or spread over them. Left out: unlimited.',
    example: 50,
    urls: 'all',
    isCritical: true,
    rate: {
      seconds: 86_400,
      header: 'presign-day',
      each: 'a day',
      code: 'daily_rate_limited',
      message: 'Too many calls came within a day. Wait as long as Retry-After says.',
    },
  },
  concurrent_calls: {
    property: 'concurrentCalls',
    field: 'concurrent',
    least: 1,
    most: 10_000,
    description: 'How many calls may be under way at once. Left out: unlimited.',
    example: 10,
    urls: 'all',
  },
  tokens_per_minute: {
    property: 'tokensPerMinute',
    field: 'token_rate',
    least: 1,
    most: 1_000_000_000,
    description:
      'How many tokens of input and output calls may use in a minute. A call takes the most that it can use, and gives the rest back when it ends. Left out: unlimited.',
    example: 100_000,
    urls: 'llm',
    isCritical: true,
    rate: {
      seconds: 60,
      header: 'presign-tokens',
      unit: 'tokens',
      each: 'a minute',
      code: 'token_rate_limited',
      message: 'Too few tokens of this minute are left for this call. Wait as long as Retry-After says.',
    },
  },
} as const satisfies Record<string, LimitKind>;

/**
 * Tokens of input and output in all. Only windows of shared budgets have this limit (`tokens` of `/v1/budgets`), so it is not a row of
 * `LIMITS`.
 */
export const TOKEN_LIMIT = { property: 'tokenLimit', field: 'token_limit', least: 0, most: MOST } as const;

type Kinds = typeof LIMITS;
export type LimitName = keyof Kinds;
/** The names of the kinds that have this in their rows. */
type NamesWith<P> = { [N in LimitName]: Kinds[N] extends P ? N : never }[LimitName];
export type McpLimitName = NamesWith<{ urls: 'all' }>;
export type RateName = NamesWith<{ rate: RateKind }>;
export type CriticalLimitName = NamesWith<{ isCritical: true }>;

/** The names of all limits, of those that a bundle can have, and of those that gateways must know of. */
export const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[];
export const MCP_LIMIT_NAMES = LIMIT_NAMES.filter((name) => LIMITS[name].urls === 'all') as McpLimitName[];
export const CRITICAL_LIMIT_NAMES = LIMIT_NAMES.filter(
  (name) => 'isCritical' in LIMITS[name],
) as CriticalLimitName[];
const RATE_NAMES = LIMIT_NAMES.filter((name) => 'rate' in LIMITS[name]) as RateName[];

/** The row of a kind. */
export const limitKind = (name: LimitName): LimitKind & { readonly property: keyof BudgetLimits } =>
  LIMITS[name];

type StoredLimit = Pick<LimitKind, 'field' | 'isAlwaysStored'> & {
  readonly property: keyof BudgetLimits | (typeof TOKEN_LIMIT)['property'];
};
/** All limits that a budget in Redis can have. */
export const STORED_LIMITS: readonly StoredLimit[] = [...LIMIT_NAMES.map(limitKind), TOKEN_LIMIT];

/** How a rate limit appears in answers. */
export const rateKind = (name: RateName): RateKind & { readonly code: RateCode } => LIMITS[name].rate;

/** The code of the refusal of each rate limit. */
export type RateCode = Kinds[RateName]['rate']['code'];
export const RATE_CODES: readonly RateCode[] = RATE_NAMES.map((name) => rateKind(name).code);

type RateError = readonly [429, 'rate_limit_error', string];
/** The errors of the rate limits, for the table of all errors. */
export const RATE_ERRORS = Object.fromEntries(
  RATE_NAMES.map((name): [string, RateError] => [
    rateKind(name).code,
    [429, 'rate_limit_error', rateKind(name).message],
  ]),
) as { readonly [C in RateCode]: RateError };

/** The limits of a budget, as its row has them. Null: no limit. */
export type BudgetLimits = { readonly [N in LimitName as Kinds[N]['property']]: number | null };

/** The limits that a request or a change asks for. Undefined: as before. Null, and -1: no limit. */
type AskedLimits = { readonly [N in LimitName]?: number | null | undefined };

export const UNLIMITED: BudgetLimits = budgetLimits(() => null);

/** The limits alone of a row that has more. */
export const limitsIn = (row: BudgetLimits): BudgetLimits => budgetLimits((_, property) => row[property]);

/** The limits after a change. */
export const changedLimits = (now: BudgetLimits, asked: AskedLimits): BudgetLimits =>
  budgetLimits((name, property) => {
    const value = asked[name];
    return value === undefined ? now[property] : value === -1 ? null : value;
  });

/** The limits of a budget, each by its name. */
export function budgetLimits(
  read: (name: LimitName, property: keyof BudgetLimits) => number | null,
): BudgetLimits {
  const entries = LIMIT_NAMES.map((name) => {
    const { property } = LIMITS[name];
    return [property, read(name, property)];
  });
  return Object.fromEntries(entries) as BudgetLimits;
}

/** Limits as answers show them: null where there is none. */
export type ShownLimits = { [N in LimitName]: number | null };

/** The limits of a budget as answers show them. */
export const showLimits = (limits: BudgetLimits): ShownLimits =>
  Object.fromEntries(LIMIT_NAMES.map((name) => [name, limits[LIMITS[name].property]])) as ShownLimits;

/** The state of a rate limit after a call was counted. */
export type RateLimit = {
  readonly name: RateName;
  readonly limit: number;
  /** The part that is left now, and the ms until all of it is. */
  readonly left: number;
  readonly resetMs: number;
};
