import { randomBytes } from 'node:crypto';
import {
  generateApiKey,
  generateEncryptionKey,
  generateSigningKey,
  readEncryptionKeys,
  readPublicKeys,
  readSigningKey,
} from '@presign/crypto';
import { type GatewayOptions, type RunningGateway, startGateway } from '@presign/gateway';
import { bootstrap, type IssuerOptions, type RunningIssuer, startIssuer } from '@presign/issuer';
import { connectRedis, type RedisClient, type RedisTimeouts, redisReady } from '@presign/limits';
import type { McpPresignAnswer, PresignAnswer } from '@presign/schema';
import type { Database } from '@presign/service/database';
import { pino } from 'pino';
import { freePort } from './free-port.ts';
import { openPartitions, type Stores, startStores } from './stores.ts';

/** Keys of one stack, as text: what a gateway process of its own is given in its environment. */
export type StackKeys = {
  readonly apiKey: string;
  readonly signing: string;
  readonly publicKeys: string;
  readonly encryption: string;
};

export type Stack = {
  readonly issuerUrl: string;
  /** Each gateway's own address; the first is the tokens' audience. */
  readonly gatewayUrls: readonly string[];
  readonly apiKey: string;
  readonly keys: StackKeys;
  readonly db: Database;
  readonly redis: RedisClient;
  readonly redisUrl: string;
  /** How long services wait for that Redis. Undefined: as long as they do by default. */
  readonly redisTimeouts: RedisTimeouts | undefined;
  /** Undefined on the embedded engine, which other processes cannot reach. */
  readonly databaseUrl: string | undefined;
  readonly providersJson: string;
  readonly issuer: RunningIssuer;
  readonly gateways: readonly RunningGateway[];
  /** Starts a further gateway for the same URLs, perhaps on another way to Redis; returns its address. */
  readonly addGateway: (
    changed?: Partial<GatewayOptions> & { readonly redisUrl?: string },
    port?: number,
  ) => Promise<string>;
  /** Log lines of all services, as written. */
  readonly logs: string[];
  /** `POST /v1/presign` as a backend does it. */
  readonly presign: (body: object, headers?: Record<string, string>) => Promise<Response>;
  /** As `presign`, for requests that must succeed: the URL and the rest of the answer. */
  readonly issue: (body: object) => Promise<PresignAnswer>;
  /** The same for `POST /v2/mcp-presign`. */
  readonly mcpPresign: Stack['presign'];
  readonly issueMcp: (body: object) => Promise<McpPresignAnswer>;
  readonly close: () => Promise<void>;
};

export type StackOptions = {
  readonly gateways?: number;
  /** `PROVIDERS_FILE`: where the test's upstreams are. */
  readonly providers: object;
  readonly redisUrl?: string | undefined;
  readonly redisTimeouts?: RedisTimeouts;
  /** The address that all services listen on. */
  readonly host?: string;
  readonly gateway?: Partial<GatewayOptions>;
  readonly issuer?: Partial<IssuerOptions>;
  /** Stores that have rows already, which the stack closes. By default it gets empty ones. */
  readonly stores?: Stores;
  /** The keys that those rows were sealed with. By default the stack makes new ones. */
  readonly keys?: StackKeys;
};

