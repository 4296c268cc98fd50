import { readBodyLimits, readMcpPricesFile, readSocketBounds } from '@presign/gateway';
import { readRetention } from '@presign/issuer';
import { readProvidersFile } from '@presign/providers';
import {
  readKnowledgeSchedule,
  readPriceSchedule,
  readProxy,
  readRedisTimeouts,
  readVariable,
} from '@presign/service';
import { readDatabaseSettings } from '@presign/service/database';

/**
 * Reads what `start` runs with; the only reader of `process.env` here. Everything has a default.
 * @throws VariableError when a variable is malformed
 */
export function readLocalEnv(env: Readonly<Record<string, string | undefined>> = process.env) {
  const host = readVariable(env, 'HOST', '127.0.0.1');
  const issuerPort = readVariable(env, 'ISSUER_PORT', 8787);
  const gatewayPort = readVariable(env, 'GATEWAY_PORT', 8788);
  const reachable =
    host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return {
    host,
    issuerPort,
    gatewayPort,
    // The same at every start: an MCP URL that was issued for it goes on being good.
    sandboxMcpPort: gatewayPort + 2,
    issuerUrl: readVariable(env, 'ISSUER_URL', `http://${reachable}:${issuerPort}`),
    gatewayUrl: readVariable(env, 'GATEWAY_URL', `http://${reachable}:${gatewayPort}`),
    dataDir: readVariable(env, 'PRESIGN_DATA_DIR', '.presign'),
    databaseUrl: readVariable(env, 'DATABASE_URL', undefined),
    database: readDatabaseSettings(env),
    redisUrl: readVariable(env, 'REDIS_URL', undefined),
    redisTimeouts: readRedisTimeouts(env),
    signingKey: readVariable(env, 'TOKEN_SIGNING_KEY', undefined),
    publicKeys: readVariable(env, 'TOKEN_PUBLIC_KEYS', undefined),
    encryptionKeys: readVariable(env, 'ENCRYPTION_KEYS', undefined),
    requestsPerMinute: readVariable(env, 'API_REQUESTS_PER_MINUTE', 60_000),
    bootstrapApiKey: readVariable(env, 'BOOTSTRAP_API_KEY', undefined),
    providersFile: readProvidersFile(readVariable(env, 'PROVIDERS_FILE', undefined)),
    priceSource: readPriceSchedule(env),
    knowledgeSource: readKnowledgeSchedule(env),
    allowPrivateUpstreams: readVariable(env, 'ALLOW_PRIVATE_UPSTREAMS', false),
    proxy: readProxy(env),
    sandbox: readVariable(env, 'SANDBOX', true),
    sampleData: readVariable(env, 'SAMPLE_DATA', true),
    leaseMs: readVariable(env, 'HOLD_LEASE_SECONDS', 60) * 1000,
    upstreamTimeoutMs: readVariable(env, 'UPSTREAM_TIMEOUT_SECONDS', 3600) * 1000,
    ...readBodyLimits(env),
    socketBounds: readSocketBounds(env),
    mcpPrices: {
      byServer: readMcpPricesFile(readVariable(env, 'MCP_PRICES_FILE', undefined)),
      defaultMicrousd: readVariable(env, 'MCP_DEFAULT_CALL_COST', 1000),
    },
    retention: readRetention(env),
    auditDays: readVariable(env, 'AUDIT_KEPT_DAYS', 400),
    usageMetadata: readVariable(env, 'USAGE_METADATA', ['team']),
    metricsPort: readVariable(env, 'METRICS_PORT', undefined),
    traceEndpoint: readVariable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT', undefined),
    traceRatio: readVariable(env, 'OTEL_TRACES_SAMPLER_ARG', 1),
    trustedProxies: readVariable(env, 'TRUSTED_PROXIES', undefined),
    traceUpstreams: readVariable(env, 'TRACE_UPSTREAMS', false),
    logLevel: readVariable(env, 'LOG_LEVEL', 'warn'),
  };
}

export type LocalEnv = ReturnType<typeof readLocalEnv>;
