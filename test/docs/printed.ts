import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { POSTGRES_BIN } from '../issuer/postgres-server.ts';
import { codeIn } from './fences.ts';

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

/** The commands for a shell on a page of the operator guide, a text for each fence. */
export function commandsOf(page: string): readonly string[] {
  const text = readFileSync(join(REPOSITORY, 'docs/guides/operate', page), 'utf8');
  // A fence in a list is indented.
  return codeIn(text.replaceAll(/^ {3}/gm, ''), 'sh');
}

/** A folder of programs that stand before those of the machine. */
export type Shims = { readonly folder: string; readonly programs: Readonly<Record<string, string>> };

/**
 * Runs commands as they are printed, and stops at the first that fails.
 * @param cwd where a reader would stand
 * @returns their output
 */
export function runPrinted(
  commands: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
  shims?: Shims,
): string {
  for (const [name, script] of Object.entries(shims?.programs ?? {}))
    writeFileSync(join(shims?.folder ?? '', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const path = [shims?.folder, POSTGRES_BIN, process.env.PATH].filter(Boolean).join(delimiter);
  // npm may need the certificates to reach its registry.
  const { HOME, NODE_EXTRA_CA_CERTS } = process.env;
  const own = { HOME, NODE_EXTRA_CA_CERTS, PATH: path, ...env };
  return execFileSync('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd,
    env: own,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
  });
}

/** Without it a command that hangs would hang the test, whose own timeout cannot end it. */
const TIMEOUT_MS = 120_000;
