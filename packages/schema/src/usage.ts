import { z } from 'zod';

/**
 * What a gateway writes of a call beside its uses and cost, and the issuer reads into the ledger.
 * Short names: it rides in Redis with every call under way.
 */
export const callRecord = z.object({
  /** Account, session and grant. */
  acc: z.guid(),
  ses: z.guid(),
  grt: z.guid(),
  /** Provider, and the model where it is known. */
  prv: z.string(),
  mod: z.string().optional(),
  /** MCP: the server's name, and the tool (of a batch: the first) or else the method that was called. */
  srv: z.string().optional(),
  tol: z.string().optional(),
  /** The caller's own user id, for billing. */
  usr: z.string().optional(),
  /** The provider's status; absent when no answer came. */
  sta: z.int().optional(),
  /** Tokens of input and output in all, as the provider reported them. */
  inp: z.int().optional(),
  out: z.int().optional(),
  /** Microdollars that the reported usage came to beyond the hold. */
  ovr: z.int().optional(),
  /** When the call was admitted, Unix milliseconds by the gateway's clock. */
  beg: z.int(),
});
export type CallRecord = z.infer<typeof callRecord>;
