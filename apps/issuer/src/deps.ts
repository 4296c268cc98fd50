import type { ClockWatch } from '@presign/limits';
import type { OutboundProxy } from '@presign/outbound';
import type { KnowledgeKeeper } from '@presign/providers/keep-knowledge';
import type { Readiness } from '@presign/service';
import type { ClientPackages } from './clients/serve-clients.ts';
import type { IssuerMetrics } from './metrics.ts';
import type { RouteDeps } from './middleware/route-deps.ts';
import type { RequestTraces } from './middleware/trace-requests.ts';

/** Everything the issuer depends on; `main.ts` creates it once. */
export type IssuerDeps = RouteDeps & {
  readonly knowledge: Pick<KnowledgeKeeper, 'status'>;
  /** The proxy for https. */
  readonly proxy?: OutboundProxy | undefined;
  /** Aborts when the issuer begins to stop. It serves on for a while. */
  readonly draining: AbortSignal;
  readonly clock: ClockWatch;
  /** What `/readyz` says while the issuer is not stopping. */
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: IssuerMetrics;
  /** The folder of the built console. Undefined: none is served. */
  readonly consoleDir?: string | undefined;
  /** Undefined: none are served. */
  readonly clientPackages?: ClientPackages | undefined;
  /** Undefined: nothing is traced. */
  readonly traces?: RequestTraces | undefined;
};
