import type { Refusal } from '@presign/schema';

/** How a socket closes once no turn runs. New turns are refused. */
export type End = {
  readonly code: number;
  readonly refusal: Refusal;
  /** The holder gets the refusal before the close. */
  readonly isStated?: boolean;
  /** For the log, where the refusal has the code of others. */
  readonly cause?: Cause;
};

type Cause = 'gateway_stopping' | 'key_rotated' | 'time_over' | 'no_memory';

const CODES: Partial<Record<Refusal['code'], number>> = {
  token_expired: 4401,
  token_invalid: 4401,
  cost_limit_reached: 4402,
  token_limit_reached: 4402,
  uses_exhausted: 4402,
  grant_revoked: 4403,
  account_suspended: 4403,
};

/** The code with which a socket closes after a refusal. Undefined: it stays open, because a later turn may pass. */
export const closeCodeOf = ({ code }: Refusal): number | undefined => CODES[code];

/** The refusals of a connection, whatever its protocol. */
const STOPPING: Refusal = {
  code: 'overloaded',
  message: 'This gateway is stopping. Open another socket.',
  retryAfterSeconds: 1,
};
export const STOP: End = { code: 1001, refusal: STOPPING, cause: 'gateway_stopping' };
/** A socket keeps the key that it was opened with. */
export const KEY_ROTATED: Refusal = {
  code: 'overloaded',
  message: "The provider's key of this URL was rotated. Open another socket.",
  retryAfterSeconds: 1,
};
/** How a socket ends after a refusal. Undefined: it stays open. */
export function endAfter(refusal: Refusal): End | undefined {
  if (refusal === KEY_ROTATED) return { code: 1001, refusal, cause: 'key_rotated' };
  const code = closeCodeOf(refusal);
  return code === undefined ? undefined : { code, refusal };
}
/** How a socket ends that is cut, with this refusal. */
export const cutWith = (refusal: Refusal, why: string): End => {
  if (why === 'closing') return STOP;
  return { code: closeCodeOf(refusal) ?? (why === 'failure' ? 1011 : 1001), refusal };
};
/** Whether a socket ends for a reason that its holder cannot repeat at will. */
export const isOfGateway = (end: End | undefined): boolean =>
  end !== undefined && OF_GATEWAY.has(causeOf(end));
/** Why a socket ends, for the log. */
export const causeOf = ({ cause, refusal }: End): string => cause ?? refusal.code;
const OF_GATEWAY: ReadonlySet<string> = new Set<Cause | Refusal['code']>([
  'gateway_stopping',
  'key_rotated',
  'time_over',
  'limits_unavailable',
]);
/** How a socket ends that has been open for so long. */
export const tooOld = (ms: number): End => {
  const seconds = ms / 1000;
  const time = seconds === 1 ? '1 second' : `${seconds} seconds`;
  const message = `This socket has been open for ${time}. Open another one.`;
  return {
    code: 1001,
    refusal: { code: 'overloaded', message, retryAfterSeconds: 1 },
    isStated: true,
    cause: 'time_over',
  };
};
export const NO_ROOM: Refusal = { code: 'overloaded', retryAfterSeconds: 1 };
/** How a socket ends for whose message there is no memory. */
export const FULL: End = { code: 1013, refusal: NO_ROOM, cause: 'no_memory' };
/** The most running turns of one socket. */
export const MOST_TURNS = 32;
const MANY_TURNS: Refusal = {
  code: 'concurrency_limited',
  message: `This socket has ${MOST_TURNS} responses under way. Wait for the end of one.`,
};
/** Refuses a further turn of a socket that has so many under way. */
export const tooMany = (turns: number): Refusal | undefined => (turns >= MOST_TURNS ? MANY_TURNS : undefined);
export const UNCLEAR: End = { code: 1011, refusal: { code: 'upstream_unreachable' } };
export const NO_JSON: Refusal = {
  code: 'invalid_json',
  message: 'The event is no JSON. Send a JSON object in UTF-8.',
};
export const NO_OBJECT: Refusal = {
  code: 'unsupported_media_type',
  message: 'The event is no JSON object. Send each event as one.',
};

export const BINARY: Refusal = {
  code: 'unsupported_media_type',
  message: 'This socket takes text. Send each event as one JSON object.',
};
