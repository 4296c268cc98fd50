import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const children: ChildProcess[] = [];
// Whatever happens, no process outlives this one.
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** Builds an app as its container does; Node's arguments that run it, and its environment. From its sources it would be slower. */
export function built(app: 'gateway' | 'issuer'): { args: string[]; env: Record<string, string> } {
  const folder = fileURLToPath(new URL(`../apps/${app}`, import.meta.url));
  const bundle = fileURLToPath(new URL('../infra/docker/bundle.mjs', import.meta.url));
  execFileSync(process.execPath, [bundle], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const dockerfile = readFileSync(new URL(`../infra/docker/${app}.Dockerfile`, import.meta.url), 'utf8');
  const [node, ...args] = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
  if (node !== 'node') throw new Error(`${app}.Dockerfile does not say how it runs`);
  const ran = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
  const env = [...ran.matchAll(/^ENV (.*)$/gm)].flatMap(([, line = '']) => line.split(' '));
  return {
    args: args.map((arg) => arg.replace('dist/', `${folder}/dist/`)),
    env: Object.fromEntries(env.map((each) => each.split('=', 2) as [string, string])),
  };
}

/** Starts a program; tells its process id. */
export function run(
  command: string,
  args: string[],
  env: Record<string, string | undefined> = {},
): number | undefined {
  const environment = { PATH: process.env.PATH, ...env };
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env: environment });
  children.push(child);
  return child.pid;
}

/** Resolves when something listens on a port of this machine. */
export async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
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

/** User and system time of a process, by proc_pid_stat(5): clock ticks of 10 ms. */
export function cpuMicros(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
