import { readFileSync } from 'node:fs';
import { readEncryptionKeys, readSigningKey } from '@presign/crypto';
import { loadProviders, type Provider } from '@presign/providers';
import { readVariable } from '@presign/schema';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the issuer's variables; the only reader of `process.env` here.
 * @throws VariableError, or an error of the key's or the file's reader, each one line long
 */
export function readIssuerEnv(env: Environment = process.env) {
  const host = readVariable(env, 'HOST', '0.0.0.0');
  const port = readVariable(env, 'ISSUER_PORT', 8787);
  return {
    host,
    port,
    issuerUrl: readVariable(env, 'ISSUER_URL', `http://localhost:${port}`),
    gatewayUrl: readVariable(env, 'GATEWAY_URL'),
    databaseUrl: readVariable(env, 'DATABASE_URL'),
    redisUrl: readVariable(env, 'REDIS_URL'),
    signingKey: readSigningKey(readVariable(env, 'TOKEN_SIGNING_KEY')),
    olderPublicKeys: readVariable(env, 'TOKEN_PUBLIC_KEYS', '')
      .split(/[\s,]+/)
      .filter(Boolean),
    encryptionKeys: readEncryptionKeys(readVariable(env, 'ENCRYPTION_KEYS')),
    providers: readProviders(env),
    bootstrapApiKey: readVariable(env, 'BOOTSTRAP_API_KEY', undefined),
    logLevel: readVariable(env, 'LOG_LEVEL', 'info'),
  };
}

/** Built-in providers, changed and extended by `PROVIDERS_FILE`. */
function readProviders(env: Environment): ReadonlyMap<string, Provider> {
  const file = readVariable(env, 'PROVIDERS_FILE', undefined);
  return loadProviders(file === undefined ? undefined : readFileSync(file, 'utf8'));
}
