import type { HttpBindings } from '@hono/node-server';
import type { EncryptionKeys, SigningKey } from '@presign/crypto';
import type { ClockWatch, PlantSeed, RedisClient } from '@presign/limits';
import type { OutboundProxy, PrivateUpstreams } from '@presign/outbound';
import type { Provider } from '@presign/providers';
import type { KnowledgeKeeper } from '@presign/providers/keep-knowledge';
import type { PriceKeeper } from '@presign/providers/keep-prices';
import type { AccountLimits, ErrorCode, SCOPES } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import type { Logger } from 'pino';
import type { RequestTraces } from './middleware/trace-requests.ts';

/** Everything the issuer depends on; `main.ts` creates it once. */
export type IssuerDeps = {
  readonly db: Database;
  readonly redis: RedisClient;
  /** Leaves seeds of fresh grants in Redis. */
  readonly plantSeed: PlantSeed;
  readonly signingKey: SigningKey;
  /** PASERK `k4.public` of earlier signing keys whose tokens are still valid. */
  readonly olderPublicKeys: readonly string[];
  readonly encryptionKeys: EncryptionKeys;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly prices: Pick<PriceKeeper, 'current' | 'status'>;
  readonly knowledge: Pick<KnowledgeKeeper, 'status'>;
  /** Public addresses, without a slash at the end. */
  readonly issuerUrl: string;
  readonly gatewayUrl: string;
  /** The limit of an API key that has no limit of its own. */
  readonly requestsPerMinute: number;
  /** Private addresses that webhooks may reach. */
  readonly allowPrivateUpstreams: PrivateUpstreams;
  /** The way out for https. */
  readonly proxy?: OutboundProxy | undefined;
  /** Aborts when the issuer begins to stop. It serves on for a while. */
  readonly draining: AbortSignal;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: ClockWatch;
  readonly metrics: IssuerMetrics;
  /** The folder of the built console. Undefined: none is served. */
  readonly consoleDir?: string | undefined;
  /** Undefined: nothing is traced. */
  readonly traces?: RequestTraces | undefined;
  readonly log: Logger;
};

/** The issuer's own figures, as docs/reference/metrics.md lists them. */
export type IssuerMetrics = {
  /** @param route as the API has it, with the names of parameters in place of their values; undefined: no route */
  readonly requestEnded: (route: string | undefined, status: number, ms: number) => void;
  /** Counts partitions whose data Redis had lost. */
  readonly epochsChanged: (partitions: number) => void;
};

/** Everything a request carries from middleware to route. */
export type IssuerEnv = {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    apiKey: ApiKey;
    /** Why the request was refused. `caller_left`: its caller has gone before the answer. */
    refused?: ErrorCode | 'caller_left';
    /** Reads the API key again. Refuses with 401 if it has been revoked or has expired since it was first checked. */
    authenticateAgain: () => Promise<void>;
  };
};

/** The API key that made a request, and what it may do. */
export type ApiKey = {
  readonly id: string;
  readonly accountId: string;
  /** It grows with each change of the key. */
  readonly revision: number;
  readonly scopes: readonly string[];
  /** Null: the operator's default. */
  readonly requestsPerMinute: number | null;
  readonly expiresAt: Date | null;
  /** Its policy, as it is stored. Null: it may issue everything. */
  readonly policy: unknown;
  /** The limits of its account. Null: none. */
  readonly limits: AccountLimits | null;
  /** Whether its account has or had shared budgets. */
  readonly hasBudgets: boolean;
};

/** The one who makes a change, as the audit log has it. */
export type Actor = {
  readonly accountId: string;
  /** The id of an API key, `cli` or `issuer`. */
  readonly id: string;
  /** That of the API key by which the request was judged. Null: there is no key. */
  readonly revision: number | null;
  /** Null: the change is no request. */
  readonly requestId: string | null;
  /** The other end of the connection: the address of the proxy, if there is one. */
  readonly remoteAddress: string | null;
};

/** The scopes of an API key: issue, read, or everything. */
export type Scope = (typeof SCOPES)[number];
