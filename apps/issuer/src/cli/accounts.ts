import { randomUUID } from 'node:crypto';
import { aligned } from '@presign/client/terminal';
import {
  type AccountAnswer,
  accountChange,
  accountRequest,
  type Pending,
  RefusedError,
} from '@presign/schema';
import { accounts } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { asc, eq } from 'drizzle-orm';
import { byCli, recordChange } from '../events/audit-log.ts';
import { auditedFields, changedLimits, describeAccount, storeAccount } from '../keys/accounts.ts';
import { FIRST_ACCOUNT } from '../keys/bootstrap.ts';
import { change, END, RESUME, SUSPEND } from '../keys/suspend-account.ts';
import { type Command, CommandError, type Given, numberOf, readBody } from './command.ts';
import { withDatabase, withStores } from './stores.ts';

/** The options that set the limits of an account. */
const LIMITS = {
  'api-keys': { value: 'N', about: 'live API keys at most, or none for no limit' },
  sessions: { value: 'N', about: 'live sessions at most, or none' },
  'urls-per-minute': { value: 'N', about: 'URLs issued in a minute at most, or none' },
  'cost-limit': { value: 'N', about: 'highest cost_limit of a URL in microdollars, or none' },
} as const;

/** The limits that are given: `none` removes one. */
function limitsOf(given: Given): Record<string, unknown> | undefined {
  const entries = Object.keys(LIMITS).flatMap((name) => {
    const value = numberOf(given, name);
    return value === undefined ? [] : [[name.replaceAll('-', '_'), value === 'none' ? null : value] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

const NOT_FOUND = 'no account has this id, or it is deleted; see accounts list';

/** The id that a command names. */
function idOf(given: Given): string {
  const [id = ''] = given.arguments;
  if (!/^[0-9a-f-]{36}$/i.test(id)) throw new CommandError(NOT_FOUND);
  return id.toLowerCase();
}

/** Accounts are changed by the operator, whose own account has the audit entry. */
const BY = byCli(FIRST_ACCOUNT);

async function find(db: Database, id: string): Promise<AccountAnswer> {
  const [row] = await db.select().from(accounts).where(eq(accounts.id, id));
  if (!row) throw new CommandError(NOT_FOUND);
  return describeAccount(row);
}

/** A command that suspends, resumes or deletes. */
const changing = (
  verb: 'suspend' | 'resume' | 'delete',
  summary: string,
  how: typeof SUSPEND,
  done: string,
): Command => ({
  name: `accounts ${verb}`,
  summary,
  arguments: ['ID'],
  run: async (given, io) => {
    const id = idOf(given);
    const pending = await withStores(io, ({ db, redis }) =>
      refusedAsText(change({ db, redis, now: Date.now }, BY, id, how)),
    );
    finished(pending);
    io.note(`Account ${id} ${done}.`);
  },
});

/** `accounts …`: accounts own keys, sessions and usage. */
export const ACCOUNTS: readonly Command[] = [
  {
    name: 'accounts create',
    summary: 'Create an account and print its id',
    details: [
      'The account has no keys yet. Create the first with api-keys create --account ID --scopes admin.',
    ],
    options: { name: { value: 'NAME', about: 'a name of your choice' }, ...LIMITS },
    run: async (given, io) => {
      const { name, limits } = readBody(accountRequest, {
        name: given.text('name'),
        limits: limitsOf(given),
      });
      const id = randomUUID();
      const row = { id, name, limits: limits ? changedLimits(null, limits) : null };
      await withDatabase(io, (db) =>
        db.transaction(async (tx) => {
          const [made] = await tx.insert(accounts).values(row).returning();
          const target = { kind: 'account', id } as const;
          const after = made && auditedFields(describeAccount(made));
          await recordChange(tx, byCli(id), { action: 'account.created', target, ...(after && { after }) });
        }),
      );
      io.out(id);
    },
  },
  {
    name: 'accounts list',
    summary: 'List accounts',
    options: { json: { about: 'in the format of the API' } },
    run: async (given, io) => {
      const rows = await withDatabase(io, (db) =>
        db.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)),
      );
      if (given.flag('json')) return io.out(JSON.stringify(rows.map(describeAccount)));
      const table = rows.map((row) => [row.id, row.createdAt.toISOString(), stateOf(row), row.name]);
      for (const line of aligned([['ID', 'CREATED', 'STATE', 'NAME'], ...table])) io.out(line);
    },
  },
  {
    name: 'accounts show',
    summary: 'Show an account with its limits, in the format of the API',
    arguments: ['ID'],
    run: async (given, io) => io.out(JSON.stringify(await withDatabase(io, (db) => find(db, idOf(given))))),
  },
  {
    name: 'accounts change',
    summary: 'Rename an account, or change its limits',
    details: ['The next request of its API keys obeys the limits. Nothing that it has ends.'],
    arguments: ['ID'],
    options: { name: { value: 'NAME', about: 'a new name' }, ...LIMITS },
    run: async (given, io) => {
      const body = readBody(accountChange, { name: given.text('name'), limits: limitsOf(given) });
      const id = idOf(given);
      const row = await withDatabase(io, (db) =>
        refusedAsText(db.transaction((tx) => storeAccount(tx, BY, id, body))),
      );
      io.out(JSON.stringify(describeAccount(row)));
    },
  },
  changing(
    'suspend',
    'Suspend an account: its API keys and all its URLs are refused',
    SUSPEND,
    'is suspended',
  ),
  changing('resume', 'End the suspension of an account', RESUME, 'serves again'),
  changing('delete', 'Delete an account for good; its usage and its calls stay', END, 'is deleted'),
];

const stateOf = ({ suspendedAt, deletedAt }: typeof accounts.$inferSelect): string => {
  if (deletedAt) return 'deleted';
  return suspendedAt ? 'suspended' : 'active';
};

/** The refusals of the API name routes. */
const refusedAsText = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    const { code } = error.refusal;
    if (code === 'not_found') throw new CommandError(NOT_FOUND);
    if (code === 'own_account') throw new CommandError("this is the operator's own account");
    throw error;
  });

function finished(pending: Pending | undefined): void {
  if (pending)
    throw new CommandError(
      'The change is stored, but Redis does not answer. A running issuer applies it as soon as Redis answers.',
    );
}
