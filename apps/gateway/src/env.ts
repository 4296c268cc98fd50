import { readEncryptionKeys, readPublicKeys } from '@presign/crypto';
import { readProvidersFile } from '@presign/providers';
import {
  parseVariable,
  readKnowledgeSchedule,
  readNamedFile,
  readPriceSchedule,
  readProxy,
  readRedisTimeouts,
  readVariable,
  VariableError,
} from '@presign/service';
import { readDatabaseSettings } from '@presign/service/database';
import { shutdownOf } from '@presign/service/start';
import { type McpPrices, readMcpPrices } from './mcp/request/price.ts';
import type { SocketBounds } from './share/open-sockets.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the gateway's variables; the only reader of `process.env` here.
 * @throws VariableError or ProvidersFileError, one line long
 */
export function readGatewayEnv(env: Environment = process.env) {
  const port = readVariable(env, 'GATEWAY_PORT', 8788);
  const publicKeys = readVariable(env, 'TOKEN_PUBLIC_KEYS');
  const encryptionKeys = readVariable(env, 'ENCRYPTION_KEYS');
  return {
    host: readVariable(env, 'HOST', '0.0.0.0'),
    port,
    gatewayUrl: readVariable(env, 'GATEWAY_URL', `http://localhost:${port}`),
    databaseUrl: readVariable(env, 'DATABASE_URL'),
    database: readDatabaseSettings(env),
    redisUrl: readVariable(env, 'REDIS_URL'),
    redisTimeouts: readRedisTimeouts(env),
    publicKeys: parseVariable('TOKEN_PUBLIC_KEYS', () => readPublicKeys(publicKeys)),
    hasSigningKey: Boolean(env.TOKEN_SIGNING_KEY || env.TOKEN_SIGNING_KEY_FILE),
    encryptionKeys: parseVariable('ENCRYPTION_KEYS', () => readEncryptionKeys(encryptionKeys)),
    providersFile: readProvidersFile(readVariable(env, 'PROVIDERS_FILE', undefined)),
    priceSource: readPriceSchedule(env),
    knowledgeSource: readKnowledgeSchedule(env),
    allowPrivateUpstreams: readVariable(env, 'ALLOW_PRIVATE_UPSTREAMS', false),
    proxy: readProxy(env),
    leaseMs: readVariable(env, 'HOLD_LEASE_SECONDS', 60) * 1000,
    upstreamTimeoutMs: readVariable(env, 'UPSTREAM_TIMEOUT_SECONDS', 3600) * 1000,
    ...readBodyLimits(env),
    socketBounds: readSocketBounds(env),
    mcpPrices: {
      byServer: readMcpPricesFile(readVariable(env, 'MCP_PRICES_FILE', undefined)),
      defaultMicrousd: readVariable(env, 'MCP_DEFAULT_CALL_COST', 1000),
    },
    trustedProxies: readVariable(env, 'TRUSTED_PROXIES', undefined),
    keepAliveMs: readVariable(env, 'KEEP_ALIVE_SECONDS', 620) * 1000,
    shutdown: shutdownOf(
      readVariable(env, 'SHUTDOWN_DRAIN_SECONDS', 10),
      readVariable(env, 'SHUTDOWN_GRACE_SECONDS', 25),
    ),
    metricsPort: readVariable(env, 'METRICS_PORT', undefined),
    traceEndpoint: readVariable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT', undefined),
    traceRatio: readVariable(env, 'OTEL_TRACES_SAMPLER_ARG', 1),
    traceUpstreams: readVariable(env, 'TRACE_UPSTREAMS', false),
    logLevel: readVariable(env, 'LOG_LEVEL', 'info'),
  };
}

/** The limits on reading and holding bodies. The largest body must fit twice, in addition to the share of small ones. */
export function readBodyLimits(env: Environment) {
  const maxBodyBytes = readVariable(env, 'MAX_BODY_BYTES', 16_777_216);
  const maxHeldBodyBytes = readVariable(env, 'MAX_HELD_BODY_BYTES', 67_108_864);
  if (maxHeldBodyBytes < 2.5 * maxBodyBytes) {
    throw new VariableError('MAX_HELD_BODY_BYTES', 'is less than two and a half times MAX_BODY_BYTES');
  }
  return { maxBodyBytes, maxHeldBodyBytes };
}

/** The bounds of sockets. */
export const readSocketBounds = (env: Environment): Omit<SocketBounds, 'beatMs'> => ({
  perGateway: readVariable(env, 'MAX_SOCKETS', 5_000),
  perAccount: readVariable(env, 'MAX_SOCKETS_PER_ACCOUNT', 1_000),
  perUrl: readVariable(env, 'MAX_SOCKETS_PER_URL', 20),
  holderMessageBytes: readVariable(env, 'MAX_SOCKET_MESSAGE_BYTES', 1_048_576),
  upstreamMessageBytes: readVariable(env, 'MAX_SOCKET_ANSWER_BYTES', 16_777_216),
});

/** The operator's prices of MCP calls. */
export function readMcpPricesFile(file: string | undefined): McpPrices['byServer'] {
  if (file === undefined) return new Map();
  const text = readNamedFile('MCP_PRICES_FILE', file);
  return parseVariable('MCP_PRICES_FILE', () => readMcpPrices(text));
}
