import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

const children: ChildProcess[] = [];
const folders: string[] = [];
// Whatever happens, no process and no file outlives this one. Parents get SIGTERM, so that nginx and Postgres end their children.
process.on('exit', () => {
  for (const child of children) {
    const isParent = child.pid !== undefined && childrenOf(child.pid).length > 0;
    child.kill(isParent ? 'SIGTERM' : 'SIGKILL');
    // A stopped process takes SIGTERM when it goes on.
    child.kill('SIGCONT');
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** A folder for this run. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), name));
  folders.push(folder);
  return folder;
}

/** The checkout whose apps run: `CHECKOUT`, for figures of another commit, or this one. */
export const CHECKOUT = process.env.CHECKOUT
  ? pathToFileURL(join(resolve(process.env.CHECKOUT), '/'))
  : new URL('../', import.meta.url);

/** Builds an app as its container does; Node's arguments that run it, and its environment. From its sources it would be slower. */
export function built(app: 'gateway' | 'issuer'): { args: string[]; env: Record<string, string> } {
  const folder = fileURLToPath(new URL(`apps/${app}`, CHECKOUT));
  const bundle = fileURLToPath(new URL('infra/docker/bundle.mjs', CHECKOUT));
  execFileSync(process.execPath, [bundle], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const dockerfile = readFileSync(new URL(`infra/docker/${app}.Dockerfile`, CHECKOUT), 'utf8');
  const [node, ...args] = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
  if (node !== 'node') throw new Error(`${app}.Dockerfile does not say how it runs`);
  const ran = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
  const env = [...ran.matchAll(/^ENV (.*)$/gm)].flatMap(([, line = '']) => line.split(' '));
  return {
    args: args.map((arg) => arg.replace('dist/', `${folder}/dist/`)),
    env: Object.fromEntries(env.map((each) => each.split('=', 2) as [string, string])),
  };
}

/** The arguments of a container's Node for another one, which may lack some flags of V8. */
export function knownTo(node: string, args: readonly string[]): string[] {
  const flags = execFileSync(node, ['--v8-options'], { encoding: 'utf8' });
  const isKnown = (arg: string) => flags.includes(` ${(arg.split('=')[0] ?? '').replace('--no-', '--')} `);
  return args.filter((arg) => !arg.startsWith('--') || isKnown(arg));
}

/** How a program runs: on which cores (a list of taskset), as which user, and where its log goes. */
export type Running = Pick<SpawnOptions, 'uid' | 'gid' | 'cwd'> & {
  readonly cores?: string | undefined;
  /** A file descriptor. By default the log is thrown away. */
  readonly log?: number;
};

/** Starts a program; returns its process id. */
export function run(
  command: string,
  args: string[],
  env: Record<string, string | undefined> = {},
  { cores, log = -1, ...options }: Running = {},
): number {
  const [program = command, ...rest] = cores === undefined ? [command] : ['taskset', '-c', cores, command];
  const child = spawn(program, [...rest, ...args], {
    ...options,
    stdio: ['ignore', log < 0 ? 'ignore' : log, 'inherit'],
    env: { PATH: process.env.PATH, ...env },
  });
  children.push(child);
  if (child.pid === undefined) throw new Error(`${command} did not start`);
  return child.pid;
}

/** Resolves when something listens on a port of this machine. */
export async function listening(port: number, seconds = 10): Promise<void> {
  for (let tries = 0; tries < 20 * seconds; tries++) {
    const socket = connect(port, '127.0.0.1');
    const ready = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'close')]).catch(
      () => 0,
    );
    socket.destroy();
    if (ready === true) return;
    await sleep(50);
  }
  throw new Error(`nothing listens on ${port}`);
}

/** User and system time of a process with all its threads, by proc_pid_stat(5): clock ticks of 10 ms. */
export function cpuMicros(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** The memory of a process that is in RAM, in MB. */
export function rssOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** The processes that a process started, without theirs. */
export function childrenOf(pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'));
    return lists.flatMap((list) => list.trim().split(' ').filter(Boolean).map(Number));
  } catch {
    return [];
  }
}
