import { readVariable } from '@presign/schema';
import { migrateDatabase } from '@presign/schema/database';
import { runProcess } from '@presign/schema/start';

/** Brings the tables in Postgres up to date: a step of its own before issuers and gateways of a new version start. */
runProcess('migrate', undefined, async () => {
  await migrateDatabase(readVariable(process.env, 'DATABASE_URL'));
  process.stdout.write('The database is up to date.\n');
  return async () => {};
});
