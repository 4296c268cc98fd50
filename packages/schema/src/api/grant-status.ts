import { z } from 'zod';
import { microusd } from './money.ts';

/** What the holder of an LLM URL is told of it. */
export const grantStatus = z.strictObject({
  provider: z.string(),
  method: z.string(),
  paths: z.array(z.string()),
  session_id: z.guid(),
  /** Unix time in seconds. */
  expires_at: z.number(),
  /** By its owner, or because a call cost more than its worst case. */
  revoked: z.boolean(),
  /** -1: unlimited. */
  max_uses: z.int(),
  used: z.int(),
  /** Microdollars; null: no limit. */
  cost_limit: microusd.nullable(),
  /** null: as many as come. */
  calls_per_minute: z.int().nullable(),
  /** Microdollars that are settled, and that are held by calls under way. */
  spent: microusd,
  held: microusd,
});
export type GrantStatus = z.infer<typeof grantStatus>;
