import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Runs a program of this folder in a process of its own; resolves with the first line it prints. */
export async function runProgram(
  name: string,
  ...args: string[]
): Promise<{ child: ChildProcess; said: string }> {
  const program = fileURLToPath(new URL(name, import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await once(createInterface(child.stdout), 'line');
  return { child, said: String(said) };
}

/** Ends it as a crash would: without a chance to clean up. */
export async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
