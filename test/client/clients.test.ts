import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildPackages } from '@presign/client/build';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';

const run = promisify(execFile);
const ARCHIVE = 'presign-client-0.1.0.tgz';
const WHEEL = 'presign_client-0.1.0-py3-none-any.whl';

let stack: Stack;
/** An empty folder of a user. */
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  stack = await startStack({
    providers: {},
    issuer: { clientPackages: { dir: buildPackages, isReleased: true } },
  });
});
afterAll(async () => {
  await stack.close();
  await removeFolder(folder);
});

const get = (path: string, init?: RequestInit) =>
  fetch(stack.issuerUrl + path, { redirect: 'manual', ...init });
const ROOT = join(import.meta.dirname, '../..');
const pageOf = (name: string) =>
  readFile(join(ROOT, name === 'README.md' ? 'packages/client' : 'docs/guides', name), 'utf8');
/** npm with a cache of its own, so that what it gets comes from the issuer. */
const npm = (program: string, ...args: string[]) =>
  run(program, [...args, '--cache', join(folder, 'cache')], { cwd: folder });

test.each(['typescript-client.md', 'README.md'])(
  'npm installs the client in an empty folder as %s says, and a program runs with it',
  async (name) => {
    const [line = '', address = ''] =
      /npm install https?:\/\/[^/]+(\/clients\/[\w.-]+\.tgz)/.exec(await pageOf(name)) ?? [];
    expect(line).not.toBe('');
    await npm('npm', 'install', '--no-audit', '--no-fund', stack.issuerUrl + address);
    const program = `
    import { createPresign } from '@presign/client';
    const presign = createPresign({ url: '${stack.issuerUrl}', apiKey: '${stack.apiKey}' });
    console.log((await presign.listSessions()).data.length);`;
    writeFileSync(join(folder, 'program.mjs'), program);
    expect((await run(process.execPath, ['program.mjs'], { cwd: folder })).stdout).toBe('0\n');
  },
);

test('npx runs the command of the issuer without an installation', async () => {
  const address = `${stack.issuerUrl}/clients/presign-client.tgz`;
  const { stdout } = await npm('npx', '--yes', '--package', address, 'presign', '--help');
  expect(stdout).toContain('Usage: presign COMMAND');
});

test('a file with a version in its name is cached forever, and is sent again only to clients without it', async () => {
  for (const name of [ARCHIVE, WHEEL, 'presign_client-0.1.0.tar.gz']) {
    const answer = await get(`/clients/${name}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const sha256 = createHash('sha256').update(bytes).digest();
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(answer.headers.get('repr-digest')).toBe(`sha-256=:${sha256.toString('base64')}:`);
    const etag = answer.headers.get('etag') ?? '';
    const again = await get(`/clients/${name}`, { headers: { 'if-none-match': `"other", W/${etag}` } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const head = await get(`/clients/${name}`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.headers.get('etag')]).toEqual([
      200,
      String(bytes.length),
      etag,
    ]);
    // pip checks the file against this.
    expect(await (await get('/clients/')).text()).toContain(
      `href="${name}#sha256=${sha256.toString('hex')}"`,
    );
  }
});

test('names without a version redirect to the newest', async () => {
  const answer = await get('/clients/presign-client.tgz');
  expect([answer.status, answer.headers.get('location')]).toEqual([302, ARCHIVE]);
  expect(await (await get('/clients/requirements.txt')).text()).toBe(
    `presign-client @ ${stack.issuerUrl}/clients/${WHEEL}\n`,
  );
  expect(await (await get('/clients/simple/')).text()).toContain('<a href="presign-client/">');
  expect(await (await get('/clients/simple/presign-client/')).text()).toContain(
    `href="../../${WHEEL}#sha256=`,
  );
});

test("only the client's own files are served", async () => {
  for (const name of ['..%2f..%2fpackage.json', 'package.json', 'presign-client-9.9.9.tgz']) {
    const answer = await get(`/clients/${name}`);
    expect([name, answer.status]).toEqual([name, 404]);
  }
});

test('the issuer lists its addresses at /: as text, as JSON, and as a page', async () => {
  const text = await (await get('/')).text();
  expect(text).toContain(`clients    ${stack.issuerUrl}/clients/\n`);
  expect(text).not.toContain('console');
  const json = (await (await get('/', { headers: { accept: 'application/json' } })).json()) as object;
  expect(Object.keys(json)).toEqual(['service', 'health', 'readiness', 'docs', 'api', 'openapi', 'clients']);
  const browser = await get('/', { headers: { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' } });
  expect(await browser.text()).toContain(`<a href="${stack.issuerUrl}/docs/">docs</a>`);
  for (const [, url = ''] of text.matchAll(/(http\S+)/g))
    expect([url, (await fetch(url)).status]).toEqual([url, 200]);
  expect((await get('/', { method: 'POST' })).status).toBe(405);
});

test('a failed build is tried again, and no request sees the cause', async () => {
  let built = 0;
  const dir = async () => (built++ === 0 ? Promise.reject(new Error('no compiler')) : buildPackages());
  const other = await startStack({ providers: {}, issuer: { clientPackages: { dir, isReleased: false } } });
  const address = `${other.issuerUrl}/clients/${ARCHIVE}`;
  const failed = await fetch(address);
  expect([failed.status, (await failed.text()).includes('compiler')]).toEqual([500, false]);
  const answer = await fetch(address);
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-cache']);
  await other.close();
});
