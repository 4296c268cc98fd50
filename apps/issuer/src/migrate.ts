import { readVariable } from '@presign/schema';
import { migrateDatabase } from '@presign/schema/database';
import { explainStart } from './explain-start.ts';

/** Brings the tables in Postgres up to date: a step of its own before issuers and gateways of a new version start. */
async function main(): Promise<void> {
  await migrateDatabase(readVariable(process.env, 'DATABASE_URL'));
  process.stdout.write('The database is up to date.\n');
}

main().catch((error: unknown) => {
  process.stderr.write(`presign migrate: ${explainStart(error)}\n`);
  process.exit(1);
});
