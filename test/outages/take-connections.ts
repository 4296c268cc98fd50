import postgres from 'postgres';
import { eventually } from '../harness/eventually.ts';

/** too_many_connections (PostgreSQL manual, appendix A). */
const TOO_MANY = '53300';

/** Takes every connection that a server has, those of others too. @returns a function that gives them back */
export async function takeConnections(url: string): Promise<() => Promise<void>> {
  const clients: postgres.Sql[] = [];
  const pids: number[] = [];
  const take = async (): Promise<boolean> => {
    const client = postgres(url, { max: 1, onnotice: () => {} });
    try {
      const [row] = await client`select pg_backend_pid() as pid`;
      clients.push(client);
      return pids.push(Number(row?.['pid'])) > 0;
    } catch (error) {
      await client.end({ timeout: 0 });
      if (error instanceof Error && 'code' in error && error.code === TOO_MANY) return false;
      throw error;
    }
  };
  await eventually(async () => {
    while (await take());
    const [own] = clients;
    if (!own) throw new Error('no connection was free');
    const others = await own`select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and not pid = any(${pids})`;
    return others.length === 0;
  });
  return async () => {
    await Promise.all(clients.map((client) => client.end({ timeout: 0 })));
  };
}
