import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeNamesIn, codesIn } from '../gateway/holder-page.ts';
import { expectRealKeyAlone } from '../sdk/keys.ts';
import { forTest, PROVIDERS } from './client-pages.ts';
import { openSdkProject, type SdkProject } from './sdk-project.ts';

const run = promisify(execFile);

let project: SdkProject;
beforeAll(async () => {
  project = await openSdkProject();
});
afterAll(() => project.close());

test.each([
  ['openai', '/v1/chat/completions'],
  ['openai', '/v1/responses'],
  ['groq', '/openai/v1/chat/completions'],
  ['anthropic', '/v1/messages'],
  ['google', '/v1beta/models/gemini-2.5-flash:generateContent'],
  ['cohere', '/v2/chat'],
])('the page of a URL of %s for %s has programs that run as they are', async (provider, path) => {
  const { key = ['', ''], says = '' } = PROVIDERS.get(provider) ?? {};
  const { url } = await project.stack.issue({ provider, path, ...forTest(says), max_uses: 2 });
  const address = url.replace(path, '');
  const page = await (await fetch(address, { headers: { accept: 'text/html' } })).text();
  const [names, codes] = [codeNamesIn(page), codesIn(page)];
  expect(names).toEqual([
    'curl',
    expect.stringMatching(/^TypeScript, package /),
    expect.stringMatching(/^Python, package /),
  ]);
  const env = { PATH: process.env.PATH, PRESIGN_URL: address };
  const seen = project.upstreams.get(provider)?.seen ?? [];
  const options = { cwd: project.folder, env };
  const [curl = '', typescript = ''] = codes;
  await run('sh', ['-c', curl.replace('curl', 'curl -sS --fail-with-body')], options);
  expect(seen.at(-1)?.url).toBe(path);
  const before = seen.length;
  writeFileSync(join(project.folder, 'page.mts'), typescript);
  const { stdout } = await run(process.execPath, ['--import', 'tsx', 'page.mts'], options);
  expect(stdout.trim()).not.toMatch(/^(|undefined)$/);
  expect(seen.length).toBe(before + 1);
  expect(seen.at(-1)?.url).toBe(path);
  expectRealKeyAlone(seen.at(-1), ...key);
});
