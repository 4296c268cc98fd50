import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';

/** A Postgres server of this test's own, which it may stop. */
export type PostgresServer = {
  readonly url: string;
  readonly start: () => Promise<void>;
  /** SIGINT: asks all sessions to end ("fast"); SIGQUIT: ends at once and recovers at the next start. */
  readonly stop: (signal?: 'SIGINT' | 'SIGQUIT') => Promise<void>;
  /** Makes it a standby from its next start on. */
  readonly demote: () => void;
  readonly remove: () => Promise<void>;
};

/** `TEST_POSTGRES_BIN`, or where Debian and others put what no PATH has. */
export const POSTGRES_BIN =
  process.env.TEST_POSTGRES_BIN ??
  ['/usr/lib/postgresql', '/usr/local/pgsql', '/opt/homebrew/opt']
    .filter(existsSync)
    .flatMap((root) => ['.', ...readdirSync(root)].map((version) => join(root, version, 'bin')))
    .find((bin) => existsSync(join(bin, 'initdb')));

/** Whether this machine has the programs of a Postgres server. */
export const hasPostgres = POSTGRES_BIN !== undefined;

type Made = {
  /** A folder for its data, such as that of a small disk. */
  readonly parent?: string | undefined;
  /** Its write-ahead log is in another folder: without room for the log, Postgres does not refuse writes, but ends. */
  readonly logElsewhere?: boolean;
  /** The server that it is a standby of. */
  readonly primary?: PostgresServer;
  readonly env?: Readonly<Record<string, string>>;
};

/** Makes a server in a folder of its own, and starts it. */
export async function makePostgres({
  parent = tmpdir(),
  logElsewhere = false,
  primary,
  env = {},
}: Made = {}): Promise<PostgresServer> {
  const bin = POSTGRES_BIN ?? '';
  const user = serverUser();
  const folder = mkdtempSync(join(parent, 'presign-postgres-'));
  if (user) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const log = logElsewhere ? mkdtempSync(join(tmpdir(), 'presign-postgres-log-')) : undefined;
  if (log && user) chownSync(log, user.uid, user.gid);
  const quiet = { ...user, cwd: folder, stdio: 'ignore' as const };
  if (primary) {
    execFileSync(
      join(bin, 'pg_basebackup'),
      ['-D', data, '-d', primary.url, '-R', '-c', 'fast', '-N'],
      quiet,
    );
  } else {
    // Small segments of the log, so that a small disk has room for some.
    const as = ['-A', 'trust', '-U', 'postgres', '--no-sync', '--wal-segsize=1'];
    const logAt = log === undefined ? [] : [`--waldir=${log}`];
    execFileSync(join(bin, 'initdb'), ['-D', data, ...as, ...logAt], quiet);
  }
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let server: ChildProcess | undefined;

  const start = async () => {
    const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
    const args = ['-D', data, '-p', String(port), ...settings.flatMap((each) => ['-c', each])];
    server = spawn(join(bin, 'postgres'), args, { ...quiet, env: { ...process.env, ...env } });
    await eventually(() => answers(url));
  };
  const stop = async (signal: NodeJS.Signals = 'SIGINT') => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
  };
  const remove = async () => {
    await stop('SIGQUIT');
    await removeFolder(folder);
    if (log) await removeFolder(log);
  };
  const demote = () => writeFileSync(join(data, 'standby.signal'), '');
  await start();
  return { url, start, stop, demote, remove };
}

/** Whom Postgres and PgBouncer run as if this process is root, as whom they refuse to run. */
export function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function answers(url: string): Promise<true | undefined> {
  const client = postgres(url, { max: 1, connect_timeout: 2 });
  try {
    await client`select 1`;
    return true;
  } catch {
    return undefined;
  } finally {
    await client.end({ timeout: 0 });
  }
}
