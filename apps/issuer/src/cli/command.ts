import { parseArgs } from 'node:util';
import { aligned } from '@presign/client/terminal';
import { invalidRequest } from '@presign/schema';
import type { z } from 'zod';

/** The input and output of a command. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** All of standard input. */
  readonly input: () => Promise<string>;
  /** The API key that `npx -y pnpm@12 start` wrote, if the command runs where it keeps its data. */
  readonly localKey: () => string | undefined;
  /** Writes a line of the result to standard output. */
  readonly out: (line: string) => void;
  /** Writes a line for a person to standard error. */
  readonly note: (line: string) => void;
};

/** An option. `value` names its value; without it the option is a flag. */
export type Option = { readonly value?: string; readonly about: string };

/** The options by name and the arguments in order, as typed. */
export type Given = {
  readonly text: (name: string) => string | undefined;
  readonly flag: (name: string) => boolean;
  readonly arguments: readonly string[];
};

export type Command = {
  /** As it is typed, such as `api-keys create`. */
  readonly name: string;
  readonly summary: string;
  /** More lines for `--help`. */
  readonly details?: readonly string[];
  /** Names of the arguments. All are required. */
  readonly arguments?: readonly string[];
  readonly options?: Readonly<Record<string, Option>>;
  readonly run: (given: Given, io: Io) => Promise<void>;
};

/** A command with wrong options or arguments: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A command that failed: one line for a person, exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/**
 * Reads the options and arguments after a command's name.
 * @returns undefined when `--help` is among them
 * @throws UsageError
 */
export function readGiven(command: Command, args: readonly string[]): Given | undefined {
  const options = Object.entries(command.options ?? {}).map(
    ([name, { value }]) => [name, { type: value === undefined ? 'boolean' : 'string' }] as const,
  );
  const parsed = parseOptions(
    [...args],
    Object.fromEntries([...options, ['help', { type: 'boolean', short: 'h' }]]),
  );
  const { values, positionals } = parsed;
  if (values.help === true) return undefined;
  const wanted = command.arguments ?? [];
  const missing = wanted[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing`);
  if (positionals.length > wanted.length) {
    throw new UsageError(`unexpected argument "${positionals[wanted.length]}"`);
  }
  return {
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    flag: (name) => values[name] === true,
    arguments: positionals,
  };
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

function parseOptions(args: string[], options: Options) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    // The first sentence names the option. The rest explains how to escape a dash.
    throw new UsageError((error as Error).message.split('. ')[0] ?? 'not understood');
  }
}

/**
 * Validates options as the API validates a body.
 * @throws UsageError that names the first wrong field
 */
export function readBody<S extends z.ZodType>(schema: S, body: object): z.output<S> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  throw new UsageError(invalidRequest(read.error).message ?? 'not understood');
}

/** The option as a number if it is a whole number. Other text is left for the schema to refuse. */
export function numberOf(given: Given, name: string): number | string | undefined {
  const text = given.text(name);
  return text !== undefined && /^-?\d{1,16}$/.test(text) ? Number(text) : text;
}

/**
 * Reads a secret from standard input, so that it appears neither in the shell's history nor in the list of processes.
 * @throws CommandError when standard input is empty
 */
export async function readSecret(io: Io): Promise<string> {
  const secret = (await io.input()).trim();
  if (secret === '') throw new CommandError("standard input is empty: the provider's key is read from there");
  return secret;
}

const PROGRAM = 'npx -y pnpm@12 presign';

/**
 * The help text that lists all commands.
 * @param asking commands that need no store, and their summaries
 */
export function overview(commands: readonly Command[], asking: readonly (readonly string[])[]): string {
  const lines = aligned([...asking, ...commands.map((command) => [usage(command), command.summary])]);
  const indented = lines.map((line) => `  ${line}`);
  return [
    `Usage: ${PROGRAM} COMMAND`,
    '',
    'Commands that ask an issuer over its API (ISSUER_URL, PRESIGN_API_KEY), and work while start runs:',
    '',
    ...indented.slice(0, asking.length),
    '',
    'Commands that work on the stores (DATABASE_URL, REDIS_URL and the other variables of the issuer):',
    '',
    ...indented.slice(asking.length),
    '',
    `${PROGRAM} COMMAND --help explains a command. Exit codes: 0 done, 1 failed, 2 wrong options or arguments.`,
    '',
  ].join('\n');
}

/** The help text of one command. */
export function help(command: Command): string {
  const options = Object.entries({ ...command.options, help: { about: 'this text' } }).map(
    ([name, option]) => [
      `--${name}${'value' in option && option.value ? ` ${option.value}` : ''}`,
      option.about,
    ],
  );
  return [
    `Usage: ${PROGRAM} ${usage(command)} [options]`,
    '',
    `${command.summary}.`,
    ...(command.details ?? []),
    '',
    ...aligned(options).map((line) => `  ${line}`),
    '',
  ].join('\n');
}

const usage = ({ name, arguments: names = [] }: Command) => [name, ...names].join(' ');
