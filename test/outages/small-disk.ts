import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk that can be full while others have room. */
export type SmallDisk = {
  readonly folder: string;
  /** Takes all room that is left. */
  readonly fill: () => void;
  readonly free: () => void;
  readonly remove: () => void;
};

/** Makes a disk in memory of so many megabytes. @throws when this process may not mount */
export function makeSmallDisk(megabytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'presign-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'ignore' });
  // Postgres runs as another user.
  chmodSync(folder, 0o777);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill: () => {
      const file = openSync(ballast, 'a');
      const page = Buffer.alloc(4096);
      try {
        for (;;) writeSync(file, page);
      } catch {
        // There is no room any more.
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    remove: () => {
      execFileSync('umount', ['--lazy', folder], { stdio: 'ignore' });
      rmSync(folder, { recursive: true });
    },
  };
}

/** Whether this process may mount disks: root on Linux. */
export const canMount = (() => {
  try {
    makeSmallDisk(1).remove();
    return true;
  } catch {
    return false;
  }
})();
