import {
  generateEncryptionKey,
  generateSigningKey,
  readEncryptionKeys,
  readPublicKeys,
  readSigningKey,
  type SigningKey,
} from '@presign/crypto';
import type { RedisClient } from '@presign/limits';
import type { LlmClaims } from '@presign/schema';
import type { Database } from '@presign/service/database';
import { pino } from 'pino';
import { startGateway } from '../src/index.ts';

const AUDIENCE = 'https://gateway.example';
const HOUR_MS = 3_600_000;

export type StorelessGateway = {
  readonly url: string;
  readonly signingKey: SigningKey;
  /** The gateway's clock, which stands still. */
  readonly clock: { ms: number };
  /** The requests to Redis and Postgres; both fail. */
  readonly asked: string[];
  /** Claims of a good token for POST /v1/chat/completions of openai. */
  readonly claims: () => LlmClaims;
  readonly close: () => Promise<void>;
};

/** A gateway whose stores only note that they were asked: for what must be refused before they are. */
export async function startStorelessGateway(): Promise<StorelessGateway> {
  const asked: string[] = [];
  const clock = { ms: Date.parse('2030-01-01T00:00:00.000Z') };
  const signingKey = readSigningKey(generateSigningKey());
  const gateway = await startGateway(
    {
      db: failing('postgres', asked) as Database,
      redis: failing('redis', asked) as RedisClient,
      publicKeys: readPublicKeys(signingKey.publicKey),
      encryptionKeys: readEncryptionKeys(generateEncryptionKey('k1')),
      providersFile: undefined,
      gatewayUrl: AUDIENCE,
      // So long that no timer asks a store meanwhile.
      leaseMs: 24 * HOUR_MS,
      upstreamTimeoutMs: HOUR_MS,
      mcpPrices: { byServer: new Map(), defaultMicrousd: 1_000 },
      maxHeldBodyBytes: 128 * 1024 * 1024,
      maxBodyBytes: 16 * 1024 * 1024,
      allowPrivateUpstreams: false,
      now: () => clock.ms,
      log: pino({ level: 'silent' }),
    },
    { host: '127.0.0.1', port: 0 },
  );
  return {
    url: `http://127.0.0.1:${gateway.port}`,
    signingKey,
    clock,
    asked,
    claims: () => ({
      jti: '0198c0de-0000-7000-8000-000000000001',
      sub: '0198c0de-0000-7000-8000-000000000002',
      iat: new Date(clock.ms).toISOString(),
      exp: new Date(clock.ms + HOUR_MS).toISOString(),
      iss: 'https://issuer.example',
      aud: AUDIENCE,
      prt: 7,
      knd: 'llm',
      prv: 'openai',
      mth: 'POST',
      pth: ['/v1/chat/completions'],
    }),
    close: () => gateway.close({ graceMs: 0 }),
  };
}

const failing = (name: string, asked: string[]): unknown =>
  new Proxy(
    {},
    {
      get: (_target, property) => {
        // The gateway compares its clock with Redis' now and then.
        if (property === 'time') return () => Promise.reject(new Error('no clock'));
        // As of a client that is connecting.
        if (property === 'stream') return undefined;
        const refused = new Error('this store only notes that it was asked');
        const note = () => asked.push(`${name}.${String(property)}`);
        if (property === 'evalsha')
          return (...args: unknown[]) => {
            // Refused calls whose token is good wait for Redis, and are sent again each second.
            if (!args.some((each) => String(each).endsWith('}:refused'))) note();
            return Promise.reject(refused);
          };
        note();
        throw refused;
      },
    },
  );
