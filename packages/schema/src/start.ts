import { problemOf } from './await-store.ts';
import { isDatabaseOutage, sqlState } from './database.ts';

/** Ends the process with exit code 1 and one line for the operator. */
type Fail = (error: unknown) => never;

/**
 * Runs a process. A start that fails ends it with one line.
 * @param portVariable names the variable to change when this port is taken
 * @param start returns what SIGTERM and SIGINT call
 */
export function runProcess(
  name: string,
  portVariable: (port: number) => string,
  start: (fail: Fail) => Promise<() => Promise<void>>,
): void {
  const fail: Fail = (error) => {
    process.stderr.write(`presign ${name}: ${explainStart(error, portVariable)}\n`);
    process.exit(1);
  };
  const run = async () => {
    const stop = await start(fail);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop().catch(fail));
  };
  run().catch(fail);
}

/** Why a start failed, in one line for the operator. It quotes nothing that was sent to Postgres. */
export function explainStart(error: unknown, portVariable: (port: number) => string): string {
  if (!(error instanceof Error)) return 'failed to start';
  if ('code' in error && error.code === 'EADDRINUSE' && 'port' in error) {
    const port = Number(error.port);
    return `${portVariable(port)}: port ${port} is taken. Stop what listens there, or set another port`;
  }
  const state = sqlState(error);
  const code = state === undefined ? '' : ` (${state})`;
  if (isDatabaseOutage(error)) return `DATABASE_URL: Postgres does not answer${code}`;
  if (state === UNDEFINED_TABLE) {
    return 'DATABASE_URL: the tables are missing: run "pnpm --filter @presign/issuer migrate" first';
  }
  return state === undefined ? error.message : `DATABASE_URL: Postgres ${problemOf(error)}${code}`;
}

/** PostgreSQL manual, appendix A. */
const UNDEFINED_TABLE = '42P01';
