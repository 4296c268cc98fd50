import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, mkdtempSync, openSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateApiKey, generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { GATEWAY_MAIN, ISSUER_MAIN } from '../issuer/issuer-process.ts';

/** Linux: each write to it fails as on a full disk. */
const FULL = '/dev/full';

describe.each([
  ['gateway', GATEWAY_MAIN],
  ['issuer', ISSUER_MAIN],
])('the log of a %s', (name, main) => {
  let child: ChildProcess | undefined;
  afterEach(() => void child?.kill('SIGKILL'));

  /** Starts the service without stores: it logs that they do not answer, and goes on. */
  async function start(stdout: 'pipe' | number): Promise<{ child: ChildProcess; url: string }> {
    const port = String(await freePort());
    const signing = generateSigningKey();
    const env = {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      GATEWAY_PORT: port,
      ISSUER_PORT: port,
      GATEWAY_URL: `http://127.0.0.1:${port}`,
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      REDIS_URL: 'redis://127.0.0.1:1',
      TOKEN_PUBLIC_KEYS: readSigningKey(signing).publicKey,
      ENCRYPTION_KEYS: generateEncryptionKey('k1'),
      SHUTDOWN_DRAIN_SECONDS: '0',
      ...(name === 'issuer' && { TOKEN_SIGNING_KEY: signing, BOOTSTRAP_API_KEY: generateApiKey() }),
    };
    const started = spawn(process.execPath, main, { stdio: ['ignore', stdout, 'inherit'], env });
    child = started;
    return { child: started, url: `http://127.0.0.1:${port}` };
  }

  /** Serves requests that leave lines, more than a buffer has, and ends as it should. */
  async function serves({ child, url }: { child: ChildProcess; url: string }): Promise<void> {
    const probe = async () => {
      const { statusCode, body } = await request(`${url}/healthz`);
      await body.dump();
      return statusCode === 200;
    };
    await eventually(async () => {
      expect([child.exitCode, child.signalCode]).toEqual([null, null]);
      return probe().catch(() => false);
    });
    for (let i = 0; i < 100; i++) {
      const answer = await request(`${url}/llm/t/no-token/v1/x`, { method: 'POST', body: '{}' });
      await answer.body.dump();
    }
    expect(await probe()).toBe(true);
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  }

  test.skipIf(!existsSync(FULL))(
    'may be on a full disk: the service keeps serving, and exits with code 0',
    async () => {
      await serves(await start(openSync(FULL, 'w')));
    },
  );

  test('may have a stalled reader: the service keeps serving, and exits with code 0', async () => {
    const pipe = fullPipe();
    await serves(await start(pipe.end));
    pipe.close();
  });

  test('may have lost its reader: the service keeps serving, and exits with code 0', async () => {
    const started = await start('pipe');
    started.child.stdout?.destroy();
    await serves(started);
  });
});

/** A pipe that has no room and a reader that never reads. */
function fullPipe(): { readonly end: number; readonly close: () => void } {
  const path = join(mkdtempSync(join(tmpdir(), 'presign-pipe-')), 'log');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  // A descriptor of its own, which blocks as that of a container does.
  const end = openSync(path, 'w');
  for (const bytes of [4096, 1])
    try {
      for (;;) writeSync(reader, Buffer.alloc(bytes));
    } catch {
      // No more of this size fit in.
    }
  return { end, close: () => [reader, end].forEach(closeSync) };
}
