import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeIn } from '../docs/fences.ts';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { removeFolder } from '../harness/remove-folder.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const [issue = ''] = codeIn(README, 'bash');
const commandOf = (program: string) => codeIn(README, 'sh').find((code) => code.includes(program)) ?? '';
const INSTALL_MS = 300_000;

/** The first call of the README as a new user makes it: in an empty folder, with the SDK that the registry has today. */
describe('the first call in an empty folder', () => {
  let local: Local;
  let url: string;

  beforeAll(async () => {
    local = await startLocalForDocs();
    url = await local.run('sh', ['-euc', `${local.here(issue)}\nprintf '%s' "$PRESIGNED_URL"`]);
  }, INSTALL_MS);
  afterAll(() => local?.close());

  test.each([
    ['js', 'call.mjs'],
    ['python', 'call.py'],
  ])('in %s, as %s', { timeout: INSTALL_MS }, async (language, file) => {
    const folder = mkdtempSync(join(tmpdir(), 'presign-first-call-'));
    try {
      writeFileSync(join(folder, file), codeIn(README, language).join('\n'));
      const command = `cd ${folder} && ${commandOf(file)}`;
      const { PATH = '', HOME = folder } = process.env;
      const printed = await local.run('sh', ['-euc', command], { PATH, HOME, PRESIGNED_URL: url });
      expect(printed.trim().split('\n').at(-1)).toContain('You said: Hello');
    } finally {
      await removeFolder(folder);
    }
  });
});
