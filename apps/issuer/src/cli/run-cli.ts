import { acceptKnowledge, storedKnowledge } from '@presign/providers/keep-knowledge';
import { acceptPrices, storedPrices } from '@presign/providers/keep-prices';
import { RefusedError, VariableError } from '@presign/schema';
import { explainStart } from '@presign/schema/start';
import { API_KEYS, VIRTUAL_KEYS } from './account-keys.ts';
import { ACCOUNTS } from './accounts.ts';
import {
  aligned,
  type Command,
  CommandError,
  help,
  type Io,
  overview,
  readGiven,
  UsageError,
} from './command.ts';
import { RESEAL } from './reseal.ts';
import { ENCRYPTION_KEYS, TOKEN_KEYS } from './service-keys.ts';
import { withDatabase } from './stores.ts';

/** `prices …`: the operator's price lists, and what waits for a yes. */
const PRICES: readonly Command[] = [
  {
    name: 'prices status',
    summary: 'Show the stored price lists, and large drops that wait for you',
    details: ['The bundled list and PROVIDERS_FILE are not stored, and are not shown.'],
    run: async (_given, io) => {
      const stored = await withDatabase(io, (db) => storedPrices(db, Date.now()));
      if (stored.length === 0) io.out('No list of PRICES_FILE or PRICES_URL has been read.');
      for (const { source, good, waiting } of stored) {
        io.out(`${source}: list ${good.id} of ${good.date} is in use`);
        if (!waiting) continue;
        io.out(`${source}: list ${waiting.id} of ${waiting.date} waits: the dearer price of the two counts`);
        const rows = waiting.drops.map(({ vendor, model, unit, from, to }) => [
          ...[vendor, model, unit],
          ...[String(from), String(to)],
        ]);
        for (const line of aligned([['PROVIDER', 'MODEL', 'UNIT', 'FROM', 'TO'], ...rows])) io.out(line);
      }
    },
  },
  {
    name: 'prices accept',
    summary: 'Accept a price list whose large drops wait; services use it with their next reading',
    arguments: ['LIST_ID'],
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      if (!(await withDatabase(io, (db) => acceptPrices(db, id)))) {
        throw new CommandError('LIST_ID: no list of this id waits; see prices status');
      }
      io.out(id);
    },
  },
];

/** `knowledge …`: the operator's knowledge file, and what waits for a yes. */
const KNOWLEDGE: readonly Command[] = [
  {
    name: 'knowledge status',
    summary: 'Show the stored knowledge file, and looser entries that wait for you',
    details: ['The lists of this version are not stored, and are not shown.'],
    run: async (_given, io) => {
      const stored = await withDatabase(io, storedKnowledge);
      if (stored.length === 0) io.out('No file of KNOWLEDGE_FILE or KNOWLEDGE_URL has been read.');
      for (const { source, good, waiting } of stored) {
        io.out(`${source}: file ${good.id} of ${good.date} is in use`);
        if (!waiting) continue;
        io.out(
          `${source}: file ${waiting.id} of ${waiting.date} waits: the stricter entry of the two counts`,
        );
        const rows = waiting.loosened.map(({ provider, entry }) => [provider, entry]);
        for (const line of aligned([['PROVIDER', 'ENTRY'], ...rows])) io.out(line);
      }
    },
  },
  {
    name: 'knowledge accept',
    summary: 'Accept a knowledge file whose looser entries wait; services use it with their next reading',
    arguments: ['FILE_ID'],
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      if (!(await withDatabase(io, (db) => acceptKnowledge(db, id)))) {
        throw new CommandError('FILE_ID: no file of this id waits; see knowledge status');
      }
      io.out(id);
    },
  },
];

const COMMANDS: readonly Command[] = [
  ...ACCOUNTS,
  ...API_KEYS,
  ...VIRTUAL_KEYS,
  ...TOKEN_KEYS,
  ...ENCRYPTION_KEYS,
  RESEAL,
  ...PRICES,
  ...KNOWLEDGE,
];

/** Runs `presign COMMAND`, by which an operator works on the stores directly. Returns the exit code. */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const [first = '--help'] = args;
  if (first === '--help' || first === '-h' || first === 'help') {
    io.out(overview(COMMANDS));
    return 0;
  }
  const command = COMMANDS.find(({ name }) => name.split(' ').every((word, i) => args[i] === word));
  if (!command) {
    io.note(`presign: there is no command "${args.join(' ').slice(0, 80)}"\n\n${overview(COMMANDS)}`);
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
