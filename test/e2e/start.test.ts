import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PresignAnswer } from '@presign/schema';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareDataFolder } from '../harness/embedded-template.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { until } from '../harness/gateway-process.ts';
import { thorough } from '../harness/thorough.ts';

const LOCAL = fileURLToPath(new URL('../../infra/local/src/', import.meta.url));
const START = ['--max-semi-space-size=8', '--import', `${LOCAL}typescript.mjs`, `${LOCAL}main.ts`];

let dataDir: string;
let env: Record<string, string | undefined>;
let running: ChildProcess | undefined;
/** The output of the first start. */
let message: string;

beforeAll(async () => {
  dataDir = join(mkdtempSync(join(tmpdir(), 'presign-')), 'data');
  const [issuerPort, gatewayPort] = await Promise.all([freePort(), freePort()]);
  env = {
    PATH: process.env.PATH,
    PRESIGN_DATA_DIR: dataDir,
    ISSUER_PORT: String(issuerPort),
    GATEWAY_PORT: String(gatewayPort),
    SAMPLE_DATA: 'false',
  };
  // Here, since the engines of a new folder can take longer next to other files than a test may.
  message = await start();
});
afterAll(() => {
  running?.kill('SIGKILL');
});

const launch = (more: Record<string, string> = {}) =>
  spawn(process.execPath, START, {
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

async function start(): Promise<string> {
  running = launch();
  return until(running, "'Content-Type: application/json' -d");
}

async function end(signal: NodeJS.Signals): Promise<number | null> {
  if (!running) return null;
  const exited = once(running, 'exit');
  running.kill(signal);
  const [code] = (await exited) as [number | null];
  running = undefined;
  return code;
}

async function presign(body: object): Promise<PresignAnswer> {
  const answer = await fetch(`http://127.0.0.1:${env.ISSUER_PORT}/v1/presign`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${readFileSync(join(dataDir, 'api-key'), 'utf8').trim()}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as PresignAnswer;
}

const call = (url: string) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}',
  });

const ask = { provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox', max_uses: 3 };

test('`start` prints a curl command that works as pasted', async () => {
  expect(message).toContain(`http://127.0.0.1:${env.ISSUER_PORT}/console/`);
  const line = message.split('\n').find((each) => each.startsWith('curl '));
  const shell = spawn('sh', ['-c', line ?? 'false'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of shell.stdout) printed += String(chunk);
  expect((JSON.parse(printed) as { object: string }).object).toBe('chat.completion');
});

test('`start` prints a line for each refused call, and nothing for a call that passes', async () => {
  let printed = '';
  running?.stdout?.on('data', (chunk) => {
    printed += String(chunk);
  });
  const { url } = await presign({ ...ask, max_uses: 1, external_user: 'user-7' });
  expect((await call(url)).status).toBe(200);
  const refused = await call(url);
  expect(refused.status).toBe(403);
  const id = refused.headers.get('x-presign-request-id');
  await eventually(async () => printed.includes('request'));
  const line = `refused 403 uses_exhausted, by the limit of the url, limit 1, used 1, sandbox-1, user user-7, request ${id}`;
  expect(printed.replace(/^[\d:]+ /, '')).toBe(`${line}\n`);
});

test('generated keys are readable by their owner alone', () => {
  const keys = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isFile());
  expect(keys.map((entry) => entry.name).sort()).toEqual(['api-key', 'encryption-keys', 'token-signing-key']);
  for (const { name } of keys) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
});

test('a second start on the same folder is refused with one clear line', async () => {
  const [issuerPort, gatewayPort] = await Promise.all([freePort(), freePort()]);
  const second = launch({ ISSUER_PORT: String(issuerPort), GATEWAY_PORT: String(gatewayPort) });
  const exited = once(second, 'exit');
  let said = '';
  for await (const chunk of second.stderr ?? []) said += String(chunk);
  expect(await exited).toEqual([1, null]);
  expect(said.trim().split('\n')).toEqual([expect.stringContaining(dataDir)]);
});

test.each(thorough ? ['ISSUER_PORT', 'GATEWAY_PORT'] : ['GATEWAY_PORT'])(
  'a port in use is refused with the name of %s alone',
  async (taken) => {
    const folder = mkdtempSync(join(tmpdir(), 'presign-'));
    await prepareDataFolder(folder);
    const ports = { ISSUER_PORT: String(await freePort()), GATEWAY_PORT: String(await freePort()) };
    const second = launch({ ...ports, PRESIGN_DATA_DIR: folder, [taken]: env[taken] ?? '' });
    const exited = once(second, 'exit');
    let said = '';
    for await (const chunk of second.stderr ?? []) said += String(chunk);
    expect(await exited).toEqual([1, null]);
    expect(said.trim()).toBe(
      `presign start: ${taken}: port ${env[taken]} is taken. Stop what listens there, or set another port`,
    );
  },
);

test('after kill -9 and a restart, sessions, limits and used amounts are exact to the last use', async () => {
  const { url } = await presign(ask);
  const fresh = await presign(ask);
  expect((await call(url)).status).toBe(200);
  expect((await call(url)).status).toBe(200);
  await end('SIGKILL');
  await start();
  expect((await call(url)).status).toBe(200);
  expect((await call(url)).status).toBe(403);
  for (const status of [200, 200, 200, 403]) expect((await call(fresh.url)).status).toBe(status);
});

test.runIf(thorough)(
  'killed again and again during calls, it never lets more than max_uses pass',
  async () => {
    const { url } = await presign({ ...ask, max_uses: 10 });
    let passed = 0;
    for (let round = 0; round < 4; round++) {
      const calls = Array.from({ length: 3 }, async () => {
        const answer = await call(url).catch(() => undefined);
        if (answer?.status === 200) passed++;
      });
      await Promise.race(calls);
      await end('SIGKILL');
      await Promise.all(calls);
      await start();
    }
    for (let i = 0; i < 12; i++) if ((await call(url)).status === 200) passed++;
    expect(passed).toBeLessThanOrEqual(10);
    expect((await call(url)).status).toBe(403);
  },
  120_000,
);

test('Ctrl-C lets a call in flight end, drains, and exits with 0', async () => {
  const { url } = await presign(ask);
  const streamed = fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"sandbox-1","stream":true,"messages":[{"role":"user","content":"Hello"}]}',
  });
  const answer = await streamed;
  const text = answer.text();
  expect(await end('SIGINT')).toBe(0);
  expect(await text).toContain('[DONE]');
});
