import { readVariable, rotationRequest, virtualKeyRequest } from '@presign/schema';
import { virtualKeys } from '@presign/schema/tables';
import { desc, eq } from 'drizzle-orm';
import { readProviders } from '../env.ts';
import { replaceKey } from '../keys/change-virtual-key.ts';
import { endVirtualKey } from '../keys/delete-virtual-key.ts';
import { selectVirtualKeys, tellVirtualKey } from '../keys/tell-virtual-key.ts';
import { keepVirtualKey } from '../keys/virtual-keys.ts';
import { type Command, type Given, UsageError } from './command.ts';
import { aligned } from './help.ts';
import { numberOf, readBody, readSecret } from './read-body.ts';
import { ACCOUNT, accountOf, encryptionKeysOf, withDatabase, withStores } from './stores.ts';

const FROM_INPUT = "The provider's key is read from standard input.";

/** `virtual-keys …`: providers' keys, kept under ids of their own. */
export const VIRTUAL_KEYS: readonly Command[] = [
  {
    name: 'virtual-keys create',
    summary: "Keep a provider's key and print the id to issue URLs with",
    details: [FROM_INPUT],
    options: {
      provider: { value: 'NAME', about: 'such as openai, or one of PROVIDERS_FILE' },
      name: { value: 'NAME', about: 'what you call it' },
      config: { value: 'JSON', about: 'as config of POST /v1/presign' },
      'max-uses': { value: 'N', about: 'calls over all its URLs' },
      'cost-limit': { value: 'N', about: 'microdollars over all its URLs' },
      ...ACCOUNT,
    },
    run: async (given, io) => {
      const encryptionKeys = encryptionKeysOf(io);
      const providers = readProviders(readVariable(io.env, 'PROVIDERS_FILE', undefined));
      const body = readBody(virtualKeyRequest, { ...requestOf(given), key: await readSecret(io) });
      await withDatabase(io, async (db) => {
        const accountId = await accountOf(db, given.text('account'));
        io.out(await keepVirtualKey({ db, encryptionKeys, providers, now: Date.now }, accountId, body));
      });
    },
  },
  {
    name: 'virtual-keys list',
    summary: 'List virtual keys, newest first, without the keys themselves',
    options: { json: { about: 'as the API tells them' }, ...ACCOUNT },
    run: async (given, io) => {
      const told = await withStores(io, async ({ db, redis }) => {
        const own = eq(virtualKeys.accountId, await accountOf(db, given.text('account')));
        const newestFirst = [desc(virtualKeys.createdAt), desc(virtualKeys.id)];
        const rows = await selectVirtualKeys(db)
          .where(own)
          .orderBy(...newestFirst);
        return Promise.all(rows.map((row) => tellVirtualKey(redis, row)));
      });
      if (given.flag('json')) return io.out(JSON.stringify(told));
      const table = told.map(({ id, provider, version, budget, revoked_at: revokedAt, name }) => {
        const { used = '–', spent = '–' } = budget?.live ?? budget?.settled ?? {};
        const state = revokedAt === null ? 'valid' : 'deleted';
        return [id, provider, String(version), String(used), String(spent), state, name];
      });
      const head = ['ID', 'PROVIDER', 'VERSION', 'USED', 'SPENT', 'STATE', 'NAME'];
      for (const line of aligned([head, ...table])) io.out(line);
    },
  },
  {
    name: 'virtual-keys rotate',
    summary: "Replace the provider's key, for URLs that are issued already, too",
    details: [FROM_INPUT, 'When it is done, every gateway uses the new key.'],
    arguments: ['ID'],
    options: ACCOUNT,
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      const encryptionKeys = encryptionKeysOf(io);
      const { key } = readBody(rotationRequest, { key: await readSecret(io) });
      await withStores(io, async ({ db, redis }) =>
        replaceKey({ db, redis, encryptionKeys }, await accountOf(db, given.text('account')), id, key),
      );
      io.note(`${id} has its new key on every gateway. The old one can be withdrawn at the provider.`);
    },
  },
  {
    name: 'virtual-keys delete',
    summary: 'Delete a virtual key: all URLs issued with it are refused',
    arguments: ['ID'],
    options: ACCOUNT,
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      await withStores(io, async ({ db, redis }) =>
        endVirtualKey({ db, redis, now: Date.now }, await accountOf(db, given.text('account')), id),
      );
      io.note(`${id} is deleted, and its URLs are refused on every gateway.`);
    },
  },
];

function requestOf(given: Given): object {
  const budget = { max_uses: numberOf(given, 'max-uses'), cost_limit: numberOf(given, 'cost-limit') };
  const config = given.text('config');
  return {
    provider: given.text('provider'),
    name: given.text('name'),
    config: config === undefined ? undefined : parseConfig(config),
    budget: Object.values(budget).some((each) => each !== undefined) ? budget : undefined,
  };
}

function parseConfig(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError('--config: expected JSON');
  }
}
