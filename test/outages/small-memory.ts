import { execFileSync, spawnSync } from 'node:child_process';

/** Whether this machine can limit the memory of a running process: Linux with util-linux. */
export const canStarve = spawnSync('prlimit', ['--version'], { stdio: 'ignore' }).status === 0;

/**
 * Less than a process has already. 0 would mean that only its hard limit counts (Linux, `may_expand_vm`), and a limit of
 * its address space would also end it where its stack grows.
 */
const NO_MORE_BYTES = 4_096;

/**
 * Gives processes, and those that they start, no more memory: each further allocation fails.
 * @param list the processes at this moment
 * @param owner their user, if this process has another one
 * @returns a function that lets those that run then have memory again
 */
export function starve(list: () => readonly number[], owner: Owner = undefined): () => void {
  for (const pid of list()) limit(pid, `${NO_MORE_BYTES}:`, owner);
  return () => {
    for (const pid of list()) limit(pid, 'unlimited:', owner);
  };
}

type Owner = { readonly uid: number; readonly gid: number } | undefined;

function limit(pid: number, soft: string, owner: Owner): void {
  try {
    execFileSync('prlimit', ['--pid', String(pid), `--data=${soft}`], {
      stdio: 'ignore',
      cwd: '/',
      ...owner,
    });
  } catch (error) {
    if (runs(pid)) throw error;
  }
}

/** Whether a process still runs. */
export function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
