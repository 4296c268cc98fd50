// Writes the types and operations of docs/reference/openapi.json, in TypeScript and in Python.
// Run: pnpm --filter @presign/client generate
import { writeFileSync } from 'node:fs';
import { generatedFiles } from './generated-files.ts';

for (const [name, text] of await generatedFiles()) {
  writeFileSync(new URL(`../../${name}`, import.meta.url), text);
}
