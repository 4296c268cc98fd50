import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../harness/eventually.ts';

/** A control group of Linux with a memory limit, as a container has one. */
export type Container = {
  /** Moves a process into it. Memory that it has already is not counted. */
  readonly take: (pid: number) => void;
  /** How many processes the system has killed in it for their memory. */
  readonly kills: () => number;
  readonly remove: () => Promise<void>;
};

/** How the two versions of control groups name their files (Linux, admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst). */
type Version = { readonly parent: string; readonly limit: string; readonly events: string };

/** Makes a container. @throws where this process may make none */
export function makeContainer(bytes: number): Container {
  const { parent, limit, events } = findVersion();
  const folder = join(parent, `presign-test-${process.pid}-${made++}`);
  mkdirSync(folder);
  writeFileSync(join(folder, limit), String(bytes));
  return {
    take: (pid) => writeFileSync(join(folder, 'cgroup.procs'), String(pid)),
    kills: () => Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(folder, events), 'utf8'))?.[1]),
    // A process that was killed leaves it a moment later.
    remove: async () => {
      await eventually(async () => {
        try {
          rmdirSync(folder);
          return true;
        } catch {
          return false;
        }
      });
    },
  };
}
let made = 0;

function findVersion(): Version {
  const own = readFileSync('/proc/self/cgroup', 'utf8');
  const [, path] = /^\d+:(?:[\w,]+,)?memory(?:,[\w,]+)?:(.*)$/m.exec(own) ?? [];
  if (path !== undefined)
    return {
      parent: join('/sys/fs/cgroup/memory', path),
      limit: 'memory.limit_in_bytes',
      events: 'memory.oom_control',
    };
  // Only the root may have processes and limited groups at once.
  return { parent: '/sys/fs/cgroup', limit: 'memory.max', events: 'memory.events' };
}

/** Whether this process may make containers: root on Linux. */
export const canContain = (() => {
  try {
    const { parent, limit } = findVersion();
    const folder = join(parent, `presign-test-${process.pid}`);
    mkdirSync(folder);
    const hasLimit = existsSync(join(folder, limit));
    rmdirSync(folder);
    return hasLimit;
  } catch {
    return false;
  }
})();
