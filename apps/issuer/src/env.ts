import { readEncryptionKeys, readPublicKeys, readSigningKey } from '@presign/crypto';
import { readProvidersFile } from '@presign/providers';
import {
  parseVariable,
  readKnowledgeSchedule,
  readPriceSchedule,
  readProxy,
  readRedisTimeouts,
  readVariable,
  VariableError,
  type VariableName,
} from '@presign/service';
import { readDatabaseSettings } from '@presign/service/database';
import { shutdownOf } from '@presign/service/start';
import type { ArchiveTarget } from './ledger/archive-store.ts';
import type { Retention } from './ledger/retention.ts';

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
    providersFile: readProvidersFile(readVariable(env, 'PROVIDERS_FILE', undefined)),
    priceSource: readPriceSchedule(env),
    knowledgeSource: readKnowledgeSchedule(env),
    allowPrivateUpstreams: readVariable(env, 'ALLOW_PRIVATE_UPSTREAMS', false),
    proxy: readProxy(env),
    requestsPerMinute: readVariable(env, 'API_REQUESTS_PER_MINUTE', 60_000),
    bootstrapApiKey: readVariable(env, 'BOOTSTRAP_API_KEY', undefined),
    retention: readRetention(env),
    auditDays: readVariable(env, 'AUDIT_KEPT_DAYS', 400),
    usageMetadata: readVariable(env, 'USAGE_METADATA', []),
    keepAliveMs: readVariable(env, 'KEEP_ALIVE_SECONDS', 620) * 1000,
    shutdown: shutdownOf(
      readVariable(env, 'SHUTDOWN_DRAIN_SECONDS', 10),
      readVariable(env, 'SHUTDOWN_GRACE_SECONDS', 25),
    ),
    metricsPort: readVariable(env, 'METRICS_PORT', undefined),
    traceEndpoint: readVariable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT', undefined),
    traceRatio: readVariable(env, 'OTEL_TRACES_SAMPLER_ARG', 1),
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

/** How long rows are kept, and where they go then. */
export function readRetention(env: Environment): Retention {
  const ledgerDays = readVariable(env, 'LEDGER_KEPT_DAYS', 400);
  const grantDays = readVariable(env, 'GRANTS_KEPT_DAYS', 30);
  const usageDays = readVariable(env, 'USAGE_KEPT_DAYS', 0);
  const refusedDays = readVariable(env, 'REFUSALS_KEPT_DAYS', 90);
  // Reports read whole days from their sums, also while the calls of these days are kept.
  if (usageDays > 0 && (ledgerDays === 0 || usageDays < ledgerDays))
    throw new VariableError('USAGE_KEPT_DAYS', 'is less than LEDGER_KEPT_DAYS');
  return { ledgerDays, grantDays, usageDays, refusedDays, archive: readArchive(env) };
}

/** Reads the variables of AWS only for an archive in S3: other programs of the machine may have them. */
function readArchive(env: Environment): ArchiveTarget | undefined {
  const folder = readVariable(env, 'ARCHIVE_FOLDER', undefined);
  const place = readVariable(env, 'ARCHIVE_S3', undefined);
  if (place === undefined) return folder === undefined ? undefined : { folder };
  if (folder !== undefined) throw new VariableError('ARCHIVE_S3', 'and ARCHIVE_FOLDER are both set');
  const need = (name: VariableName, value: string | undefined): string => {
    if (value === undefined) throw new VariableError(name, 'is missing');
    return value;
  };
  const sessionToken = readVariable(env, 'AWS_SESSION_TOKEN', undefined);
  const credentials = {
    accessKeyId: need('AWS_ACCESS_KEY_ID', readVariable(env, 'AWS_ACCESS_KEY_ID', undefined)),
    secretAccessKey: need('AWS_SECRET_ACCESS_KEY', readVariable(env, 'AWS_SECRET_ACCESS_KEY', undefined)),
    ...(sessionToken === undefined ? {} : { sessionToken }),
  };
  const endpoint = readVariable(env, 'AWS_ENDPOINT_URL_S3', undefined);
  const region = readVariable(env, 'AWS_REGION', 'us-east-1');
  return { s3: { ...place, endpoint, region, credentials } };
}
