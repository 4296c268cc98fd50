import { readPublicKeys } from '@presign/crypto';
import type { Handler } from 'hono';
import type { IssuerDeps, IssuerEnv } from './app.ts';

/** `GET /v1/keys`: the PASERK public keys that verify this issuer's tokens; needs no API key. */
export function publicKeys({ signingKey, olderPublicKeys }: IssuerDeps): Handler<IssuerEnv> {
  const paserks = [...new Set([signingKey.publicKey, ...olderPublicKeys])];
  const keys = paserks.map((paserk) => ({ kid: [...readPublicKeys(paserk).keys()][0], public_key: paserk }));
  return (c) => c.json({ keys });
}
