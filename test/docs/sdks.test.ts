import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientRows, foreignClients, pinned, rowOf, sdkPackages } from '../foreign/client-table.ts';
import { startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, REAL_KEY } from '../sdk/keys.ts';
import { startSandboxUpstream } from '../sdk/upstreams/sandbox.ts';
import { clientPages, forTest, PROVIDERS, runsInProject } from './client-pages.ts';
import { codeIn } from './fences.ts';
import { openSdkProject, type SdkProject } from './sdk-project.ts';

const run = promisify(execFile);

let project: SdkProject;
beforeAll(async () => {
  project = await openSdkProject();
});
afterAll(() => project.close());

test('each guide to an SDK has a request and a program', () => {
  expect(clientPages.length).toBeGreaterThan(7);
  for (const { name, request, programs } of clientPages) {
    expect(PROVIDERS.has(request.provider), name).toBe(true);
    expect(programs.length, name).toBeGreaterThan(0);
  }
});

// The other programs run in test/foreign/guides.foreign.test.ts.
const own = clientPages.flatMap(({ programs, ...page }) =>
  programs.filter(runsInProject).map(({ code }) => ({ ...page, code })),
);

describe.each(own)('the TypeScript of $name', ({ name, request, code }) => {
  test('gets an answer, and prints why a second call is refused', async () => {
    const { says = '', key = ['', ''] } = PROVIDERS.get(request.provider) ?? {};
    const { url } = await project.stack.issue({ ...request, ...forTest(says) });
    const file = `${name}.mjs`;
    const program = `const url = process.env.PRESIGN_URL as string;\n${code}`;
    // Without its types, so that Node alone runs it: tsx takes as much CPU again.
    const { code: stripped } = await transform(program, { loader: 'ts', target: 'node20' });
    writeFileSync(join(project.folder, file), stripped);
    const options = { cwd: project.folder, env: { PATH: process.env.PATH, PRESIGN_URL: url } };
    const call = () => run(process.execPath, [file], options);
    expect((await call()).stdout).toContain(says);
    const seen = project.upstreams.get(request.provider)?.seen.at(-1);
    expect([request.path].flat()).toContain(seen?.url);
    expectRealKeyAlone(seen, ...key);
    const { stdout } = await call();
    expect(stdout).toContain('uses_exhausted: This URL has no uses left');
  });
});

describe('the table of clients', () => {
  const BY_HAND_ALONE = 'async-openai 0.43.0';

  test('names every client of the tests', () => {
    expect(foreignClients.length).toBeGreaterThan(10);
    expect(foreignClients.filter((client) => rowOf(client) === undefined)).toEqual([]);
    const named = clientRows.flatMap(({ packages }) => [...packages.keys()]);
    expect(sdkPackages.size).toBeGreaterThan(7);
    expect([...sdkPackages].filter((name) => !named.includes(name))).toEqual([]);
  });

  test('names the versions that the tests install', () => {
    const versions = clientRows.flatMap(({ packages }) => [...packages].map((pair) => pair.join(' ')));
    expect(versions.length).toBeGreaterThan(20);
    expect(versions.filter((each) => !pinned.has(each))).toEqual([BY_HAND_ALONE]);
  });

  test('says for each client of the foreign tests what they assert', () => {
    for (const client of foreignClients) {
      expect(rowOf(client)?.except, client).toBe(client === '@google/genai' ? 'busy: no retry' : '');
    }
  });
});

test('a local model server is reached with the setup of the guide', async () => {
  const page = readFileSync(new URL('../../docs/guides/clients/local-models.md', import.meta.url), 'utf8');
  const [file = '', request = ''] = codeIn(page, 'json');
  const server = await startSandboxUpstream();
  const local = await startStack({
    providers: JSON.parse(file.replace(/http:\/\/127\.0\.0\.1:\d+/g, server.url)) as object,
  });
  const { url } = await local.issue({ ...(JSON.parse(request) as object), client_api_key: REAL_KEY });
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox-1', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect(await answer.text()).toContain('You said: Hello');
  await local.close();
  await server.close();
});
