// Installs what a script needs: node infra/install.mjs [PACKAGE]
// Without a package it installs all of the workspace. With one it installs what that package needs to run, which is a third of it. A
// whole install is kept whole: pnpm would remove the rest of it.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const name = process.argv[2];
// The root's own tools are there after a whole install alone.
const isWhole = existsSync(join(ROOT, 'node_modules/vitest'));
// CI verifies the age and the trust of each locked version, which asks the registry for all 700. The hashes of the lockfile are always checked.
const part = ['--prod', '--trust-lockfile', '--filter', `${name}...`];
const isFirst = !existsSync(join(ROOT, 'node_modules/.pnpm'));

// Run by pnpm, this is the pnpm that runs it.
const pnpm = process.env.npm_execpath?.includes('pnpm')
  ? [process.env.npm_execpath]
  : ['npx', '-y', 'pnpm@12'];
const [program, ...args] = [...pnpm, 'install', ...(name === undefined || isWhole ? [] : part)];
// Standard output belongs to the script that follows.
const { status } = spawnSync(program, args, { cwd: ROOT, stdio: ['ignore', isFirst ? 2 : 'ignore', 2] });
process.exitCode = status ?? 1;
