import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPackages } from '@presign/client/build';
import { type Ran, runProgram } from '../harness/run-program.ts';

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
    run: (args, env, cwd = folder) =>
      runProgram(process.execPath, [join(folder, 'package/bin/presign.js'), ...args], { cwd, env }),
    remove: () => rmSync(folder, { recursive: true }),
  };
}
