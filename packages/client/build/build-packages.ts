import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const PACKAGES = join(import.meta.dirname, '../..');
const DIST = join(PACKAGES, 'client/dist');

/** Everything that the packages come from. */
const SOURCES = [
  '../LICENSE',
  ...['bin', 'build', 'generated', 'src', 'package.json', 'README.md'].map((name) => `client/${name}`),
  ...['src', 'archives.mjs', 'build.mjs', 'pyproject.toml', 'README.md'].map(
    (name) => `client-python/${name}`,
  ),
];

/**
 * Builds the packages of the clients for npm and pip, unless these sources are built already. Several processes may do so at once.
 * Resolves with their folder.
 */
export async function buildPackages(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of SOURCES.flatMap(filesOf)) hash.update(file).update(readFileSync(join(PACKAGES, file)));
  const dir = join(DIST, `packages-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(dir)) return dir;
  const made = join(DIST, `.${process.pid}`);
  // In a process of its own, so that a service in this one goes on answering.
  await promisify(execFile)(process.execPath, [join(PACKAGES, 'client/build/main.mjs'), made]);
  try {
    // All files appear at once.
    renameSync(made, dir);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(dir)) throw error;
  }
  return dir;
}

function filesOf(path: string): string[] {
  if (/\.\w+$|LICENSE$/.test(path)) return [path];
  return readdirSync(join(PACKAGES, path), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile() && !each.name.endsWith('.pyc'))
    .map((each) => join(each.parentPath.slice(PACKAGES.length + 1), each.name))
    .sort();
}
