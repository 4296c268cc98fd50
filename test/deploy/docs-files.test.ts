import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { generateEncryptionKey, generateSigningKey } from '@presign/crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { run } from '../issuer/issuer-process.ts';

const ISSUER = join(import.meta.dirname, '../../apps/issuer');

let folder: string;
beforeAll(async () => {
  await promisify(execFile)(process.execPath, ['../../infra/docker/bundle.mjs'], { cwd: ISSUER });
  folder = mkdtempSync(join(tmpdir(), 'presign-image-'));
  cpSync(join(ISSUER, 'dist'), join(folder, 'dist'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test('the bundle contains all that /docs needs, away from the repository', async () => {
  const port = await freePort();
  // Its stores do not answer, and /docs needs none.
  const issuer = run([join(folder, 'dist/main.js')], {
    ...{ HOST: '127.0.0.1', ISSUER_PORT: String(port), GATEWAY_URL: 'http://127.0.0.1:1' },
    ...{ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', REDIS_URL: 'redis://127.0.0.1:1' },
    ...{ TOKEN_SIGNING_KEY: generateSigningKey(), ENCRYPTION_KEYS: generateEncryptionKey('k1') },
  });
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  const page = await eventually(() => ask('/docs/').catch(() => undefined));
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<h1 id="documentation">')]);
  const api = await ask('/docs/api');
  expect([api.status, await api.text()]).toEqual([200, expect.stringContaining('"name":"LLM calls"')]);
  const scalar = await ask('/docs/api/scalar.js');
  expect([scalar.status, (await scalar.text()).length > 1_000_000]).toEqual([200, true]);
  // All pages, and the pictures and assets that they load.
  const full = await ask('/llms-full.txt');
  expect([full.status, await full.text()]).toEqual([
    200,
    expect.stringContaining('# Share a budget among URLs'),
  ]);
  const guide = await (await ask('/docs/guides/console')).text();
  const loaded = Array.from(
    guide.matchAll(/(?:src|rel="(?:stylesheet|icon)" href)="([^"]+)"/g),
    ([, link = '']) => link,
  );
  expect(loaded.length).toBeGreaterThan(5);
  for (const link of loaded) expect([link, (await ask(`/docs/guides/${link}`)).status]).toEqual([link, 200]);
  issuer.kill('SIGKILL');
});
