import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import type { Upstream } from '../harness/upstream.ts';
import { AWS_KEY, BEDROCK_API_KEY, startBedrock } from '../sdk/upstreams/bedrock.ts';
import { sectionsOf } from './fences.ts';

const page = readFileSync(new URL('../../docs/guides/use-a-cloud.md', import.meta.url), 'utf8');
const sections = sectionsOf(page).filter(({ fences }) => fences.has('ts'));
const run = promisify(execFile);

let bedrock: Upstream;
let stack: Stack;
let folder: string;

beforeAll(async () => {
  bedrock = await startBedrock();
  stack = await startStack({ providers: { bedrock: { base_url: bedrock.url } } });
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));
});
afterAll(async () => {
  await stack.close();
  await bedrock.close();
  rmSync(folder, { recursive: true });
});

test.each([
  ['AWS SDK', AWS_KEY],
  ["Anthropic's client", { api_key: BEDROCK_API_KEY, region: 'us-east-1' }],
])('the snippet for %s gets an answer through the URL that its request issues', async (title, key) => {
  const fences = sections.find((section) => section.title === title)?.fences;
  const request = JSON.parse(fences?.get('json') ?? '') as { client_api_key: string };
  // The page's key has the fields of a real one.
  expect(Object.keys(AWS_KEY)).toEqual(
    expect.arrayContaining(
      Object.keys(JSON.parse(request.client_api_key)).filter((field) => field !== 'api_key'),
    ),
  );
  const { url } = await stack.issue({
    ...request,
    client_api_key: JSON.stringify(key),
    cost_limit: 1_000_000,
  });
  writeFileSync(
    join(folder, 'snippet.mts'),
    `const url = process.env.PRESIGN_URL as string;\n${fences?.get('ts')}`,
  );
  const env = { PATH: process.env.PATH, PRESIGN_URL: url };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', 'snippet.mts'], { cwd: folder, env });
  expect(stdout.trim()).toBe('Hello');
});

test('every snippet of the page is run', () => {
  expect(sections.map(({ title }) => title)).toEqual(['AWS SDK', "Anthropic's client"]);
});
