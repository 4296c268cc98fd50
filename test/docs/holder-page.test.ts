import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeNamesIn, codesIn } from '../gateway/holder-page.ts';
import { expectRealKeyAlone } from '../sdk/keys.ts';
import { openSocket } from '../sockets/holder.ts';
import { forTest, PROVIDERS } from './client-pages.ts';
import { startLocalForDocs } from './local.ts';
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
])('the page of a URL of %s for %s has programs that run unchanged', async (provider, path) => {
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

test('the page of a URL with sockets has an event that begins a turn on its socket', async () => {
  const local = await startLocalForDocs();
  try {
    for (const [path, programs, model, last] of [
      ['/v1/responses', 4, 'sandbox-1', 'response.completed'],
      ['/v1/realtime', 2, 'gpt-realtime', 'response.done'],
    ] as const) {
      const issued = await fetch(`http://127.0.0.1:${local.issuerPort}/v1/presign`, {
        method: 'POST',
        headers: { authorization: `Bearer ${local.keys.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ provider: 'sandbox', path, client_api_key: 'sk-sandbox', sockets: true },
          ...{ models: [model], max_uses: 1, cost_limit: 5_000_000 },
        }),
      });
      const { url } = (await issued.json()) as { url: string };
      const address = url.replace(path, '');
      const page = await (await fetch(address, { headers: { accept: 'text/html' } })).text();
      const codes = codesIn(page);
      expect(codes).toHaveLength(programs);
      const [, added = '', event = ''] =
        codes
          .map((code) => /-c "ws\$\{PRESIGN_URL#http\}"'(.*?)' -w 10 \\\n {2}-x '(.*)'$/.exec(code))
          .find(Boolean) ?? [];
      const holder = await openSocket(address + added);
      holder.send(event);
      expect(await holder.next(last)).toMatchObject({ response: { status: 'completed' } });
      holder.socket.close();
      // A POST on the path of Realtime would be refused.
      expect(codes.some((code) => code.startsWith('curl'))).toBe(path === '/v1/responses');
    }
  } finally {
    await local.close();
  }
});
