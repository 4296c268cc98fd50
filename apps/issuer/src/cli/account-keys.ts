import { randomUUID } from 'node:crypto';
import { keyName } from '@presign/schema';
import { accounts } from '@presign/schema/tables';
import { asc } from 'drizzle-orm';
import { z } from 'zod';
import type { Command } from './command.ts';
import { aligned } from './help.ts';
import { readBody } from './read-body.ts';
import { withDatabase } from './stores.ts';

const accountRequest = z.strictObject({ name: keyName });

/** `accounts …`: who owns keys, sessions and usage. */
export const ACCOUNTS: readonly Command[] = [
  {
    name: 'accounts create',
    summary: 'Create an account and print its id',
    details: ['It has no keys yet: api-keys create --account ID --scopes admin makes the first.'],
    options: { name: { value: 'NAME', about: 'what you call it' } },
    run: async (given, io) => {
      const { name } = readBody(accountRequest, { name: given.text('name') });
      const id = randomUUID();
      await withDatabase(io, (db) => db.insert(accounts).values({ id, name }));
      io.out(id);
    },
  },
  {
    name: 'accounts list',
    summary: 'List accounts',
    run: async (_given, io) => {
      const rows = await withDatabase(io, (db) =>
        db.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)),
      );
      const table = rows.map((row) => [row.id, row.createdAt.toISOString(), row.name]);
      for (const line of aligned([['ID', 'CREATED', 'NAME'], ...table])) io.out(line);
    },
  },
];
