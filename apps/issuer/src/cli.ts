import { readFileSync } from 'node:fs';
import { endWithReader } from '@presign/client/terminal';
import { runCli } from './cli/run-cli.ts';

endWithReader(process);

/** `pnpm presign COMMAND`. */
process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  input: readInput,
  localKey: readLocalKey,
  out: (line) => void process.stdout.write(`${line}\n`),
  note: (line) => void process.stderr.write(`${line}\n`),
});

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function readLocalKey(): string | undefined {
  try {
    return readFileSync(`${process.env.PRESIGN_DATA_DIR || '.presign'}/api-key`, 'utf8').trim();
  } catch {
    return undefined;
  }
}
