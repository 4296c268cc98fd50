import type { EncryptionKeys, SigningKey } from '@presign/crypto';
import type { PlantSeed, RedisClient } from '@presign/limits';
import type { PrivateUpstreams } from '@presign/outbound';
import type { Provider } from '@presign/providers';
import type { PriceKeeper } from '@presign/providers/keep-prices';
import type { Database } from '@presign/service/database';
import type { Logger } from 'pino';

/** Everything that the handlers of routes get. */
export type RouteDeps = {
  readonly db: Database;
  readonly redis: RedisClient;
  /** Leaves seeds of fresh grants in Redis. */
  readonly plantSeed: PlantSeed;
  readonly signingKey: SigningKey;
  /** Earlier signing keys whose tokens are still valid, as PASERK `k4.public`. */
  readonly olderPublicKeys: readonly string[];
  readonly encryptionKeys: EncryptionKeys;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly prices: Pick<PriceKeeper, 'current' | 'status'>;
  /** Public addresses, without a slash at the end. */
  readonly issuerUrl: string;
  readonly gatewayUrl: string;
  /** The limit of an API key that has no limit of its own. */
  readonly requestsPerMinute: number;
  /** The metadata keys that are recorded with each call, in order. */
  readonly usageMetadata: readonly string[];
  /** Private addresses that webhooks may reach. */
  readonly allowPrivateUpstreams: PrivateUpstreams;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
};
