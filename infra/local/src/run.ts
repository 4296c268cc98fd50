import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackages } from '@presign/client/build';
import { buildConsole, consoleDir } from '@presign/console/build';
import {
  generateApiKey,
  generateEncryptionKey,
  generateSigningKey,
  readEncryptionKeys,
  readPublicKeys,
  readSigningKey,
} from '@presign/crypto';
import { callTraces, startGateway } from '@presign/gateway';
import { bootstrap, requestTraces, startIssuer } from '@presign/issuer';
import { connectRedis, redisReady } from '@presign/limits';
import { addressOf, causeOf } from '@presign/service';
import { connectDatabase, type Database, migrateDatabase } from '@presign/service/database';
import { serveMetrics } from '@presign/service/metrics';
import { startTraces, type Traces } from '@presign/service/traces';
import type { Logger } from 'pino';
import { startEmbeddedPostgres } from './engines/embedded-postgres.ts';
import { startEmbeddedRedis } from './engines/embedded-redis.ts';
import { lockFolder } from './engines/lock-folder.ts';
import type { LocalEnv } from './env.ts';
import { startSandboxLlm } from './sandbox/llm.ts';
import { startSandboxMcp } from './sandbox/mcp.ts';
import { SANDBOX_MODELS, SANDBOX_PRICES, SANDBOX_VOICE, SANDBOX_WINDOW } from './sandbox/reply.ts';
import { writeSample } from './sandbox/sample.ts';

/** Issuer and gateway in one process. */
export type RunningLocal = {
  readonly keys: Keys;
  readonly sandboxMcpUrl: string | undefined;
  /** Fills the account `sample`. Undefined: this is not the first start on the folder, or no sample is wanted. */
  readonly writeSample: ((began: (accountId: string) => void) => Promise<void>) | undefined;
  /** Drains both services and closes what was opened. */
  readonly close: () => Promise<void>;
};

type Closer = () => Promise<unknown>;

/**
 * Starts both services on the embedded engines, or on those that `DATABASE_URL` and `REDIS_URL` name.
 * @throws Error with one clear line: the folder is in use, a port is taken, a store does not answer
 */
