// Installs what a script needs: node infra/install.mjs [PACKAGE]
// Without a package it installs all of the workspace. With one it installs what that package needs to run, which is a third of it. A
// whole install is kept whole: pnpm would remove the rest of it. Where nothing is missing it asks nobody, so that scripts run without a network.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** Holds the package of the last install of a part. */
const PART = join(ROOT, 'node_modules/.presign-part');
const name = process.argv[2];

/** What pnpm says of its last install. Undefined: there was none. */
function lastInstall() {
  try {
    const state = JSON.parse(readFileSync(join(ROOT, 'node_modules/.pnpm-workspace-state-v1.json'), 'utf8'));
    const part = existsSync(PART) ? readFileSync(PART, 'utf8') : undefined;
    return {
      atMs: state.lastValidatedTimestamp,
      folders: Object.keys(state.projects),
      part: state.filteredInstall ? part : name,
    };
  } catch {
    return undefined;
  }
}

/** Whether the lockfile or a manifest has changed since. */
function hasChanged({ atMs, folders }) {
  const files = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', '.pnpmfile.mjs'].map((file) => join(ROOT, file));
  const manifests = [ROOT, ...folders].map((folder) => join(folder, 'package.json'));
  return [...files, ...manifests].some(
    (file) => !(statSync(file, { throwIfNoEntry: false })?.mtimeMs <= atMs),
  );
}

// The root's own tools are there after a whole install alone.
const isWhole = existsSync(join(ROOT, 'node_modules/vitest'));
const last = lastInstall();
if (last?.part === name && (name !== undefined || isWhole) && !hasChanged(last)) process.exit();
// CI verifies the age and the trust of each locked version, which asks the registry for all 700. The hashes of the lockfile are always checked.
const part = ['--prod', '--trust-lockfile', '--filter', `${name}...`];
const isFirst = !existsSync(join(ROOT, 'node_modules/.pnpm'));

// Run by pnpm, this is the pnpm that runs it.
const pnpm = process.env.npm_execpath?.includes('pnpm')
  ? [process.env.npm_execpath]
  : ['npx', '-y', 'pnpm@12'];
const [program, ...args] = [...pnpm, 'install', ...(name === undefined || isWhole ? [] : part)];
// Standard output belongs to the script that follows.
const { status, error } = spawnSync(program, args, {
  cwd: ROOT,
  stdio: ['ignore', isFirst ? 2 : 'ignore', 2],
});
if (status === 0 && args.includes('--filter')) writeFileSync(PART, name);
if (error) console.error(`${program} could not be run: ${error.message}`);
process.exitCode = status ?? 1;
