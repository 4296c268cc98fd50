import { readEncryptionKeys, readPublicKeys, readSigningKey } from '@presign/crypto';
import { loadProviders, type Provider } from '@presign/providers';
import { parseVariable, readNamedFile, readVariable } from '@presign/schema';
import { readDatabaseSettings } from '@presign/schema/database';
import { readPriceSchedule, readProxy, readRedisTimeouts, shutdownOf } from '@presign/schema/start';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the issuer's variables; the only reader of `process.env` here.
 * @throws VariableError or ProvidersFileError, one line long
 */
export function readIssuerEnv(env: Environment = process.env) {
  const port = readVariable(env, 'ISSUER_PORT', 8787);
  const gatewayPort = readVariable(env, 'GATEWAY_PORT', 8788);
  const signingKey = readVariable(env, 'TOKEN_SIGNING_KEY');
  const encryptionKeys = readVariable(env, 'ENCRYPTION_KEYS');
  return {
    host: readVariable(env, 'HOST', '0.0.0.0'),
    port,
    issuerUrl: readVariable(env, 'ISSUER_URL', `http://localhost:${port}`),
    gatewayUrl: readVariable(env, 'GATEWAY_URL', `http://localhost:${gatewayPort}`),
    databaseUrl: readVariable(env, 'DATABASE_URL'),
    database: readDatabaseSettings(env),
    redisUrl: readVariable(env, 'REDIS_URL'),
    redisTimeouts: readRedisTimeouts(env),
    signingKey: parseVariable('TOKEN_SIGNING_KEY', () => readSigningKey(signingKey)),
    olderPublicKeys: readOlderPublicKeys(env),
    encryptionKeys: parseVariable('ENCRYPTION_KEYS', () => readEncryptionKeys(encryptionKeys)),
    providers: readProviders(readVariable(env, 'PROVIDERS_FILE', undefined)),
    priceSource: readPriceSchedule(env),
    allowPrivateUpstreams: readVariable(env, 'ALLOW_PRIVATE_UPSTREAMS', false),
    proxy: readProxy(env),
    requestsPerMinute: readVariable(env, 'API_REQUESTS_PER_MINUTE', 60_000),
    bootstrapApiKey: readVariable(env, 'BOOTSTRAP_API_KEY', undefined),
    retention: {
      ledgerDays: readVariable(env, 'LEDGER_KEPT_DAYS', 400),
      grantDays: readVariable(env, 'GRANTS_KEPT_DAYS', 30),
      archiveFolder: readVariable(env, 'ARCHIVE_FOLDER', undefined),
    },
    keepAliveMs: readVariable(env, 'KEEP_ALIVE_SECONDS', 620) * 1000,
    shutdown: shutdownOf(
      readVariable(env, 'SHUTDOWN_DRAIN_SECONDS', 10),
      readVariable(env, 'SHUTDOWN_GRACE_SECONDS', 25),
    ),
    metricsPort: readVariable(env, 'METRICS_PORT', undefined),
    logLevel: readVariable(env, 'LOG_LEVEL', 'info'),
  };
}

/** Keys that tokens were signed with before: published, so that gateways go on accepting those tokens. */
function readOlderPublicKeys(env: Environment): readonly string[] {
  const list = readVariable(env, 'TOKEN_PUBLIC_KEYS', undefined);
  if (list === undefined) return [];
  parseVariable('TOKEN_PUBLIC_KEYS', () => readPublicKeys(list));
  return list.split(/[\s,]+/).filter(Boolean);
}

/** Built-in providers, changed and extended by `PROVIDERS_FILE`. */
export function readProviders(file: string | undefined): ReadonlyMap<string, Provider> {
  if (file === undefined) return loadProviders(undefined);
  return loadProviders(readNamedFile('PROVIDERS_FILE', file));
}
