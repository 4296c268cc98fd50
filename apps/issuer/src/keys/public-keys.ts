import { readPublicKeys } from '@presign/crypto';
import { publicKeysAnswer } from '@presign/schema';
import { route } from '../route.ts';

/** `GET /v1/keys`: the PASERK public keys that verify the tokens of this issuer. Needs no API key. */
export const publicKeys = route(
  {
    method: 'get',
    path: '/v1/keys',
    summary: "Get the public keys that verify this issuer's tokens",
    answer: publicKeysAnswer,
  },
  ({ signingKey, olderPublicKeys }) => {
    const paserks = [...new Set([signingKey.publicKey, ...olderPublicKeys])];
    const keys = paserks.map((paserk) => ({
      kid: [...readPublicKeys(paserk).keys()][0] ?? '',
      public_key: paserk,
    }));
    return async () => ({ keys });
  },
);
