import { type GrantRef, keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('admit');

/** Entries of stream and leases a partition may hold before calls are refused until the ledger catches up. */
export const BACKLOG_MAX = 100_000;

/** What a call asks for. */
export type Ask = {
  /** 128 random bits, hex: names this admission for good. */
  readonly holdId: string;
  readonly uses: number;
  /** The most the call can cost, held until it is settled; undefined where no bound is known. */
  readonly holdMicrousd: number | undefined;
  /** Until when the hold stands unless renewed. */
  readonly leaseMs: number;
  /** Kept with the hold, for the ledger, should this gateway die: JSON. */
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
    }
  | { readonly is: 'unknown' }
  | { readonly is: 'closed' | 'backlog' | 'revoked' | 'credential_revoked' }
  | { readonly is: 'uses_exhausted'; readonly limit: number; readonly used: number }
  | {
      readonly is: 'cost_limit_reached' | 'cost_held' | 'cost_limit_too_low';
      readonly limitMicrousd: number;
      readonly settledMicrousd: number;
      readonly heldMicrousd: number;
    };

/**
 * Counts a call's uses and holds its worst cost in all pots of its grant, or in none: one atomic round trip.
 * `unknown` asks for `openGrant` first. Throws what ioredis throws; the call must then not be let through.
 */
export async function admit(redis: RedisClient, grant: GrantRef, ask: Ask): Promise<Admission> {
  const at = grant.partition;
  const names = [
    keys.partition(at),
    keys.grant(at, grant.id),
    keys.credential(at, grant.credentialId),
    keys.hold(at, ask.holdId),
    keys.leases(at),
    keys.usage(at),
    ...grant.potIds.map((id) => keys.pot(at, id)),
  ];
  const args = [
    ask.holdId,
    ask.leaseMs,
    ask.uses,
    ask.holdMicrousd ?? '',
    BACKLOG_MAX,
    grant.id,
    grant.potIds.join(','),
    ask.record,
  ];
  return readAdmission((await run(redis, names, args)) as [string, ...string[]]);
}

function readAdmission([is, a, b, c, d]: [string, ...string[]]): Admission {
  switch (is) {
    case 'ok':
      return {
        is: 'admitted',
        epoch: String(a),
        credentialVersion: Number(b),
        usesLeft: limited(c),
        microusdLeft: limited(d),
      };
    case 'uses_exhausted':
      return { is, limit: Number(a), used: Number(b) };
    case 'cost_limit_reached':
    case 'cost_held':
    case 'cost_limit_too_low':
      return { is, limitMicrousd: Number(a), settledMicrousd: Number(b), heldMicrousd: Number(c) };
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
