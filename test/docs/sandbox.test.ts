import { readFileSync } from 'node:fs';
import { startSandboxLlm } from '@presign/local';
import { loadProviders } from '@presign/providers';
import { afterAll, beforeAll, expect, test } from 'vitest';

const page = readFileSync(new URL('../../docs/guides/sandbox.md', import.meta.url), 'utf8');
const cell = (pattern: RegExp) =>
  [...page.matchAll(pattern)].map(([, first = '', second = '']) => [first, second]);

const paths = cell(/^\| `(\/\S+)` +\| `(\w+)`/gm);
const models = cell(/^\| `(sandbox-\S+)` +\| ([\d,]+ microdollars)/gm).map(([model]) => model);
const headers = { authorization: 'Bearer sk-sandbox', 'content-type': 'application/json' };

let sandbox: Awaited<ReturnType<typeof startSandboxLlm>>;
beforeAll(async () => {
  sandbox = await startSandboxLlm();
});
afterAll(() => sandbox.close());

test('the page names paths and models', () => {
  expect(paths.length).toBeGreaterThan(5);
  expect(models.length).toBeGreaterThan(0);
});

test.each(paths)('the sandbox has %s', async (path, method = '') => {
  const body = method === 'POST' ? { body: '{}' } : {};
  const answer = await fetch(sandbox.url + path, { method, headers, ...body });
  expect(answer.status).toBe(method === 'POST' ? 400 : 200);
});

test('the models on the page are those that the sandbox has', async () => {
  const answer = await fetch(`${sandbox.url}/v1/models`, { headers });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(models);
});

test('the PROVIDERS_FILE on the page can be used', () => {
  const [file] = /^```json\n(.*?)^```/ms.exec(page)?.slice(1) ?? [];
  expect(
    loadProviders(file)
      .get('sandbox')
      ?.pricing?.has(models[0] ?? ''),
  ).toBe(true);
});
