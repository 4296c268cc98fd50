import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';

/** A Redis of this run's own, with an append-only file, which may be killed. */
export type RedisServer = {
  readonly port: number;
  readonly start: () => Promise<void>;
  /** kill -9. */
  readonly kill: () => Promise<void>;
  /** SIGSTOP: it answers nothing, and the system goes on to accept connections to it. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  readonly command: (...words: string[]) => Promise<unknown>;
  readonly remove: () => Promise<void>;
};

/** Whether this machine has the program. */
export const hasRedisServer = (() => {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** @param settings as on its command line: `--appendfsync always` */
export const makeRedis = (...settings: string[]): Promise<RedisServer> => makeRedisIn({}, ...settings);

/** As `makeRedis`, with more variables in its environment. */
export async function makeRedisIn(
  env: Readonly<Record<string, string>>,
  ...settings: string[]
): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-redis-'));
  const port = await freePort();
  const where = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const args = [...where, '--appendonly', 'yes', '--maxmemory-policy', 'noeviction', ...settings];
  let server: ChildProcess | undefined;
  const command = async (...words: string[]) => {
    const client = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => {});
    try {
      await client.connect();
      return await client.call(words[0] ?? '', ...words.slice(1));
    } finally {
      client.disconnect();
    }
  };
  const start = async () => {
    server = spawn('redis-server', args, { stdio: 'ignore', env: { ...process.env, ...env } });
    await eventually(() =>
      command('PING').then(
        () => true,
        () => undefined,
      ),
    );
  };
  const kill = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
  };
  await start();
  return {
    port,
    start,
    kill,
    freeze: () => void server?.kill('SIGSTOP'),
    thaw: () => void server?.kill('SIGCONT'),
    command,
    remove: async () => {
      await kill();
      await removeFolder(folder);
    },
  };
}
