import type { Command } from './command.ts';

const PROGRAM = 'pnpm presign';

/** All commands, a line each. */
export function overview(commands: readonly Command[]): string {
  const lines = aligned(commands.map((command) => [usage(command), command.summary]));
  return [
    `Usage: ${PROGRAM} COMMAND`,
    '',
    ...lines.map((line) => `  ${line}`),
    '',
    `${PROGRAM} COMMAND --help tells more. Commands work on DATABASE_URL and REDIS_URL, with the variables that issuer and`,
    'gateway have. Exit codes: 0 done, 1 not done, 2 not understood.',
    '',
  ].join('\n');
}

/** One command: its options and what to know of it. */
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

/** Rows of cells as lines, each column as wide as its widest cell. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const usage = ({ name, arguments: names = [] }: Command) => [name, ...names].join(' ');
