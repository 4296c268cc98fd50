import { createPresign } from './create-presign.ts';
import type { Presign } from './methods.ts';

/** The input and output of the command `presign`. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The API key that `npx -y pnpm@12 start` wrote into the folder of its data, if the command runs there. */
  readonly localKey: () => string | undefined;
  /** Writes a line of the result to standard output. */
  readonly out: (line: string) => void;
  /** Writes a line for a person to standard error. */
  readonly note: (line: string) => void;
};

/** A command with wrong options: exit code 2. */
export class UsageError extends Error {}

/** A command that failed: one line for a person, exit code 1. */
export class CommandError extends Error {}

/**
 * The client of a command.
 * @param scope that the command needs
 * @throws CommandError if no API key is known
 */
export function connect({ env, localKey }: Io, scope: 'presign' | 'read'): Presign {
  const url = issuerUrl(env);
  // The key of a start on this machine is sent to no other machine.
  const apiKey = env.PRESIGN_API_KEY || (isHere(url) ? localKey() : undefined);
  if (apiKey) return createPresign({ url, apiKey });
  throw new CommandError(
    `PRESIGN_API_KEY is not set. Set it to an API key with the scope ${scope}, or run the command in the folder where start keeps .presign.`,
  );
}

/** The issuer that commands ask. */
export const issuerUrl = (env: Io['env']): string => env.ISSUER_URL || 'http://127.0.0.1:8787';

const isHere = (url: string): boolean =>
  URL.canParse(url) && ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname);

type Program = {
  readonly stdout: { on(event: 'error', listener: (error: Error & { code?: string }) => void): unknown };
  exit(): void;
};

/** Ends a program without a message when the reader of its output, such as `head`, has read enough. */
export function endWithReader(program: Program): void {
  program.stdout.on('error', (error) => {
    if (error.code !== 'EPIPE') throw error;
    program.exit();
  });
}

/** A line of each row, with columns as wide as their widest cell. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
