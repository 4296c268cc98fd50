import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeIn } from '../docs/fences.ts';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { runProgram } from '../harness/run-program.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const [issue = ''] = codeIn(README, 'bash');
const commandOf = (text: string) => codeIn(README, 'sh').find((code) => code.includes(text)) ?? '';
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
      // The reader's clone is next to the folder that the page makes.
      const [clone, program] = [join(folder, 'presign'), join(folder, 'program')];
      mkdirSync(clone);
      writeFileSync(program, codeIn(README, language).join('\n'));
      const command = `cd ${clone}\n${commandOf('mkdir')}cp ${program} ${file}\n${commandOf(file)}`;
      const { PATH = '', HOME = folder } = process.env;
      const printed = await local.run('sh', ['-euc', command], { PATH, HOME, PRESIGNED_URL: url });
      expect(printed.trim().split('\n').at(-1)).toContain('You said: Hello');
      if (language === 'python') await expectOneLineEach(join(folder, 'first-call'), url);
    } finally {
      await removeFolder(folder);
    }
  });
});

/** The failures of the program in Python, each with one line. Those in JavaScript: test/docs/readme.test.ts. */
async function expectOneLineEach(cwd: string, url: string): Promise<void> {
  const away = `http://127.0.0.1:${await freePort()}/llm/t/x/v1/chat/completions`;
  const cases: [url: string, line: RegExp][] = [
    ['', /^PRESIGNED_URL is not set\. /],
    [url.replace(/v4\..*?\//, 'v4.public.other/'), /token/],
    [away, /^Connection error\.$/],
  ];
  for (const [PRESIGNED_URL, line] of cases) {
    const env = { PATH: process.env.PATH, PRESIGNED_URL };
    const { code, note } = await runProgram(join(cwd, '.venv/bin/python'), ['call.py'], { cwd, env });
    expect([code, note.trimEnd().split('\n')], note).toEqual([1, [expect.stringMatching(line)]]);
  }
}
