import { type GrantRef, keys } from './keys.ts';
import type { RateLimit } from './rate-limit.ts';
import { type RedisClient, script } from './script.ts';

const run = script('admit', 'bucket');

/** Entries of stream and leases a partition may hold before calls are refused until the ledger catches up. */
export const BACKLOG_MAX = 100_000;

/** The worst cost of a call. Tokens times rate must stay below 2^53: the script multiplies them. */
export type Hold = {
  /** Input and fees at their most. */
  readonly fixedMicrousd: number;
  /** Microdollars per million tokens of the output bound, all choices together; undefined: no output is paid for. */
  readonly ratePerMtok: number | undefined;
  readonly askedTokens: number;
  /** The bound may be lowered to this, where what is settled leaves no room for what was asked. */
  readonly leastTokens: number;
};

/** A known cost, or none to be bounded by output. */
export const fixedHold = (fixedMicrousd: number): Hold => ({
  fixedMicrousd,
  ratePerMtok: undefined,
  askedTokens: 0,
  leastTokens: 0,
});

export type Admission =
  | {
      readonly is: 'admitted';
      readonly epoch: string;
      readonly credentialVersion: number;
      /** Undefined: unlimited. */
      readonly usesLeft: number | undefined;
      readonly microusdLeft: number | undefined;
      /** What is held for it, or was charged. */
      readonly heldMicrousd: number;
      /** The output bound it may have, all in all what was asked or less. */
      readonly tokens: number;
      /** Undefined: as many calls a minute as come. */
      readonly rateLimit: RateLimit | undefined;
    }
  | { readonly is: 'unknown' }
  | { readonly is: 'closed' | 'backlog' | 'revoked' | 'credential_revoked' }
  | { readonly is: 'uses_exhausted'; readonly ofOwn: boolean; readonly limit: number; readonly used: number }
  | {
      readonly is: 'rate_limited';
      readonly rateLimit: RateLimit /** Until it may pass. */;
      readonly waitMs: number;
    }
  | {
      readonly is: 'cost_limit_reached' | 'cost_held' | 'cost_limit_too_low';
      /** Whether it is the limit of the grant's own budget, and not of a budget that it shares. */
      readonly ofOwn: boolean;
      readonly limitMicrousd: number;
      readonly settledMicrousd: number;
      readonly heldMicrousd: number;
      /** What this call would have to hold, or to pay. */
      readonly neededMicrousd: number;
    };

/** A call to count. */
type Counted = {
  /** 128 random bits, hex. */
  readonly id: string;
  /** Undefined: its cost is charged at once, and nothing is held. */
  readonly leaseMs: number | undefined;
  readonly uses: number;
  readonly hold: Hold | undefined;
  readonly record: string;
};

/** Counts a call in all budgets of its grant, or in none. */
export async function countCall(redis: RedisClient, grant: GrantRef, call: Counted): Promise<Admission> {
  const at = grant.partition;
  const names = [
    keys.partition(at),
    keys.grant(at, grant.id),
    keys.credential(at, grant.credentialId),
    keys.hold(at, call.id),
    keys.leases(at),
    keys.usage(at),
    ...grant.budgetIds.map((id) => keys.budget(at, id)),
  ];
  const args = [
    call.id,
    call.leaseMs ?? '',
    call.uses,
    BACKLOG_MAX,
    grant.id,
    grant.budgetIds.join(','),
    call.record,
    call.hold?.fixedMicrousd ?? '',
    call.hold?.ratePerMtok ?? 0,
    call.hold?.askedTokens ?? 0,
    call.hold?.leastTokens ?? 0,
  ];
  return readAdmission((await run(redis, names, args)) as [string, ...string[]]);
}

function readAdmission([is, a, b, c, d, e, f, ...rateLimit]: [string, ...string[]]): Admission {
  switch (is) {
    case 'ok':
      return {
        is: 'admitted',
        epoch: String(a),
        credentialVersion: Number(b),
        usesLeft: limited(c),
        microusdLeft: limited(d),
        heldMicrousd: Number(e),
        tokens: Number(f),
        rateLimit: Number(rateLimit[0]) < 0 ? undefined : readRateLimit(...rateLimit),
      };
    case 'uses_exhausted':
      return { is, ofOwn: a === 'own', limit: Number(b), used: Number(c) };
    case 'rate_limited':
      return { is, rateLimit: readRateLimit(a, b, c), waitMs: Number(d) };
    case 'cost_limit_reached':
    case 'cost_held':
    case 'cost_limit_too_low':
      return {
        is,
        ofOwn: a === 'own',
        limitMicrousd: Number(b),
        settledMicrousd: Number(c),
        heldMicrousd: Number(d),
        neededMicrousd: Number(e),
      };
    case 'closed':
    case 'backlog':
    case 'unknown':
    case 'revoked':
    case 'credential_revoked':
      return { is };
    default:
      throw new Error(`admit answered ${is}`);
  }
}

const limited = (left: string | undefined) => (Number(left) < 0 ? undefined : Number(left));

const readRateLimit = (...[perMinute, left, resetMs]: readonly (string | undefined)[]): RateLimit => ({
  perMinute: Number(perMinute),
  left: Number(left),
  resetMs: Number(resetMs),
});
