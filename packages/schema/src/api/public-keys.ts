import { z } from 'zod';

/** Answer of `GET /v1/keys`. */
export const publicKeysAnswer = z.strictObject({
  /** PASERK ids (`k4.pid`) and the keys themselves (`k4.public`). */
  keys: z.array(z.strictObject({ kid: z.string(), public_key: z.string() })),
});
export type PublicKeysAnswer = z.infer<typeof publicKeysAnswer>;
