import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildPackages } from '@presign/client/build';

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));

/** Runs a program in TypeScript as `npx -y tsx` does, where the folder has no tsx. */
export const TSX: readonly string[] = [
  '--import',
  pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href,
];

/**
 * A fresh folder outside of the repository, in which npm has installed the client's package as the issuer serves it.
 * @param others further packages, which a reader has from the registry
 */
export async function makeReaderFolder(others: readonly string[] = []): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-reader-'));
  const packages = await buildPackages();
  const archive = readdirSync(packages).find((name) => name.endsWith('.tgz') && !name.includes('_')) ?? '';
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--offline', join(packages, archive)], {
    cwd: folder,
    stdio: 'pipe',
  });
  for (const name of others) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(MODULES, name), link);
  }
  return folder;
}
