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
import { type Google, SERVICE_ACCOUNT, startGoogle } from '../sdk/upstreams/vertex.ts';
import { sectionsOf } from './fences.ts';

const page = readFileSync(new URL('../../docs/guides/use-a-cloud.md', import.meta.url), 'utf8');
const sections = sectionsOf(page).filter(({ fences }) => fences.has('ts'));
const run = promisify(execFile);

let bedrock: Upstream;
let google: Google;
let stack: Stack;
let folder: string;

beforeAll(async () => {
  bedrock = await startBedrock();
  google = await startGoogle();
  const price = { input: 1_000_000, output: 5_000_000 };
  const pricing = { 'gemini-2.5-flash': price, 'claude-haiku-4-5@20251001': price };
  const vertex = { base_url: google.url, token_url: `${google.url}/token`, pricing };
  stack = await startStack({ providers: { bedrock: { base_url: bedrock.url }, vertex } });
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));
});
afterAll(async () => {
  await stack.close();
  await bedrock.close();
  await google.close();
  rmSync(folder, { recursive: true });
});

const KEYS: readonly (readonly [title: string, key: object])[] = [
  ['AWS SDK', AWS_KEY],
  ["Anthropic's client", { api_key: BEDROCK_API_KEY, region: 'us-east-1' }],
  ['Google Gen AI', SERVICE_ACCOUNT],
  ['Claude on Vertex AI', SERVICE_ACCOUNT],
];

test.each(KEYS)(
  'the snippet for %s gets an answer through the URL that its request issues',
  async (title, key) => {
    const fences = sections.find((section) => section.title === title)?.fences;
    const request = JSON.parse(fences?.get('json') ?? '') as { client_api_key: string };
    // The page's key has fields of a real one.
    expect(Object.keys(key)).toEqual(expect.arrayContaining(Object.keys(JSON.parse(request.client_api_key))));
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
  },
);

test('every snippet of the page is run here', () => {
  expect(sections.map(({ title }) => title)).toEqual(KEYS.map(([title]) => title));
});
