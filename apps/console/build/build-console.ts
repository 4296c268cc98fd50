import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const APP = join(import.meta.dirname, '..');
const ROOT = join(APP, '../..');
const DIST = join(APP, 'dist');

/** Everything that the built files come from. */
const SOURCES = [
  ...['build', 'src', 'public', 'index.html', 'vite.config.ts', 'package.json'].map((name) =>
    join(APP, name),
  ),
  ...['src', 'generated', 'package.json'].map((name) => join(ROOT, 'packages/client', name)),
  join(ROOT, 'pnpm-workspace.yaml'),
];

/** The folder of the console that is built from the sources as they are now. It exists once they are built. */
export function consoleDir(): string {
  const hash = createHash('sha256');
  for (const file of SOURCES.flatMap(filesOf))
    hash.update(file.slice(ROOT.length)).update(readFileSync(file));
  return join(DIST, hash.digest('hex').slice(0, 16));
}

/** Builds the console unless it is built already. Several processes may do so at once. Resolves with its folder. */
export async function buildConsole(dir: string = consoleDir()): Promise<string> {
  if (existsSync(dir)) return dir;
  const made = join(DIST, `.${process.pid}`);
  await runVite(made);
  mkdirSync(DIST, { recursive: true });
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
  if (/\.\w+$/.test(path)) return [path];
  const names = readdirSync(path, { recursive: true, withFileTypes: true });
  return names
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .sort();
}

/** In a process of its own, so that a service in this one goes on answering. */
function runVite(outDir: string): Promise<void> {
  const vite = join(APP, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', '--outDir', outDir, '--emptyOutDir', '--logLevel', 'error'];
  // Tests set another value, with which the built file would name the folders of this machine.
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(process.execPath, args, { cwd: APP, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (part: Buffer) => {
    said += part.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`the console cannot be built: ${said.trim()}`)),
    );
  });
}
