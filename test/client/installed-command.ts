import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const CLIENT = fileURLToPath(new URL('../../packages/client/', import.meta.url));

/** How a command ended. */
export type Ran = { readonly code: number | null; readonly out: string; readonly note: string };

/** The command of the client's package as it is published. */
export type InstalledCommand = {
  /** Runs it to its end while the services in this process answer it. */
  readonly run: (args: readonly string[], env: Record<string, string>, cwd?: string) => Promise<Ran>;
  readonly remove: () => void;
};

export function installCommand(): InstalledCommand {
  const folder = mkdtempSync(join(tmpdir(), 'presign-client-'));
  const { bin } = JSON.parse(readFileSync(join(CLIENT, 'package.json'), 'utf8')) as {
    bin: { presign: string };
  };
  mkdirSync(join(folder, 'bin'));
  for (const file of ['package.json', bin.presign]) copyFileSync(join(CLIENT, file), join(folder, file));
  const tsc = createRequire(join(CLIENT, 'package.json')).resolve('typescript/bin/tsc');
  const options = ['-p', join(CLIENT, 'tsconfig.dist.json'), '--outDir', join(folder, 'dist')];
  const built = spawnSync(process.execPath, [tsc, ...options], { encoding: 'utf8' });
  expect([built.status, built.stdout]).toEqual([0, '']);
  return {
    run: (args, env, cwd = folder) => run([join(folder, bin.presign), ...args], env, cwd),
    remove: () => rmSync(folder, { recursive: true }),
  };
}

async function run(args: readonly string[], env: Record<string, string>, cwd: string): Promise<Ran> {
  const child = spawn(process.execPath, args, { env, cwd });
  const [out, note, code] = await Promise.all([
    textOf(child.stdout),
    textOf(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { code, out, note };
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}
