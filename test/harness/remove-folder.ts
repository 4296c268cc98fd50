import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const TRIES = 100;
const PAUSE_MS = 100;

/** Removes a folder in which children of a program that has ended may still write: Redis rewrites its log in one, agents start some. */
export async function removeFolder(folder: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (tries === TRIES || (error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
      await sleep(PAUSE_MS);
    }
  }
}
