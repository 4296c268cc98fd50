import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, REAL_KEY } from '../sdk/keys.ts';
import { startCohereUpstream } from '../sdk/upstreams/cohere.ts';
import { startGoogleUpstream } from '../sdk/upstreams/google.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import { startSandboxUpstream } from '../sdk/upstreams/sandbox.ts';
import { type Section, sectionsOf } from './fences.ts';

const sections = sectionsOf(
  readFileSync(new URL('../../docs/guides/use-an-sdk.md', import.meta.url), 'utf8'),
);
const PYTHON = process.env.PYTHON ?? 'python3';
const run = promisify(execFile);

const BEARER: Expected['key'] = ['authorization', `Bearer ${REAL_KEY}`];
const SANDBOX_SAYS = 'You said: Hello';
const RECORDED_SAYS = 'Presigned URLs expire.';

type Expected = {
  readonly start: () => Promise<PacedUpstream>;
  readonly key: readonly [header: string, value: string];
  readonly says: string;
};

/** The upstream of each section's provider, and the expected output of its snippets. */
const EXPECTED: ReadonlyMap<string, Expected> = new Map([
  ['OpenAI', { start: startSandboxUpstream, key: BEARER, says: SANDBOX_SAYS }],
  ['Anthropic', { start: startSandboxUpstream, key: ['x-api-key', REAL_KEY], says: SANDBOX_SAYS }],
  ['Google Gen AI', { start: startGoogleUpstream, key: ['x-goog-api-key', REAL_KEY], says: RECORDED_SAYS }],
  ['Cohere', { start: startCohereUpstream, key: BEARER, says: RECORDED_SAYS }],
  ['Groq', { start: () => startSandboxUpstream('/openai'), key: BEARER, says: SANDBOX_SAYS }],
] satisfies [string, Expected][]);

const upstreams = new Map<string, PacedUpstream>();
let stack: Stack;
let folder: string;

beforeAll(async () => {
  const providers: Record<string, object> = {};
  for (const section of sections) {
    const upstream = await expectedOf(section).start();
    upstreams.set(section.title, upstream);
    providers[requestOf(section).provider] = { base_url: upstream.url };
  }
  stack = await startStack({ providers });
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  // So that snippets find the SDKs as a project's own files would.
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));
});
afterAll(async () => {
  await stack.close();
  for (const upstream of upstreams.values()) await upstream.close();
  rmSync(folder, { recursive: true });
});

test('the page has a request, TypeScript and Python for each SDK', () => {
  expect(sections.map(({ title }) => title)).toEqual([...EXPECTED.keys()]);
  for (const { fences } of sections) expect([...fences.keys()]).toEqual(['json', 'ts', 'python']);
});

describe.each(sections)('$title', (section) => {
  const { fences } = section;

  test('the TypeScript snippet gets an answer through the URL that its request issues', async () => {
    const code = `const url = process.env.PRESIGN_URL as string;\n${fences.get('ts')}`;
    writeFileSync(join(folder, 'snippet.mts'), code);
    await expectAnswer(section, process.execPath, ['--import', 'tsx', 'snippet.mts']);
  });

  const python = fences.get('python') ?? '';
  const [importLine = ''] = python.split('\n', 1);
  const installed = spawnSync(PYTHON, ['-c', importLine]).status === 0;
  test.skipIf(!installed)(`the Python snippet does too (${importLine})`, async () => {
    writeFileSync(join(folder, 'snippet.py'), `import os\nurl = os.environ["PRESIGN_URL"]\n${python}`);
    await expectAnswer(section, PYTHON, ['snippet.py']);
  });
});

type Request = { provider: string; path: string | string[] };

function expectedOf({ title }: Section): Expected {
  const found = EXPECTED.get(title);
  if (!found) throw new Error(`nothing is known here of the section "${title}"`);
  return found;
}

const requestOf = ({ fences }: Section) => JSON.parse(fences.get('json') ?? '{}') as Request;

async function expectAnswer(section: Section, program: string, args: string[]): Promise<void> {
  const request = requestOf(section);
  const { key, says } = expectedOf(section);
  // The sandbox has models of its own; the issuer's word on the model is what counts.
  const config = says === SANDBOX_SAYS ? { model: 'sandbox-1' } : undefined;
  const { url } = await stack.issue({ ...request, client_api_key: REAL_KEY, max_uses: 1, config });
  const env = { PATH: process.env.PATH, PRESIGN_URL: url };
  const { stdout } = await run(program, args, { cwd: folder, env });
  expect(stdout).toContain(says);
  const seen = upstreams.get(section.title)?.seen.at(-1);
  expect([request.path].flat()).toContain(seen?.url);
  expectRealKeyAlone(seen, ...key);
}
