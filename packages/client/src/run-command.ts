import { GIVE_HELP, give } from './give.ts';
import { AuthenticationError, PresignError } from './presign-error.ts';
import { READS, readHelp, runRead } from './read-commands.ts';
import { CommandError, type Io, issuerUrl, UsageError } from './terminal.ts';

/** The commands that ask an issuer, as they are typed, and what they do. */
export const ASKING: readonly (readonly [usage: string, summary: string])[] = [
  ['give DOLLARS --for TOOL', 'Issue a URL, and print the settings of the tool that will call it'],
  ...Array.from(READS, ([name, { summary }]) => [name, summary] as const),
];

const HELP = `Usage: presign COMMAND

${ASKING.map(([usage, summary]) => `  ${usage.padEnd(25)}${summary}`).join('\n')}

presign COMMAND --help explains a command. Variables: ISSUER_URL (default http://127.0.0.1:8787), and
PRESIGN_API_KEY (default the key in .presign, for an issuer on this machine). Exit codes: 0 done, 1 failed,
2 not understood.`;

/** Whether a command asks an issuer. */
export const isAsking = (name: string): boolean => name === 'give' || READS.has(name);

/**
 * Runs `presign COMMAND`, which asks an issuer.
 * @returns the exit code: 0 done, 1 failed, 2 not understood
 */
export async function runCommand(args: readonly string[], io: Io): Promise<number> {
  const [command, ...rest] = args;
  if (command === undefined || command === '--help' || command === '-h') {
    io.out(HELP);
    return command === undefined ? 2 : 0;
  }
  try {
    await run(command, rest, io);
    return 0;
  } catch (error) {
    io.note(`presign: ${explain(error, io)}`);
    if (!(error instanceof UsageError)) return 1;
    io.note(isAsking(command) ? `See presign ${command} --help.` : 'See presign --help.');
    return 2;
  }
}

async function run(command: string, args: readonly string[], io: Io): Promise<void> {
  const read = READS.get(command);
  if (!read && command !== 'give') throw new UsageError(`there is no command "${command.slice(0, 40)}"`);
  if (args.includes('--help') || args.includes('-h')) io.out(read ? readHelp(command, read) : GIVE_HELP);
  else if (read) await runRead(read, args, io);
  else await give(args, io);
}

function explain(error: unknown, { env }: Io): string {
  if (error instanceof AuthenticationError) {
    const { origin } = new URL(issuerUrl(env));
    return `${origin} does not know this API key. ISSUER_URL is the issuer that is asked, and PRESIGN_API_KEY its key.`;
  }
  const known = [UsageError, CommandError, PresignError, TypeError].some((kind) => error instanceof kind);
  return known ? (error as Error).message : 'failed';
}
