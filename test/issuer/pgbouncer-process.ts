import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDatabase } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { serverUser } from './postgres-server.ts';

const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find(
  existsSync,
);

/** Whether this machine has the program. */
export const hasPgBouncer = PGBOUNCER !== undefined;

const GUIDE = readFileSync(new URL('../../docs/guides/run-it.md', import.meta.url), 'utf8');
/** The settings of PgBouncer that the guide has. */
const OF_THE_GUIDE = /\[pgbouncer\]\n([^`]*)```/.exec(GUIDE)?.[1] ?? '';

/** A PgBouncer of this test's own, which it may kill. */
export type PgBouncer = {
  readonly url: string;
  readonly port: number;
  readonly start: () => Promise<void>;
  /** kill -9. */
  readonly kill: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts PgBouncer in front of a server. It refuses to run as root. */
export async function startPgBouncer({ url: of }: { readonly url: string }): Promise<PgBouncer> {
  const { hostname, port: serverPort } = new URL(of);
  const folder = mkdtempSync(join(tmpdir(), 'presign-pgbouncer-'));
  const port = await freePort();
  const lines = [
    '[databases]',
    `postgres = host=${hostname} port=${serverPort} user=postgres`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any`,
    'default_pool_size = 3\nserver_round_robin = 1',
    OF_THE_GUIDE,
  ];
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const user = serverUser();
  for (const own of user ? [folder, file] : []) chownSync(own, user?.uid ?? 0, user?.gid ?? 0);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let child: ChildProcess | undefined;
  const start = async () => {
    child = spawn(PGBOUNCER ?? '', ['-q', file], { ...user, stdio: 'ignore' });
    const { db, close } = connectDatabase(url);
    await eventually(async () => (await db.execute(sql`select 1`).catch(() => undefined)) && true);
    await close();
  };
  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  await start();
  return {
    url,
    port,
    start,
    kill: () => end('SIGKILL'),
    stop: async () => {
      await end('SIGTERM');
      await removeFolder(folder);
    },
  };
}
