import { randomBytes } from 'node:crypto';
import { generateApiKey, generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';

/**
 * Prints fresh keys as lines NAME=value. `infra/secrets.sh` writes them to files. The password is for the Postgres in `infra/compose.yaml`.
 * Its characters need no escape in an address.
 */
const signingKey = generateSigningKey();
process.stdout.write(`TOKEN_SIGNING_KEY=${signingKey}
TOKEN_PUBLIC_KEYS=${readSigningKey(signingKey).publicKey}
ENCRYPTION_KEYS=${generateEncryptionKey('k1')}
BOOTSTRAP_API_KEY=${generateApiKey()}
POSTGRES_PASSWORD=${randomBytes(24).toString('hex')}
`);
