import { problemOf } from '@presign/schema';
import { isDatabaseOutage, sqlState } from '@presign/schema/database';

/** Why a start failed, in one line for the operator; quotes nothing that was sent to Postgres. */
export function explainStart(error: unknown): string {
  if (!(error instanceof Error)) return 'failed to start';
  if ('code' in error && error.code === 'EADDRINUSE' && 'port' in error) {
    return `ISSUER_PORT: port ${error.port} is taken`;
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
