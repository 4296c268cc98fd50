import { ASKING, isAsking, runCommand as runAsking } from '@presign/client/command';
import { aligned } from '@presign/client/terminal';
import { KNOWLEDGE } from '@presign/providers/keep-knowledge';
import { acceptList, type ListKind, storedLists } from '@presign/providers/keep-list';
import { PRICES } from '@presign/providers/keep-prices';
import type { Listed } from '@presign/providers/listed';
import { RefusedError } from '@presign/schema';
import { VariableError } from '@presign/service';
import { explainStart } from '@presign/service/start';
import { API_KEYS, VIRTUAL_KEYS } from './account-keys.ts';
import { ACCOUNTS } from './accounts.ts';
import { type Command, CommandError, help, type Io, overview, readGiven, UsageError } from './command.ts';
import { DOCTOR } from './doctor.ts';
import { RESEAL } from './reseal.ts';
import { ENCRYPTION_KEYS, TOKEN_KEYS } from './service-keys.ts';
import { withDatabase } from './stores.ts';

/** `… status` and `… accept`: the lists that an operator keeps current, and what waits for a yes. */
function listCommands<T extends Listed, L>(
  name: 'prices' | 'knowledge',
  kind: ListKind<T, L>,
  { list, waits, details, head, row }: ListWords<L>,
): readonly Command[] {
  const variable = name.toUpperCase();
  return [
    {
      name: `${name} status`,
      summary: `Show the stored ${list}s, and ${waits} that wait for you`,
      details: [details],
      run: async (_given, io) => {
        const stored = await withDatabase(io, (db) => storedLists(kind, db, Date.now()));
        if (stored.length === 0) io.out(`No ${list} of ${variable}_FILE or ${variable}_URL has been read.`);
        for (const { source, good, waiting } of stored) {
          io.out(`${source}: ${list} ${good.id} of ${good.date} is in use`);
          if (!waiting) continue;
          io.out(
            `${source}: ${list} ${waiting.id} of ${waiting.date} waits: the dearer entry of the two counts`,
          );
          for (const line of aligned([head, ...waiting.loosened.map(row)])) io.out(line);
        }
      },
    },
    {
      name: `${name} accept`,
      summary: `Accept a ${list} whose ${waits} wait; services use it with their next reading`,
      arguments: ['ID'],
      run: async (given, io) => {
        const [id = ''] = given.arguments;
        if (!(await withDatabase(io, (db) => acceptList(kind, db, id))))
          throw new CommandError(`ID: no ${list} of this id waits; see ${name} status`);
        io.out(id);
      },
    },
  ];
}

/** The words of a kind of lists, and how an entry that waits is shown. */
type ListWords<L> = {
  readonly list: string;
  readonly waits: string;
  readonly details: string;
  readonly head: readonly string[];
  readonly row: (entry: L) => readonly string[];
};

const LISTS: readonly Command[] = [
  ...listCommands('prices', PRICES, {
    list: 'price list',
    waits: 'large drops',
    details: 'The bundled list and PROVIDERS_FILE are not stored, and are not shown.',
    head: ['PROVIDER', 'MODEL', 'UNIT', 'FROM', 'TO'],
    row: ({ vendor, model, unit, from, to }) => [vendor, model, unit, String(from), String(to)],
  }),
  ...listCommands('knowledge', KNOWLEDGE, {
    list: 'knowledge file',
    waits: 'looser entries',
    details: 'The lists of this version are not stored, and are not shown.',
    head: ['PROVIDER', 'ENTRY'],
    row: ({ provider, entry }) => [provider, entry],
  }),
];

const COMMANDS: readonly Command[] = [
  ...ACCOUNTS,
  ...API_KEYS,
  ...VIRTUAL_KEYS,
  ...TOKEN_KEYS,
  ...ENCRYPTION_KEYS,
  RESEAL,
  ...LISTS,
  DOCTOR,
];

/** Runs `presign COMMAND`, which asks an issuer, or works on the stores directly as its operator. Returns the exit code. */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const [first = '--help'] = args;
  if (first === '--help' || first === '-h' || first === 'help') {
    io.out(overview(COMMANDS, ASKING));
    return 0;
  }
  if (isAsking(first)) return runAsking(args, io);
  const command = COMMANDS.find(({ name }) => name.split(' ').every((word, i) => args[i] === word));
  if (!command) {
    io.note(`presign: there is no command "${args.join(' ').slice(0, 80)}"\n\n${overview(COMMANDS, ASKING)}`);
    return 2;
  }
  return runCommand(command, args.slice(command.name.split(' ').length), io);
}

async function runCommand(command: Command, args: readonly string[], io: Io): Promise<number> {
  try {
    const given = readGiven(command, args);
    if (given) await command.run(given, io);
    else io.out(help(command));
    return 0;
  } catch (error) {
    io.note(`presign ${command.name}: ${explain(error)}`);
    if (!(error instanceof UsageError)) return 1;
    io.note(`See presign ${command.name} --help.`);
    return 2;
  }
}

/** Why a command failed, in one line. An error of Postgres shows only its code, because its text may quote anything. */
function explain(error: unknown): string {
  if (error instanceof RefusedError) return error.message;
  if (error instanceof UsageError || error instanceof CommandError) return error.message;
  return error instanceof VariableError ? error.message : explainStart(error, () => 'ISSUER_PORT');
}
