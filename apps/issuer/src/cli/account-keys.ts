import { aligned } from '@presign/client/terminal';
import { loadProviders, type Provider, readProvidersFile } from '@presign/providers';
import { apiKeyRequest, type Pending, rotationRequest, virtualKeyRequest } from '@presign/schema';
import { apiKeys, virtualKeys } from '@presign/schema/tables';
import { readVariable } from '@presign/service';
import { desc, eq } from 'drizzle-orm';
import { byCli } from '../events/audit-log.ts';
import { describeApiKey, makeApiKey } from '../keys/api-keys.ts';
import { endApiKey } from '../keys/change-api-key.ts';
import { endVirtualKey } from '../keys/change-virtual-key.ts';
import { replaceKey } from '../keys/rotate-virtual-key.ts';
import { describeVirtualKey, selectVirtualKeys, storeVirtualKey } from '../keys/virtual-keys.ts';
import {
  type Command,
  CommandError,
  type Given,
  type Io,
  numberOf,
  readBody,
  readSecret,
  UsageError,
} from './command.ts';
import { ACCOUNT, accountOf, encryptionKeysOf, withDatabase, withStores } from './stores.ts';

/** `api-keys …`: backends call the issuer with API keys. */
export const API_KEYS: readonly Command[] = [
  {
    name: 'api-keys create',
    summary: 'Create an API key and print it; it is not shown again',
    options: {
      name: { value: 'NAME', about: 'a name of your choice' },
      scopes: { value: 'LIST', about: 'one or more of presign, read, admin, operator, separated by commas' },
      'expires-in': { value: 'SECONDS', about: 'lifetime; without it the key does not expire' },
      'requests-per-minute': {
        value: 'NUMBER',
        about: "limit of the key; without it the operator's default",
      },
      policy: { value: 'JSON', about: 'what the key may issue, like policy of POST /v1/api-keys' },
      ...ACCOUNT,
    },
    run: async (given, io) => {
      const body = readBody(apiKeyRequest, {
        name: given.text('name'),
        scopes: given.text('scopes')?.split(','),
        expires_in: numberOf(given, 'expires-in'),
        requests_per_minute: numberOf(given, 'requests-per-minute'),
        policy: jsonOf(given, 'policy'),
      });
      const providers = providersOf(io);
      await withDatabase(io, async (db) => {
        const accountId = await accountOf(db, given.text('account'));
        const { key, id } = await makeApiKey({ db, now: Date.now, providers }, byCli(accountId), body);
        io.note(`API key ${id} of account ${accountId}. It is not shown again:`);
        io.out(key);
      });
    },
  },
  {
    name: 'api-keys list',
    summary: 'List API keys, newest first, without the keys themselves',
    options: { json: { about: 'in the format of the API' }, ...ACCOUNT },
    run: async (given, io) => {
      const rows = await withDatabase(io, async (db) => {
        const own = eq(apiKeys.accountId, await accountOf(db, given.text('account')));
        return db.select().from(apiKeys).where(own).orderBy(desc(apiKeys.createdAt), desc(apiKeys.id));
      });
      if (given.flag('json')) return io.out(JSON.stringify(rows.map(describeApiKey)));
      const table = rows.map((row) => [row.id, row.hint, row.scopes.join(','), stateOf(row), row.name]);
      for (const line of aligned([['ID', 'KEY', 'SCOPES', 'STATE', 'NAME'], ...table])) io.out(line);
    },
  },
  {
    name: 'api-keys revoke',
    summary: 'Revoke an API key; it is refused from the next request on',
    details: ['The last valid admin key of an account cannot be revoked. Create another one first.'],
    arguments: ['ID'],
    options: ACCOUNT,
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      if (!/^[0-9a-f-]{36}$/i.test(id)) throw new CommandError('no API key has this id; see api-keys list');
      await withDatabase(io, async (db) =>
        endApiKey({ db, now: Date.now }, byCli(await accountOf(db, given.text('account'))), id),
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

const FROM_INPUT = "The provider's key is read from standard input.";

/** `virtual-keys …`: providers' keys, stored under ids of their own. */
export const VIRTUAL_KEYS: readonly Command[] = [
  {
    name: 'virtual-keys create',
    summary: "Store a provider's key and print the id to issue URLs with",
    details: [FROM_INPUT],
    options: {
      provider: { value: 'NAME', about: 'such as openai, or a provider of PROVIDERS_FILE' },
      name: { value: 'NAME', about: 'a name of your choice' },
      config: { value: 'JSON', about: 'like config of POST /v1/presign' },
      'max-uses': { value: 'N', about: 'calls over all its URLs' },
      'cost-limit': { value: 'N', about: 'microdollars over all its URLs' },
      ...ACCOUNT,
    },
    run: async (given, io) => {
      const encryptionKeys = encryptionKeysOf(io);
      const providers = providersOf(io);
      const body = readBody(virtualKeyRequest, { ...requestOf(given), key: await readSecret(io) });
      await withDatabase(io, async (db) => {
        const accountId = await accountOf(db, given.text('account'));
        const deps = { db, encryptionKeys, providers, now: Date.now };
        io.out(await storeVirtualKey(deps, byCli(accountId), body));
      });
    },
  },
  {
    name: 'virtual-keys list',
    summary: 'List virtual keys, newest first, without the keys themselves',
    options: { json: { about: 'in the format of the API' }, ...ACCOUNT },
    run: async (given, io) => {
      const described = await withStores(io, async ({ db, redis }) => {
        const own = eq(virtualKeys.accountId, await accountOf(db, given.text('account')));
        const newestFirst = [desc(virtualKeys.createdAt), desc(virtualKeys.id)];
        const rows = await selectVirtualKeys(db)
          .where(own)
          .orderBy(...newestFirst);
        return Promise.all(rows.map((row) => describeVirtualKey(redis, row)));
      });
      if (given.flag('json')) return io.out(JSON.stringify(described));
      const table = described.map(({ id, provider, version, budget, revoked_at: revokedAt, name }) => {
        const { used, spent } = budget.live ?? budget.settled;
        const state = revokedAt === null ? 'valid' : 'deleted';
        return [id, provider, String(version), String(used), String(spent), state, name];
      });
      const head = ['ID', 'PROVIDER', 'VERSION', 'USED', 'SPENT', 'STATE', 'NAME'];
      for (const line of aligned([head, ...table])) io.out(line);
    },
  },
  {
    name: 'virtual-keys rotate',
    summary: "Replace the provider's key, also for URLs that are already issued",
    details: [FROM_INPUT, 'Once the command ends, every gateway uses the new key.'],
    arguments: ['ID'],
    options: ACCOUNT,
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      const encryptionKeys = encryptionKeysOf(io);
      const providers = providersOf(io);
      const { key } = readBody(rotationRequest, { key: await readSecret(io) });
      await withStores(io, async ({ db, redis }) =>
        finished(
          await replaceKey(
            { db, redis, encryptionKeys, providers },
            byCli(await accountOf(db, given.text('account'))),
            id,
            key,
          ),
        ),
      );
      io.note(`Every gateway uses the new key of ${id}. You can now withdraw the old one at the provider.`);
    },
  },
  {
    name: 'virtual-keys delete',
    summary: 'Delete a virtual key; all URLs issued with it are refused',
    arguments: ['ID'],
    options: ACCOUNT,
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      await withStores(io, async ({ db, redis }) =>
        finished(
          await endVirtualKey(
            { db, redis, now: Date.now },
            byCli(await accountOf(db, given.text('account'))),
            id,
          ),
        ),
      );
      io.note(`${id} is deleted, and its URLs are refused on every gateway.`);
    },
  },
];

/** @throws CommandError when Redis has yet to take over a change */
function finished(pending: Pending | undefined): void {
  if (pending)
    throw new CommandError(
      'The change is stored, but Redis does not answer, so gateways may still use the old key. A running issuer applies the change as soon as Redis answers.',
    );
}

function requestOf(given: Given): object {
  const budget = { max_uses: numberOf(given, 'max-uses'), cost_limit: numberOf(given, 'cost-limit') };
  return {
    provider: given.text('provider'),
    name: given.text('name'),
    config: jsonOf(given, 'config'),
    budget: Object.values(budget).some((each) => each !== undefined) ? budget : undefined,
  };
}

function jsonOf(given: Given, name: string): unknown {
  const text = given.text(name);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`--${name}: expected JSON`);
  }
}

/** Built-in providers, changed and extended by `PROVIDERS_FILE`. */
const providersOf = ({ env }: Io): ReadonlyMap<string, Provider> =>
  loadProviders(readProvidersFile(readVariable(env, 'PROVIDERS_FILE', undefined)));
