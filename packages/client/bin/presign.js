#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { runCommand } from '../dist/src/run-command.js';
import { endWithReader } from '../dist/src/terminal.js';

endWithReader(process);
process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  localKey: () => readKey(`${process.env.PRESIGN_DATA_DIR || '.presign'}/api-key`),
  out: (line) => process.stdout.write(`${line}\n`),
  note: (line) => process.stderr.write(`${line}\n`),
});

function readKey(file) {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
