import { execFileSync } from 'node:child_process';
import postgres from 'postgres';
import { eventually } from '../harness/eventually.ts';

/**
 * kill -9 of a server and of every process it has: none of them gets to write, say or recover anything. Backends lead
 * process groups of their own and outlive their postmaster until they notice, so they are found by their parent.
 */
export async function killPostgres(url: string): Promise<void> {
  const postmaster = await postmasterOf(url);
  // While it stands still it starts no more processes, and takes no child's death for a crash to recover from.
  process.kill(postmaster, 'SIGSTOP');
  const pids = [postmaster, ...childrenOf(postmaster)];
  for (const pid of pids) signalIfThere(pid, 'SIGKILL');
  await eventually(async () => {
    const alive = new Set(living().map(({ pid }) => pid));
    return pids.some((pid) => alive.has(pid)) ? undefined : true;
  });
}

/**
 * SIGSTOP to a server and every process it has: it answers nothing, and the system goes on to accept connections to it.
 * @returns what lets it go on
 */
export async function freezePostgres(url: string): Promise<() => void> {
  const postmaster = await postmasterOf(url);
  process.kill(postmaster, 'SIGSTOP');
  const pids = [...childrenOf(postmaster), postmaster];
  for (const pid of pids) signalIfThere(pid, 'SIGSTOP');
  return () => {
    for (const pid of pids) signalIfThere(pid, 'SIGCONT');
  };
}

/**
 * SIGKILL to one process of a server, as the system sends it when memory is full. The server then ends all of its
 * processes, recovers and serves on.
 */
export async function killBackend(url: string): Promise<void> {
  const client = postgres(url, { max: 1 });
  const [row] = await client`select pid from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1`;
  if (!row) throw new Error('no client is connected');
  process.kill(Number(row['pid']), 'SIGKILL');
  await client.end({ timeout: 0 });
}

/** A server's first process, by the first line of the lock file that it keeps in its data directory. */
export async function postmasterOf(url: string): Promise<number> {
  const client = postgres(url, { max: 1 });
  try {
    const [row] = await client`select split_part(pg_read_file('postmaster.pid'), chr(10), 1) as pid`;
    const pid = Number(row?.pid);
    if (!(pid > 1)) throw new Error('postmaster.pid names no process');
    return pid;
  } finally {
    await client.end({ timeout: 0 });
  }
}

/** The processes that a process has started and that still run. */
export const childrenOf = (parent: number): number[] =>
  living().flatMap((each) => (each.parent === parent ? [each.pid] : []));

/** All processes of this machine but those that are dead and only not yet reaped. */
function living(): { readonly pid: number; readonly parent: number }[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , state]) => !state?.startsWith('Z'))
    .map(([pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }));
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // A backend may have ended of itself since it was listed.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
