import { hasPostgres, makePostgres } from './postgres-server.ts';

/** Whether stacks can have a Postgres that is reached by an address. */
export const canReachDatabase = hasPostgres || !!process.env.TEST_DATABASE_URL;

/**
 * Gives the stacks that are started after it a Postgres that is reached by an address, as commands and other
 * processes need it: the server of the environment, or one of their own.
 * @returns takes it away again
 */
export async function reachableDatabase(): Promise<() => Promise<void>> {
  if (process.env.TEST_DATABASE_URL) return async () => {};
  const own = await makePostgres();
  process.env.TEST_DATABASE_URL = own.url;
  return async () => {
    delete process.env.TEST_DATABASE_URL;
    await own.remove();
  };
}
