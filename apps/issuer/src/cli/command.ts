import { parseArgs } from 'node:util';

/** What a command reads and writes. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** All of standard input. */
  readonly input: () => Promise<string>;
  /** A line of standard output: what was asked for, and nothing else. */
  readonly out: (line: string) => void;
  /** A line of standard error: what a person should know besides. */
  readonly note: (line: string) => void;
};

/** An option with a value has the name of it; one without is a flag. */
export type Option = { readonly value?: string; readonly about: string };

/** What was given: options by name, arguments in their order. */
export type Given = {
  readonly text: (name: string) => string | undefined;
  readonly flag: (name: string) => boolean;
  readonly arguments: readonly string[];
};

export type Command = {
  /** As it is typed, such as `api-keys create`. */
  readonly name: string;
  readonly summary: string;
  /** Further lines for `--help`. */
  readonly details?: readonly string[];
  /** Names of the arguments, all of which must be given. */
  readonly arguments?: readonly string[];
  readonly options?: Readonly<Record<string, Option>>;
  readonly run: (given: Given, io: Io) => Promise<void>;
};

/** A command that was not typed as it must be: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A command that cannot be done: one line for a person, exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/**
 * Reads what follows a command's name; undefined when `--help` is among it.
 * @throws UsageError
 */
export function readGiven(command: Command, args: readonly string[]): Given | undefined {
  const options = Object.entries(command.options ?? {}).map(
    ([name, { value }]) => [name, { type: value === undefined ? 'boolean' : 'string' }] as const,
  );
  const parsed = parse(
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

function parse(args: string[], options: Options) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    // Its first sentence names the option; the rest tells how to escape a dash.
    throw new UsageError((error as Error).message.split('. ')[0] ?? 'not understood');
  }
}
