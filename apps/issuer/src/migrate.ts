import { readVariable } from '@presign/service';
import { migrateDatabase } from '@presign/service/database';
import { runProcess } from '@presign/service/start';

/** Brings the tables in Postgres up to date: a separate step before issuers and gateways of a new version start. */
runProcess('migrate', undefined, async () => {
  await migrateDatabase(readVariable(process.env, 'DATABASE_URL'));
  process.stdout.write('The database is up to date.\n');
  return async () => {};
});
