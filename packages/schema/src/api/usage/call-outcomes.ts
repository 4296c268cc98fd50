import * as z from 'zod';

/**
 * How the calls of the ledger end. Each is a filter of `GET /v1/calls`, and a group and a filter of `GET /v1/usage`. Calls that a gateway
 * refuses are in a table of their own, as `refused`.
 */
export const OUTCOMES = {
  passed: 'the holder got a whole answer below 400',
  provider_error: 'the provider answered 500 or more',
  provider_refused: 'the provider answered 400 to 499',
  provider_unreachable: 'no connection, or no answer before it ended',
  provider_timeout: 'the provider did not answer in time',
  answer_broken: 'the provider ended its answer before it was whole',
  holder_left: 'the holder did not wait for the end of its answer',
  cut: 'the URL ended while the call ran: it was revoked or suspended, or it expired',
  credential_refused: 'the provider refused the credential of the URL, or its credential could not be used',
  gateway_error: 'the gateway could not send it: a fault of its own, Redis, or its end',
  lease_ended: 'its gateway died, and its hold was charged',
  under_way: 'an MCP call whose end is not recorded: it runs, or its gateway died',
  refunded: 'a row that returns the charge of an MCP call that surely did not run',
} as const;
export type Outcome = keyof typeof OUTCOMES;
export const OUTCOME_NAMES = Object.keys(OUTCOMES) as [Outcome, ...Outcome[]];

/** The outcomes of calls that did not fail, and of calls of which it is not known whether they failed. */
export const UNFAILED: readonly Outcome[] = ['passed', 'under_way', 'refunded'];

/** The outcomes that are a fault of the provider or of Presign. The holder or the issuer of the URL is the cause of the others. */
export const OF_PROVIDER_OR_GATEWAY: readonly Outcome[] = [
  'provider_error',
  'provider_unreachable',
  'provider_timeout',
  'answer_broken',
  'gateway_error',
  'lease_ended',
];

/** The outcome of each recorded failure that has one of its own. */
export const OUTCOME_OF_FAILURE: Readonly<Record<string, Outcome>> = {
  answer_broken: 'answer_broken',
  holder_left: 'holder_left',
  upstream_unreachable: 'provider_unreachable',
  upstream_timeout: 'provider_timeout',
  upstream_auth_failed: 'credential_refused',
  grant_revoked: 'cut',
  account_suspended: 'cut',
  token_expired: 'cut',
  internal_error: 'gateway_error',
  limits_unavailable: 'gateway_error',
  database_unavailable: 'gateway_error',
  overloaded: 'gateway_error',
};

/** The facts of a row of the ledger that say how its call ended. */
export type EndOfCall = {
  readonly outcome: 'settled' | 'expired' | 'refunded';
  readonly failure: string | null;
  readonly status: number | null;
  readonly server: string | null;
  readonly totalMs: number | null;
};

/** How a call ended. `outcomeInSql` of the issuer says the same. */
export function outcomeOf({ outcome, failure, status, server, totalMs }: EndOfCall): Outcome {
  if (outcome === 'refunded') return 'refunded';
  if (outcome === 'expired') return 'lease_ended';
  if (failure === null) return server !== null && totalMs === null ? 'under_way' : 'passed';
  const known = OUTCOME_OF_FAILURE[failure];
  if (known) return known;
  if (status === null) return 'gateway_error';
  return status >= 500 ? 'provider_error' : 'provider_refused';
}

const list = Object.entries(OUTCOMES).map(([name, means]) => `\`${name}\`: ${means}`);

/** How a call ended, in an answer. */
export const outcome = z.enum([...OUTCOME_NAMES, 'refused']).meta({
  id: 'Outcome',
  description: `${list.join('. ')}. \`refused\`: the gateway refused it, and it cost nothing.`,
});
