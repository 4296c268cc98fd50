import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { runProgram } from '../harness/run-program.ts';
import { codeIn } from './fences.ts';
import { type Local, startLocalForDocs } from './local.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const [issue = '', call = ''] = codeIn(readme, 'bash');
const [sdk = ''] = codeIn(readme, 'js');
const [refusal = ''] = codeIn(readme, 'json');

/** The limit of the first snippet: 5 cents. */
const COST_LIMIT = 50_000;

let local: Local;
/** Set by the first snippet, as in a reader's shell. */
let presignedUrl: string;
/** Microdollars that one call costs. */
let cost: number;

beforeAll(async () => {
  local = await startLocalForDocs();
});
afterAll(() => local.close());

test('the page has the snippets that these tests run', () => {
  expect(codeIn(readme, 'bash')).toHaveLength(2);
  expect(codeIn(readme, 'js')).toHaveLength(1);
  expect(codeIn(readme, 'python')).toHaveLength(1);
  expect(codeIn(readme, 'json')).toHaveLength(1);
});

test('the first curl issues a URL', async () => {
  presignedUrl = await issueWith(issue);
  expect(presignedUrl).toMatch(
    new RegExp(`^http://127.0.0.1:${local.gatewayPort}/llm/t/v4.public.*/v1/chat/completions$`),
  );
});

test('the SDK prints what the model said', async () => {
  writeFileSync(join(local.folder, 'call.mjs'), sdk);
  const printed = await local.run(process.execPath, ['call.mjs'], { PRESIGNED_URL: presignedUrl });
  expect(printed).toContain('Hello');
  await nothingHeld();
});

test('the second curl calls the URL, and its headers are those on the page', async () => {
  const { head, body } = await callWith(presignedUrl);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  const completion = JSON.parse(body) as { usage: { prompt_tokens: number; completion_tokens: number } };
  expect(completion).toMatchObject({ object: 'chat.completion', model: 'sandbox-1' });
  // $0.15 and $0.60 per million tokens, as the sandbox's price list says.
  cost = Math.ceil(completion.usage.prompt_tokens * 0.15 + completion.usage.completion_tokens * 0.6);
  const left = String(COST_LIMIT - 2 * cost);
  expect(headerIn(head, 'x-presign-cost')).toBe(String(cost));
  expect(headerIn(head, 'x-presign-uses-remaining')).toBe('0');
  // Absent if the charge took longer to write than an answer waits for it.
  expect(headerIn(head, 'x-presign-cost-remaining')).toBeOneOf([left, undefined]);
  expect(shown('x-presign-cost')).toBe(String(cost));
  expect(shown('x-presign-cost-remaining')).toBe(left);
  expect(shown('x-presign-uses-remaining')).toBe('0');
});

test('both calls are charged, and nothing stays held', async () => {
  expect(await nothingHeld()).toMatchObject({ used: 2, spent: 2 * cost });
});

test('the third call gets the refusal that the page shows', async () => {
  const { head, body } = await callWith(presignedUrl);
  expect(head).toMatch(/^HTTP\/1\.1 403 /);
  const { error } = JSON.parse(refusal) as { error: object };
  expect(JSON.parse(body)).toEqual({ error: { ...error, request_id: expect.any(String) } });
});

test.each([
  ['no URL', '', /^PRESIGNED_URL is not set\. Issue a URL in this shell first\.$/],
  ['a URL of nothing', 'nothing', /./],
  ['a URL of another path', () => presignedUrl.replace(/v4\..*?\//, 'v4.public.other/'), /token/],
  ['a URL without uses', () => presignedUrl, /uses_exhausted: This URL has no uses left/],
  ['a URL that has expired', () => expiredUrl(), /expired/],
  [
    'a gateway that is away',
    async () => `http://127.0.0.1:${await freePort()}/llm/t/x/v1/chat/completions`,
    /^Connection error\.$/,
  ],
] as const)('the SDK ends with one line for %s', async (_case, url, line) => {
  const PRESIGNED_URL = typeof url === 'string' ? url : await url();
  const env = { PATH: process.env.PATH, PRESIGNED_URL };
  const { code, note } = await runProgram(process.execPath, ['call.mjs'], { cwd: local.folder, env });
  const [said, ...rest] = note.split('\n');
  expect([code, rest], note).toEqual([1, ['']]);
  expect(said).toMatch(line);
});

/** A URL of the first snippet whose second is over. */
async function expiredUrl(): Promise<string> {
  const url = await issueWith(issue.replace('"expires_in": 600', '"expires_in": 1'));
  await eventually(async () => !(await fetch(url.slice(0, url.indexOf('/v1/')))).ok || undefined);
  return url;
}

test('if the money runs out first, the call returns 402', async () => {
  const { head, body } = await callWith(await issueWith(issue.replace(`${COST_LIMIT}`, '0')));
  expect(head).toMatch(/^HTTP\/1\.1 402 /);
  expect(JSON.parse(body)).toMatchObject({ error: { code: 'cost_limit_reached', limit: 0, remaining: 0 } });
});

const issueWith = (snippet: string): Promise<string> =>
  local.run('sh', ['-euc', `${local.here(snippet)}\nprintf '%s' "$PRESIGNED_URL"`]);

async function callWith(url: string): Promise<{ head: string; body: string }> {
  const printed = await local.run('sh', ['-euc', call], { PRESIGNED_URL: url });
  const [head = '', body = ''] = printed.split('\r\n\r\n');
  return { head, body };
}

const shown = (name: string): string | undefined => headerIn(readme.replaceAll('`', '\n'), name);
const headerIn = (head: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*?)\r?$`, 'im').exec(head)?.[1];

type Left = { readonly used: number; readonly spent: number; readonly held: number };

/** The URL's own figures once its calls are charged. */
const nothingHeld = (): Promise<Left> =>
  eventually(async () => {
    const answer = await fetch(presignedUrl.slice(0, presignedUrl.indexOf('/v1/')));
    const left = (await answer.json()) as Left;
    return left.held === 0 ? left : undefined;
  });
