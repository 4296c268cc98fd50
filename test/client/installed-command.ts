import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPackages } from '@presign/client/build';

/** How a command ended. */
export type Ran = { readonly code: number | null; readonly out: string; readonly note: string };

/** The command of the client's package as it is published. */
export type InstalledCommand = {
  /** Runs it to its end while the services in this process answer it. */
  readonly run: (args: readonly string[], env: Record<string, string>, cwd?: string) => Promise<Ran>;
  readonly remove: () => void;
};

export async function installCommand(): Promise<InstalledCommand> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-client-'));
  const packages = await buildPackages();
  const archive = readdirSync(packages).find((name) => name.endsWith('.tgz')) ?? '';
  execFileSync('tar', ['-xzf', join(packages, archive), '-C', folder]);
  return {
    run: (args, env, cwd = folder) => run([join(folder, 'package/bin/presign.js'), ...args], env, cwd),
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
