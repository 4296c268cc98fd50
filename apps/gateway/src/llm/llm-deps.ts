import type { PriceKeeper } from '@presign/providers/keep-prices';
import type { CallDeps } from '../call-deps.ts';
import type { LlmGrant } from '../grant/verify.ts';
import type { AccessTokens } from '../mcp/auth/authorize.ts';
import type { CountMemory } from '../share/count-memory.ts';
import type { OpenSockets } from '../share/open-sockets.ts';
import type { Waits } from '../share/waits.ts';
import type { Disproved } from './disproved.ts';
import type { LargeBodies } from './large-body.ts';

/** Only LLM calls need these. */
export type LlmParts = {
  /** The prices of LLM calls, which may change at any time. A call asks once. */
  readonly prices: Pick<PriceKeeper, 'current' | 'status'>;
  readonly bodyWorkers: LargeBodies;
  /** Models, as `provider model`, that have reported more input than the gateway counted. Their calls are held by bytes. */
  readonly uncounted: Set<string>;
  /** How much counting saves for texts that this process has counted. */
  readonly counts: CountMemory;
  readonly disproved: Disproved;
  readonly waits: Waits;
  readonly sockets: OpenSockets;
  /** How long an answer under a cost limit waits for its settle. Default: 50 ms. */
  readonly settlingMs?: number;
};

export type LlmDeps = CallDeps<LlmGrant> & LlmParts & { readonly accessTokens: AccessTokens };