export async function runLocal(env: LocalEnv, log: Logger): Promise<RunningLocal> {
  const closers: Closer[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const lock = await lockFolder(env.dataDir);
    closers.push(() => lock.release());
    const keys = keepKeys(env);
    const db = await startDatabase(env, closers);
    const redis = await startRedis(env, log, closers);
    const sandbox = env.sandbox ? await startSandbox(env, closers) : undefined;
    await bootstrap(db, keys.apiKey);
    const metrics = await serveMetrics(env.host, env.metricsPort);
    closers.push(metrics.close);
    const signingKey = readSigningKey(keys.signingKey);
    const olderPublicKeys = env.publicKeys?.split(/[\s,]+/).filter(Boolean) ?? [];
    const shared = {
      ...env,
      db,
      redis,
      encryptionKeys: readEncryptionKeys(keys.encryptionKeys),
      providersFile: providersWith(env.providersFile, sandbox?.provider),
      meter: metrics.meter,
      now: Date.now,
      log,
    };
    const { host } = env;
    const requests = await traced(env, 'presign-issuer', closers);
    const issuer = await startIssuer(
      {
        ...shared,
        signingKey,
        olderPublicKeys,
        retention: env.retention,
        auditDays: env.auditDays,
        usageMetadata: env.usageMetadata,
        traces: requests && requestTraces(requests),
        consoleDir: consoleDir(),
        clientPackages: { dir: buildPackages, isReleased: false },
      },
      { host, port: env.issuerPort },
    );
    closers.push(() => issuer.close());
    const publicKeys = readPublicKeys([signingKey.publicKey, ...olderPublicKeys].join(','));
    const allowPrivateUpstreams = env.allowPrivateUpstreams || (sandbox?.addresses ?? false);
    const spans = await traced(env, 'presign-gateway', closers);
    const traces = spans && callTraces(spans, env.traceUpstreams);
    const gateway = await startGateway(
      { ...shared, publicKeys, allowPrivateUpstreams, traces },
      { host, port: env.gatewayPort },
    );
    closers.push(() => gateway.close());
    await issuer.ledger.drainAll();
    // Another process builds it, if it is not built yet. Until then its address asks to reload.
    buildConsole().catch((error: unknown) => log.warn(causeOf(error), 'the console is not built'));
    const writeSample = sampleWriter(env, keys, sandbox?.mcpUrl, {
      db,
      drain: () => issuer.ledger.drainAll(),
    });
    return { keys, sandboxMcpUrl: sandbox?.mcpUrl, writeSample, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Only data of its own embedded stores get a sample. */
function sampleWriter(
  env: LocalEnv,
  keys: Keys,
  sandboxMcpUrl: string | undefined,
  stores: Pick<Parameters<typeof writeSample>[0], 'db' | 'drain'>,
): RunningLocal['writeSample'] {
  const isEmbedded = env.databaseUrl === undefined && env.redisUrl === undefined;
  if (!keys.isNew || !isEmbedded || !env.sampleData || sandboxMcpUrl === undefined) return undefined;
  const { apiKey, sampleKeyFile: keyFile } = keys;
  return (began) =>
    writeSample({ ...stores, issuerUrl: env.issuerUrl, apiKey, sandboxMcpUrl, keyFile, began });
}

async function traced(env: LocalEnv, service: string, closers: Closer[]): Promise<Traces | undefined> {
  const traces = await startTraces(env.traceEndpoint, { service, ratio: env.traceRatio });
  if (traces) closers.push(traces.close);
  return traces;
}

/** The keys of this installation, as text. */
type Keys = {
  readonly signingKey: string;
  readonly encryptionKeys: string;
  readonly apiKey: string;
  /** Where the admin API key can be read; undefined when it came from `BOOTSTRAP_API_KEY`. */
  readonly apiKeyFile: string | undefined;
  /** Where the admin API key of the account `sample` is, once that is filled. */
  readonly sampleKeyFile: string;
  /** This start has made the admin API key. */
  readonly isNew: boolean;
};

/** Takes keys from the environment, else from the data folder, where missing ones are made (mode 0600). */
function keepKeys(env: LocalEnv): Keys {
  mkdirSync(env.dataDir, { recursive: true, mode: 0o700 });
  const apiKeyFile = join(env.dataDir, 'api-key');
  return {
    isNew: env.bootstrapApiKey === undefined && !existsSync(apiKeyFile),
    sampleKeyFile: join(env.dataDir, 'sample-api-key'),
    signingKey: env.signingKey ?? keep(join(env.dataDir, 'token-signing-key'), generateSigningKey),
    encryptionKeys:
      env.encryptionKeys ?? keep(join(env.dataDir, 'encryption-keys'), () => generateEncryptionKey('k1')),
    apiKey: env.bootstrapApiKey ?? keep(apiKeyFile, generateApiKey),
    apiKeyFile: env.bootstrapApiKey === undefined ? apiKeyFile : undefined,
  };
}

function keep(file: string, generate: () => string): string {
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  const key = generate();
  writeFileSync(file, `${key}\n`, { mode: 0o600, flag: 'wx' });
  return key;
}

async function startDatabase(env: LocalEnv, closers: Closer[]): Promise<Database> {
  if (env.databaseUrl !== undefined) {
    await migrateDatabase(env.databaseUrl);
    const { db, close } = connectDatabase(env.databaseUrl, env.database);
    closers.push(close);
    return db;
  }
  const { db, migrate, close } = await startEmbeddedPostgres(join(env.dataDir, 'postgres'));
  closers.push(close);
  await migrate();
  return db;
}

async function startRedis(env: LocalEnv, log: Logger, closers: Closer[]) {
  let url = env.redisUrl;
  if (url === undefined) {
    const engine = await startEmbeddedRedis({ dir: join(env.dataDir, 'redis') });
    closers.push(() => engine.close());
    url = engine.url;
  }
  const redis = connectRedis(url, (error) => log.warn(causeOf(error), 'Redis'), env.redisTimeouts);
  closers.push(async () => redis.disconnect());
  await redisReady(redis).catch(() => {
    throw new Error(`REDIS_URL: ${addressOf(url)} does not answer`);
  });
  return redis;
}

/** The offline provider `sandbox`, which speaks as OpenAI and as Anthropic, and the sandbox MCP server. */
async function startSandbox(env: LocalEnv, closers: Closer[]) {
  const llm = await startSandboxLlm();
  closers.push(() => llm.close());
  const mcp = await startSandboxMcp({ port: env.sandboxMcpPort })
    // That port is another's: then any.
    .catch(() => startSandboxMcp());
  closers.push(() => mcp.close());
  return {
    provider: sandboxProvider(llm.url),
    mcpUrl: mcp.url,
    addresses: new Set([new URL(llm.url).host, new URL(mcp.url).host]),
  };
}

/** Routes of OpenAI and Anthropic under one roof, as `PROVIDERS_FILE` would state them. */
const sandboxProvider = (baseUrl: string): object => ({
  extends: ['openai', 'anthropic'],
  base_url: baseUrl,
  pricing: { ...SANDBOX_PRICES, [SANDBOX_VOICE.model]: SANDBOX_VOICE.price },
  context_windows: {
    ...Object.fromEntries(SANDBOX_MODELS.map((model) => [model, SANDBOX_WINDOW])),
    [SANDBOX_VOICE.model]: SANDBOX_VOICE.facts,
  },
});

/** The operator's providers and the sandbox, as the gateway and the issuer take them. */
function providersWith(file: string | undefined, sandbox: object | undefined): string {
  const entries = file === undefined ? {} : (JSON.parse(file) as object);
  return JSON.stringify(sandbox ? { ...entries, sandbox } : entries);
}
