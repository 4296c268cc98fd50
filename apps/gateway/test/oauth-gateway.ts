import { randomUUID } from 'node:crypto';
import { generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import { guardedDispatcher } from '@presign/outbound';
import { mcpAuth } from '@presign/schema';
import type { Database } from '@presign/service/database';
import { pino } from 'pino';
import { type Authorizer, createAuthorizer, type McpCredential } from '../src/mcp/auth/authorize.ts';

/** The one key of all gateways of a test file, and their clock, which stands still. */
export const encryptionKeys = readEncryptionKeys(generateEncryptionKey('k1'));
export const clock = { ms: Date.parse('2030-01-01T00:00:00.000Z') };

export type OauthGateway = Authorizer & {
  /** All that it logged. */
  readonly logged: () => string;
};

/** The part of a gateway that authenticates to MCP servers. Each call creates another gateway. */
export function oauthGateway(db: Database, { allowPrivate = true } = {}): OauthGateway {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => lines.push(line) });
  const dispatcher = guardedDispatcher(allowPrivate);
  const authorizer = createAuthorizer({ db, dispatcher, encryptionKeys, now: () => clock.ms, log });
  return { ...authorizer, logged: () => lines.join('') };
}

/** A credential that the issuer stored. */
export const credentialWith = (auth: object): McpCredential => ({
  id: randomUUID(),
  accountId: randomUUID(),
  auth: mcpAuth.parse(auth),
  serverUrl: 'https://MCP.example.com/mcp?q=1',
});

/** A Postgres that is not to be asked. */
export const noDatabase = new Proxy({} as Database, {
  get: (_target, property) => {
    throw new Error(`Postgres was asked: ${String(property)}`);
  },
});
