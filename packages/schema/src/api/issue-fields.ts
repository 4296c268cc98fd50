import { z } from 'zod';
import {
  externalId,
  jsonObject,
  METADATA_MAX_BYTES,
  maxUses,
  optional,
  perMinute,
  sessionId,
} from './fields.ts';
import { microusd } from './money.ts';

/** What both kinds of issuing take: limits, and what ties the issued to the caller's own records. */
export const issueFields = {
  max_uses: optional(maxUses)
    .transform((value) => value ?? -1)
    .meta({ description: 'Calls that may be made. -1: unlimited.', default: -1 }),
  cost_limit: optional(microusd).meta({
    description:
      'Microdollars that may be spent (1 dollar = 1000000). 0: nothing, so that only calls without cost pass. Left out: unlimited.',
    examples: [250_000],
  }),
  calls_per_minute: optional(perMinute).meta({
    description:
      'Calls that may be made in a minute: so many at once, or evenly over time. Left out: as many as come.',
    examples: [60],
  }),
  external_session: optional(externalId).meta({
    description: 'Your own id of a session. Sessions can be filtered by it.',
  }),
  external_user: optional(externalId).meta({
    description: 'Your own id of the user to be billed. Usage and sessions can be filtered by it.',
  }),
  session_id: optional(sessionId).meta({
    description:
      'The session that this joins: of this account and not revoked, or a new one by this id. Left out: a new session.',
  }),
  metadata: optional(jsonObject(METADATA_MAX_BYTES)).meta({
    description: `Anything you want kept with it, which its session tells: at most ${METADATA_MAX_BYTES} bytes of JSON.`,
  }),
};

/** Unix time in seconds from which on an issued URL is refused. */
export const expiresAt = z.int().meta({
  description: 'Unix time in seconds, from which on it is refused.',
  examples: [1_767_225_600],
});
