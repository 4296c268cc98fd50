import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { EncryptionKeys } from '@presign/crypto';
import type { RedisClient } from '@presign/limits';
import type { Database } from '@presign/service/database';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { ReportCall } from './call-report.ts';
import type { ClientAddress } from './grant/bind.ts';
import type { GrantMemory } from './grant/policy.ts';
import type { GrantReader } from './grant/read-grant.ts';
import type { VerifiedGrant, Verifier } from './grant/verify.ts';
import type { Leases } from './limits/leases.ts';
import type { Doubts } from './limits/retry.ts';
import type { Revocations } from './limits/revocations.ts';
import type { Waiting } from './limits/waiting.ts';
import type { BodyMemory } from './share/body-memory.ts';
import type { FreeWork } from './share/free-work.ts';
import type { Hosts } from './share/hosts.ts';
import type { ReadQuota } from './share/read-quota.ts';
import type { Turns } from './share/turns.ts';
import type { UnderWay } from './share/under-way.ts';
import type { CallTraces } from './traces.ts';

/** Everything that the calls of a gateway share, of LLM APIs and of MCP servers. */
export type SharedDeps = {
  /** Read only when a grant is not in Redis. */
  readonly db: Database;
  readonly redis: RedisClient;
  readonly encryptionKeys: EncryptionKeys;
  /** The gateway's public address, which is the audience of its tokens. */
  readonly gatewayUrl: string;
  /** Sends to upstreams, and refuses addresses that are not public. */
  readonly dispatcher: Dispatcher;
  readonly leases: Leases;
  readonly revocations: Revocations;
  readonly underWay: UnderWay;
  readonly doubts: Doubts;
  readonly waiting: Waiting;
  readonly hosts: Hosts;
  /** Aborts when the gateway begins to stop. The gateway keeps serving for a while. */
  readonly draining: AbortSignal;
  /** Aborts when the gateway refuses connections. It ends streams that only wait for events. */
  readonly closing: AbortSignal;
  readonly bodyMemory: BodyMemory;
  readonly turns: Turns;
  readonly readQuota: ReadQuota;
  readonly leaseMs: number;
  readonly upstreamTimeoutMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clientAddress: ClientAddress;
  /** Undefined: traces are off. */
  readonly traces?: CallTraces | undefined;
  readonly log: Logger;
};

/** The inputs of a route: everything that calls share, and the verifier of its tokens. */
export type CallDeps<G extends VerifiedGrant> = SharedDeps & {
  readonly verify: Verifier<G>;
  readonly memory: GrantMemory;
  readonly readGrant: GrantReader;
  readonly freeWork: FreeWork;
  readonly report: ReportCall;
};

/** The values that middleware passes to a route. */
export type GatewayEnv = { Bindings: HttpBindings; Variables: { requestId: string } };

/** Serves a call. Resolves to a refusal that the caller must send, or to undefined if everything is written. */
export type ServeCall = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  requestId: string,
) => Promise<Response | undefined>;
