import type { Call } from '@presign/client';
import { count, duration, money } from './format/format.ts';

type Refusal = NonNullable<Call['refusal']>;

/** Whose limit refused a call, in words. The caller of this function adds the name of a shared budget. */
function ownerOf({ limit_of: owner }: Refusal, budget: string): string {
  if (owner === 'budget') return `the budget ${budget}`;
  return owner === 'virtual_key' ? 'the virtual key' : 'its URL';
}

type Words = (refusal: Refusal, owner: string) => string;

/** The part of a limit that was left. A hidden budget does not say it. */
const left = (remaining: number | null, show: (figure: number) => string): string =>
  remaining === null ? 'had not enough left' : `had ${show(remaining)} left`;

const several = (amount: number, unit: string) => `${count(amount)} ${unit}${amount === 1 ? '' : 's'}`;

/** A batch is refused as a whole, and says how many calls it has. */
const rate =
  (unit: string, each: string): Words =>
  ({ limit, needed, remaining }, owner) => {
    const allowed = `${owner} allows ${limit === null ? `no more ${unit}s` : several(limit, unit)} ${each}`;
    if (needed === null) return allowed;
    if (unit === 'call') return `it is a batch of ${several(needed, unit)}, and ${allowed}`;
    const rest = remaining === null ? '' : `, of which ${count(remaining)} were left`;
    return `it could use ${several(needed, unit)}, and ${allowed}${rest}`;
  };

/** The refusals by a limit or a condition. Each sentence completes "Refused, because …". */
const REASONS: Readonly<Record<string, Words>> = {
  uses_exhausted: ({ limit, remaining, needed }, owner) => {
    if (needed !== null && remaining !== null)
      return `it is a batch of ${several(needed, 'call')}, and ${owner} had ${several(remaining, 'use')} left`;
    if (limit === 1) return `the only use of ${owner} is spent`;
    return limit === null ? `${owner} has no uses left` : `all ${count(limit)} uses of ${owner} are spent`;
  },
  cost_limit_reached: (_refusal, owner) => `${owner} has spent all its money`,
  cost_limit_too_low: ({ needed, remaining }, owner) =>
    `${owner} ${left(remaining, money)}${needed === null ? '' : `, and the call could cost up to ${money(needed)}`}`,
  cost_held: (_refusal, owner) => `calls under way held the rest of the money of ${owner}`,
  token_limit_reached: (_refusal, owner) => `${owner} has no tokens left`,
  token_limit_too_low: ({ needed, remaining }, owner) =>
    `${owner} ${left(remaining, (tokens) => several(tokens, 'token'))}${needed === null ? '' : `, and the call could use ${several(needed, 'token')}`}`,
  tokens_held: (_refusal, owner) => `calls under way held the rest of the tokens of ${owner}`,
  rate_limited: rate('call', 'a minute'),
  daily_rate_limited: rate('call', 'a day'),
  concurrency_limited: rate('call', 'at once'),
  token_rate_limited: rate('token', 'a minute'),
  token_rate_too_low: rate('token', 'a minute'),
  grant_revoked: () => 'the URL was revoked',
  token_expired: () => 'the URL has expired',
  account_suspended: () => 'the account is suspended',
  virtual_key_revoked: () => 'the virtual key was deleted',
  model_not_allowed: ({ name }) =>
    `the URL does not allow ${name === null ? 'this model' : `the model ${name}`}`,
  field_not_allowed: ({ name }) =>
    `the URL does not allow ${name === null ? 'a field of the body' : `the field ${name}`}`,
  path_not_allowed: () => 'the URL does not allow this path',
  method_not_allowed: () => 'the URL does not allow this method',
  tool_not_allowed: ({ name }) =>
    `the URL does not allow ${name === null ? 'this tool' : `the tool ${name}`}`,
  argument_not_allowed: () => 'the URL does not allow the tool with these arguments',
  origin_not_allowed: () => 'the page that called is of another origin than the URL allows',
  address_not_allowed: () => 'the caller has another address than the URL allows',
  body_too_large: ({ body_bytes: bytes }) => `its body of ${count(bytes)} bytes is too large`,
  price_unknown: ({ name }) => `no price of ${name ?? 'the model'} is known, so no limit of money can hold`,
  cost_unbounded: ({ name }) =>
    `its cost has no known bound${name === null ? '' : ` with ${name}`}, so no limit of money can hold`,
};

/** The reason of a refusal, as the end of a sentence. */
export function reasonOf(refusal: Refusal, budget: string): string {
  const words = REASONS[refusal.code]?.(refusal, ownerOf(refusal, budget));
  return (
    words ?? `of ${refusal.code.replaceAll('_', ' ')}${refusal.reason === null ? '' : ` (${refusal.reason})`}`
  );
}

const FAILURES: Readonly<Partial<Record<Call['outcome'], string>>> = {
  provider_error: 'the provider answered with an error of its own',
  provider_refused: 'the provider refused it',
  provider_unreachable: 'the provider could not be reached',
  provider_timeout: 'the provider did not answer in time',
  answer_broken: 'the provider ended its answer before it was whole',
  holder_left: 'the caller did not wait for the end of the answer',
  cut: 'the URL ended while the call ran',
  credential_refused: 'the provider refused the credential of the URL',
  gateway_error: 'the gateway could not send it',
  lease_ended: 'its gateway died',
};

/** A model or tool that is not allowed is that of the call. */
function named(refusal: Refusal, { model, tool }: Call): Refusal {
  const { code, name } = refusal;
  if (code === 'model_not_allowed') return { ...refusal, name: name ?? model };
  return code === 'tool_not_allowed' ? { ...refusal, name: name ?? tool } : refusal;
}

/** How a call ended, as a sentence. */
export function endOf(call: Call, budget: string): string {
  const { outcome, refusal, status, total_ms: ms } = call;
  if (refusal) return `Refused, because ${reasonOf(named(refusal, call), budget)}.`;
  const failure = FAILURES[outcome];
  if (failure) return `Failed, because ${failure}${status === null ? '' : ` (status ${status})`}.`;
  if (outcome === 'under_way') return 'Under way.';
  if (outcome === 'refunded') return 'The charge of a call that did not run was given back.';
  return `Passed${ms === null ? '' : ` in ${duration(ms)}`}.`;
}
