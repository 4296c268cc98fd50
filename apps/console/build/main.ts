import { cpSync, rmSync } from 'node:fs';
import { buildConsole } from './build-console.ts';

/** `pnpm --filter @presign/console build [FOLDER]`: builds, and copies the files into the folder if there is one. */
const built = await buildConsole();
const folder = process.argv[2];
if (folder !== undefined) {
  rmSync(folder, { recursive: true, force: true });
  cpSync(built, folder, { recursive: true });
}
process.stdout.write(`${folder ?? built}\n`);
