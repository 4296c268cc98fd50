import { readFileSync } from 'node:fs';
import { readEncryptionKeys, readPublicKeys } from '@presign/crypto';
import { loadProviders } from '@presign/providers';
import { readVariable } from '@presign/schema';

/**
 * Reads the gateway's variables; the only reader of `process.env` here.
 * @throws VariableError, or an error of the key's or the file's reader, each one line long
 */
export function readGatewayEnv(env: Readonly<Record<string, string | undefined>> = process.env) {
  const port = readVariable(env, 'GATEWAY_PORT', 8788);
  const providersFile = readVariable(env, 'PROVIDERS_FILE', undefined);
  return {
    host: readVariable(env, 'HOST', '0.0.0.0'),
    port,
    gatewayUrl: readVariable(env, 'GATEWAY_URL', `http://localhost:${port}`),
    databaseUrl: readVariable(env, 'DATABASE_URL'),
    redisUrl: readVariable(env, 'REDIS_URL'),
    publicKeys: readPublicKeys(readVariable(env, 'TOKEN_PUBLIC_KEYS')),
    encryptionKeys: readEncryptionKeys(readVariable(env, 'ENCRYPTION_KEYS')),
    providers: loadProviders(providersFile === undefined ? undefined : readFileSync(providersFile, 'utf8')),
    allowPrivateUpstreams: readVariable(env, 'ALLOW_PRIVATE_UPSTREAMS', false),
    leaseMs: readVariable(env, 'HOLD_LEASE_SECONDS', 60) * 1000,
    upstreamTimeoutMs: readVariable(env, 'UPSTREAM_TIMEOUT_SECONDS', 3600) * 1000,
    logLevel: readVariable(env, 'LOG_LEVEL', 'info'),
  };
}
