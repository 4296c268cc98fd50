#!/usr/bin/env node
import { runCommand } from '../dist/src/give.js';

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  out: (line) => process.stdout.write(`${line}\n`),
  note: (line) => process.stderr.write(`${line}\n`),
});
