import type { PublicKeys } from '@presign/crypto';
import type { ClockWatch } from '@presign/limits';
import type { Provider } from '@presign/providers';
import type { KnowledgeKeeper } from '@presign/providers/keep-knowledge';
import type { Readiness } from '@presign/service';
import type { SharedDeps } from './call-deps.ts';
import type { RefusedCalls } from './limits/refused-calls.ts';
import type { LlmParts } from './llm/llm-deps.ts';
import type { McpParts } from './mcp/request/mcp-deps.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { BodyWorkers } from './workers/body-workers.ts';

/** Everything the gateway works with. `main.ts` and `start.ts` create it once. */
export type GatewayDeps = SharedDeps &
  LlmParts &
  McpParts & {
    readonly publicKeys: PublicKeys;
    /** The providers change with the knowledge file. A call keeps the providers that it began with. */
    readonly providers: ReadonlyMap<string, Provider>;
    readonly knowledge: Pick<KnowledgeKeeper, 'status'>;
    readonly bodyWorkers: BodyWorkers;
    readonly refusedCalls: RefusedCalls;
    readonly clock: ClockWatch;
    /** What `/readyz` says of the stores. */
    readonly readiness: () => Promise<Readiness>;
    readonly metrics: GatewayMetrics;
  };