/** Issuer and gateways in this process, on real sockets and on the stores that the environment names. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const stores = options.stores ?? (await startStores(options.redisUrl));
  const logs: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logs.push(line) });
  const ports = await Promise.all(Array.from({ length: 1 + (options.gateways ?? 1) }, freePort));
  const [issuerPort = 0, ...gatewayPorts] = ports;
  const host = options.host ?? '127.0.0.1';
  const at = (port: number) => `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const gatewayUrls = gatewayPorts.map(at);
  const keys = options.keys ?? newKeys();
  const { apiKey } = keys;
  const signingKey = readSigningKey(keys.signing);
  const shared = {
    db: stores.db,
    encryptionKeys: readEncryptionKeys(keys.encryption),
    providersFile: JSON.stringify(options.providers),
    issuerUrl: at(issuerPort),
    gatewayUrl: gatewayUrls[0] ?? '',
    allowPrivateUpstreams: true,
    now: Date.now,
    log,
  };
  await bootstrap(stores.db, apiKey);
  const { redisTimeouts = stores.redisTimeouts } = options;
  const connect = async (url = stores.redisUrl) => {
    const redis = connectRedis(
      url,
      () => {},
      url === stores.redisUrl ? redisTimeouts : options.redisTimeouts,
    );
    await redisReady(redis);
    return redis;
  };
  const redis = await connect();
  // Stores that the test brought have partitions as their former issuers left them.
  const isOpen = options.stores === undefined && options.redisUrl === undefined;
  if (isOpen) await openPartitions(stores.db, redis);
  const issuer = await startIssuer(
    {
      ...shared,
      redis,
      signingKey,
      olderPublicKeys: [],
      usageMetadata: [],
      requestsPerMinute: 1_000_000,
      ...options.issuer,
    },
    { host, port: issuerPort },
  );
  if (!isOpen) await issuer.ledger.drainAll();
  const connections: RedisClient[] = [redis];
  const gateways: RunningGateway[] = [];
  const startOne = async (changed: NonNullable<Parameters<Stack['addGateway']>[0]> = {}, port = 0) => {
    const own = await connect(changed.redisUrl);
    connections.push(own);
    const settings = {
      leaseMs: 60_000,
      upstreamTimeoutMs: 60_000,
      maxHeldBodyBytes: 128 * 1024 * 1024,
      maxBodyBytes: 16 * 1024 * 1024,
      mcpPrices: { byServer: new Map(), defaultMicrousd: 1_000 },
      allowPrivateUpstreams: true,
      ...options.gateway,
      ...changed,
    };
    const publicKeys = readPublicKeys(keys.publicKeys);
    return startGateway({ ...shared, redis: own, publicKeys, ...settings }, { host, port });
  };
  const addGateway: Stack['addGateway'] = async (changed, port) => {
    const gateway = await startOne(changed, port);
    gateways.push(gateway);
    return at(gateway.port);
  };
  // In the order of `gatewayUrls`, not in the order in which they came up.
  gateways.push(...(await Promise.all(gatewayPorts.map((port) => startOne({}, port)))));
  const post =
    (path: string) =>
    (body: object, headers: Record<string, string> = {}) =>
      fetch(`${shared.issuerUrl}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
  const presign = post('/v1/presign');
  const mcpPresign = post('/v2/mcp-presign');
  return {
    issuerUrl: shared.issuerUrl,
    gatewayUrls,
    apiKey,
    keys,
    db: stores.db,
    redis,
    redisUrl: stores.redisUrl,
    redisTimeouts,
    databaseUrl: stores.databaseUrl,
    providersJson: JSON.stringify(options.providers),
    issuer,
    gateways,
    addGateway,
    logs,
    presign,
    issue: async (body) => (await issued(await presign(body))) as PresignAnswer,
    mcpPresign,
    issueMcp: async (body) => (await issued(await mcpPresign(body))) as McpPresignAnswer,
    close: async () => {
      await Promise.all(gateways.map((gateway) => gateway.close({ graceMs: 2_000 })));
      await issuer.close();
      for (const each of connections) each.disconnect();
      await stores.close();
    },
  };
}

/** Fresh keys for a stack. */
export function newKeys(): StackKeys {
  const signing = generateSigningKey();
  return {
    apiKey: generateApiKey(),
    signing,
    publicKeys: readSigningKey(signing).publicKey,
    encryption: generateEncryptionKey(`t${randomBytes(3).toString('hex')}`),
  };
}

async function issued(answer: Response): Promise<unknown> {
  if (answer.status !== 200) throw new Error(`presign answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}
