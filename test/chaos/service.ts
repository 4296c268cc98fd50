import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { run } from '../issuer/issuer-process.ts';

/** A service in a process of its own, which comes back at the same address. */
export type Service = {
  readonly start: () => Promise<void>;
  /** kill -9: nothing is settled, nothing is said. */
  readonly kill: () => Promise<void>;
  /** Its process now. @throws before the first start */
  readonly process: () => ChildProcess;
};

/** @param main the entry point of the service, which is to listen on `port` */
export function serviceOf(
  main: readonly string[],
  env: Readonly<Record<string, string>>,
  port: number,
): Service {
  let child: ChildProcess | undefined;
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const start = async () => {
    // Its log is silent, so that it is ready is seen from outside.
    child = run(main, env);
    child.stdout?.resume();
    await answers(`http://127.0.0.1:${port}/healthz`, child);
  };
  const process = () => {
    if (!child) throw new Error('the service was not started');
    return child;
  };
  return { start, kill, process };
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`a service ended with ${child.exitCode}`);
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
