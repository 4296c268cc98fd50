import { generateApiKey, generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';

/** Prints fresh keys as lines for an env file: `pnpm --filter @presign/issuer keys > infra/.env`. */
const signingKey = generateSigningKey();
process.stdout.write(`TOKEN_SIGNING_KEY=${signingKey}
TOKEN_PUBLIC_KEYS=${readSigningKey(signingKey).publicKey}
ENCRYPTION_KEYS=${generateEncryptionKey('k1')}
BOOTSTRAP_API_KEY=${generateApiKey()}
`);
