import { apiKeyRequest } from '@presign/schema';
import { apiKeys } from '@presign/schema/tables';
import { desc, eq } from 'drizzle-orm';
import { makeApiKey } from '../keys/api-keys.ts';
import { endApiKey } from '../keys/revoke-api-key.ts';
import { tellApiKey } from '../keys/tell-api-key.ts';
import { type Command, CommandError } from './command.ts';
import { aligned } from './help.ts';
import { numberOf, readBody } from './read-body.ts';
import { ACCOUNT, accountOf, withDatabase } from './stores.ts';

/** `api-keys …`: what backends call the issuer with. */
export const API_KEYS: readonly Command[] = [
  {
    name: 'api-keys create',
    summary: 'Create an API key and print it, this once',
    options: {
      name: { value: 'NAME', about: 'what you call it' },
      scopes: { value: 'LIST', about: 'presign, read, admin: one or several, separated by commas' },
      'expires-in': { value: 'SECONDS', about: 'validity; without it the key does not expire' },
      'requests-per-minute': { value: 'NUMBER', about: "without it the operator's default" },
      ...ACCOUNT,
    },
    run: async (given, io) => {
      const body = readBody(apiKeyRequest, {
        name: given.text('name'),
        scopes: given.text('scopes')?.split(','),
        expires_in: numberOf(given, 'expires-in'),
        requests_per_minute: numberOf(given, 'requests-per-minute'),
      });
      await withDatabase(io, async (db) => {
        const accountId = await accountOf(db, given.text('account'));
        const { key, id } = await makeApiKey({ db, now: Date.now }, accountId, body);
        io.note(`API key ${id} of account ${accountId}, shown this once:`);
        io.out(key);
      });
    },
  },
  {
    name: 'api-keys list',
    summary: 'List API keys, newest first, without the keys themselves',
    options: { json: { about: 'as the API tells them' }, ...ACCOUNT },
    run: async (given, io) => {
      const rows = await withDatabase(io, async (db) => {
        const own = eq(apiKeys.accountId, await accountOf(db, given.text('account')));
        return db.select().from(apiKeys).where(own).orderBy(desc(apiKeys.createdAt), desc(apiKeys.id));
      });
      if (given.flag('json')) return io.out(JSON.stringify(rows.map(tellApiKey)));
      const table = rows.map((row) => [row.id, row.hint, row.scopes.join(','), stateOf(row), row.name]);
      for (const line of aligned([['ID', 'KEY', 'SCOPES', 'STATE', 'NAME'], ...table])) io.out(line);
    },
  },
  {
    name: 'api-keys revoke',
    summary: 'Revoke an API key: it is refused from the next request on',
    details: ['The last valid admin key of an account is not revoked: create another one first.'],
    arguments: ['ID'],
    options: ACCOUNT,
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      if (!/^[0-9a-f-]{36}$/i.test(id)) throw new CommandError('there is no such API key; see api-keys list');
      await withDatabase(io, async (db) =>
        endApiKey({ db, now: Date.now }, await accountOf(db, given.text('account')), id),
      );
      io.note(`API key ${id} is revoked.`);
    },
  },
];

function stateOf({ revokedAt, expiresAt }: typeof apiKeys.$inferSelect): string {
  if (revokedAt) return `revoked ${revokedAt.toISOString()}`;
  if (!expiresAt) return 'valid';
  return `${expiresAt.getTime() <= Date.now() ? 'expired' : 'valid until'} ${expiresAt.toISOString()}`;
}
