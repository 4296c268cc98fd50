import { readEncryptionKeys, readSigningKey } from '@presign/crypto';
import { type IssuerOptions, type RunningIssuer, startIssuer } from '@presign/issuer';
import { pino } from 'pino';
import type { Stack } from '../harness/stack.ts';

export type OwnIssuer = RunningIssuer & { readonly issuerUrl: string; readonly apiKey: string };

/** An issuer that looks for due deliveries and changes more often, for tests that wait for them. */
export const EAGER = { idleMs: 250 };

/** A further issuer on a stack's stores and keys, with some of what it is made of exchanged. */
export async function startOwnIssuer(stack: Stack, changed: Partial<IssuerOptions> = {}): Promise<OwnIssuer> {
  const deps: IssuerOptions = {
    db: stack.db,
    redis: stack.redis,
    signingKey: readSigningKey(stack.keys.signing),
    olderPublicKeys: [],
    requestsPerMinute: 1_000_000,
    usageMetadata: [],
    encryptionKeys: readEncryptionKeys(stack.keys.encryption),
    providersFile: stack.providersJson,
    issuerUrl: stack.issuerUrl,
    gatewayUrl: stack.gatewayUrls[0] ?? '',
    allowPrivateUpstreams: true,
    now: Date.now,
    log: pino({ level: 'silent' }),
    ...changed,
  };
  const running = await startIssuer(deps, { host: '127.0.0.1', port: 0 });
  return { ...running, issuerUrl: `http://127.0.0.1:${running.port}`, apiKey: stack.apiKey };
}
