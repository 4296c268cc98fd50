import { readVariable } from '@presign/schema';
import { migrateDatabase } from '@presign/schema/database';

/** Brings the tables in Postgres up to date: a step of its own before issuers and gateways of a new version start. */
migrateDatabase(readVariable(process.env, 'DATABASE_URL')).then(
  () => process.stdout.write('The database is up to date.\n'),
  (error: unknown) => {
    process.stderr.write(`presign migrate: ${error instanceof Error ? error.message : 'failed'}\n`);
    process.exit(1);
  },
);
