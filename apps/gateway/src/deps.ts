import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { EncryptionKeys, PublicKeys } from '@presign/crypto';
import type { ClockWatch, RedisClient } from '@presign/limits';
import type { Provider } from '@presign/providers';
import type { KnowledgeKeeper } from '@presign/providers/keep-knowledge';
import type { PriceKeeper } from '@presign/providers/keep-prices';
import type { Database } from '@presign/service/database';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { ReportCall } from './call-report.ts';
import type { ClientAddress } from './grant/bind.ts';
import type { GrantMemory } from './grant/policy.ts';
import type { GrantReader } from './grant/read-grant.ts';
import type { LlmGrant, McpGrant, VerifiedGrant, Verifier } from './grant/verify.ts';
import type { Leases } from './limits/leases.ts';
import type { RefusalCounts } from './limits/refusal-counts.ts';
import type { Doubts } from './limits/retry.ts';
import type { Revocations } from './limits/revocations.ts';
import type { Waiting } from './limits/waiting.ts';
import type { AccessTokens, Authorizer } from './mcp/auth/authorize.ts';
import type { Listeners } from './mcp/legacy-sse.ts';
import type { OpenRequests } from './mcp/open/open-requests.ts';
import type { McpPrices } from './mcp/price.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { BodyMemory } from './share/body-memory.ts';
import type { FreeWork } from './share/free-work.ts';
import type { Hosts } from './share/hosts.ts';
import type { ReadQuota } from './share/read-quota.ts';
import type { Turns } from './share/turns.ts';
import type { CallTraces } from './traces.ts';
import type { BodyWorkers } from './workers/body-workers.ts';

/** Everything the gateway works with. `main.ts` and `start.ts` create it once. */
export type GatewayDeps = {
  /** Read only when a grant is not in Redis. */
  readonly db: Database;
  readonly redis: RedisClient;
  readonly publicKeys: PublicKeys;
  readonly encryptionKeys: EncryptionKeys;
  /** They change when the knowledge file does. A call keeps the one that it began with. */
  readonly providers: ReadonlyMap<string, Provider>;
  readonly knowledge: Pick<KnowledgeKeeper, 'status'>;
  /** The gateway's public address, which is the audience of its tokens. */
  readonly gatewayUrl: string;
  /** Sends to upstreams, and refuses addresses that are not public. */
  readonly dispatcher: Dispatcher;
  readonly leases: Leases;
  readonly refusals: RefusalCounts;
  readonly revocations: Revocations;
  readonly underWay: UnderWay;
  readonly doubts: Doubts;
  readonly waiting: Waiting;
  readonly hosts: Hosts;
  /** Aborts when the gateway begins to stop. It serves on for a while. */
  readonly draining: AbortSignal;
  /** Aborts when the gateway refuses connections. It ends streams that only wait for events. */
  readonly closing: AbortSignal;
  /** Open streams of MCP's 2024-11-05 transport. */
  readonly listeners: Listeners;
  readonly openRequests: OpenRequests;
  readonly mcpPrices: McpPrices;
  /** The prices of LLM calls, which may change at any time. A call asks once. */
  readonly prices: Pick<PriceKeeper, 'current' | 'status'>;
  readonly bodyMemory: BodyMemory;
  readonly turns: Turns;
  readonly bodyWorkers: BodyWorkers;
  readonly readQuota: ReadQuota;
  /** Models, as `provider model`, that have reported more input than was counted. Their calls are held by bytes. */
  readonly uncounted: Set<string>;
  readonly leaseMs: number;
  readonly upstreamTimeoutMs: number;
  /** How long an answer under a cost limit waits for its settle, where that is not 50 ms. */
  readonly settlingMs?: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: ClockWatch;
  readonly clientAddress: ClientAddress;
  readonly metrics: GatewayMetrics;
  /** Undefined: traces are off. */
  readonly traces?: CallTraces | undefined;
  readonly log: Logger;
};

/** Everything that the routes share, and the verifier of their tokens. */
type RouteDeps<G extends VerifiedGrant> = GatewayDeps & {
  readonly verify: Verifier<G>;
  readonly memory: GrantMemory;
  readonly readGrant: GrantReader;
  readonly freeWork: FreeWork;
  readonly report: ReportCall;
};

export type LlmDeps = RouteDeps<LlmGrant> & { readonly accessTokens: AccessTokens };
export type McpDeps = RouteDeps<McpGrant> & { readonly authorizer: Authorizer };
export type BundleDeps = RouteDeps<VerifiedGrant>;

/** Calls and settles that have not ended. A closing gateway waits for them. */
export type UnderWay = {
  readonly track: (work: Promise<unknown>) => void;
  /** Resolves when all tracked work has ended. */
  readonly done: () => Promise<void>;
};

/** The values that middleware passes to a route. */
export type GatewayEnv = { Bindings: HttpBindings; Variables: { requestId: string } };

/** Serves a call. Resolves to a refusal that is still to be sent, or to undefined when all is written. */
export type ServeCall = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  requestId: string,
) => Promise<Response | undefined>;
