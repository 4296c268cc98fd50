import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateApiKey, generateEncryptionKey, generateSigningKey } from '@presign/crypto';
import type { LocalEnv } from './env.ts';

/** The keys of this installation, as text. */
export type Keys = {
  readonly signingKey: string;
  readonly encryptionKeys: string;
  readonly apiKey: string;
  /** Where the admin API key can be read; undefined when it came from `BOOTSTRAP_API_KEY`. */
  readonly apiKeyFile: string | undefined;
};

/** Takes keys from the environment, else from the data folder, where missing ones are made (mode 0600). */
export function keepKeys(env: LocalEnv): Keys {
  mkdirSync(env.dataDir, { recursive: true, mode: 0o700 });
  const apiKeyFile = join(env.dataDir, 'api-key');
  return {
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
