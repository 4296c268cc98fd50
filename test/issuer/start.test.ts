import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { connectRedis, keys, redisReady } from '@presign/limits';
import { startEmbeddedRedis } from '@presign/local';
import { describe, expect, test } from 'vitest';
import { buildRoad } from '../gateway/road.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { entryPoint } from '../harness/service-bundles.ts';
import { thorough } from '../harness/thorough.ts';
import { GATEWAY_MAIN, ISSUER_MAIN, run } from './issuer-process.ts';

const signing = generateSigningKey();
/** No server listens at these addresses. A start that gets so far has read all its variables. */
const good = {
  HOST: '127.0.0.1',
  ISSUER_PORT: '0',
  GATEWAY_PORT: '0',
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  REDIS_URL: 'redis://127.0.0.1:1',
  TOKEN_SIGNING_KEY: signing,
  TOKEN_PUBLIC_KEYS: readSigningKey(signing).publicKey,
  ENCRYPTION_KEYS: generateEncryptionKey('k1'),
};

/** Runs a service to its end: its exit code and what it wrote. */
async function outcome(main: readonly string[], changed: Readonly<Record<string, string | undefined>>) {
  const child = run(main, { ...good, ...changed }, 'pipe');
  let [out, err] = ['', ''];
  child.stdout?.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr?.on('data', (chunk) => {
    err += String(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, err };
}

// Which values are refused, and how each is said, is tested next to each service's `env.ts`.
describe.each([
  ['issuer', ISSUER_MAIN],
  ['gateway', GATEWAY_MAIN],
] as const)('the start of the %s', (name, main) => {
  test.each([
    ['missing', 'DATABASE_URL', undefined],
    ['malformed', 'ENCRYPTION_KEYS', 'k1:c2hvcnQ='],
  ])(
    'stops at a %s variable (%s) with exit code 1 and one line that names it',
    async (problem, variable, value) => {
      const { code, out, err } = await outcome(main, { [variable]: value });
      expect([code, out]).toEqual([1, '']);
      expect(err).toMatch(
        new RegExp(`^presign ${name}: ${variable} is ${problem}.*, for example ${variable}=.*\n$`),
      );
    },
  );

  test.runIf(thorough || name === 'gateway')(
    'continues without its stores: one line names each, without a password, and /readyz says 503',
    async () => {
      const port = String(await freePort());
      const stores = {
        DATABASE_URL: 'postgres://nobody:marked@127.0.0.1:1/none',
        REDIS_URL: 'redis://:marked@127.0.0.1:2',
        SHUTDOWN_DRAIN_SECONDS: '0',
      };
      const child = run(main, { ...good, ...stores, ISSUER_PORT: port, GATEWAY_PORT: port });
      const log = linesOf(child);
      const answer = await eventually(() => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined));
      expect(answer.status).toBe(503);
      for (const line of [
        'DATABASE_URL: 127.0.0.1:1 does not answer',
        'REDIS_URL: 127.0.0.1:2 does not answer',
      ]) {
        const found = await eventually(async () => said(log(), line));
        // On a busy machine postgres.js may see that a connection closed before it sees why.
        expect(found).toMatchObject({
          level: 50,
          code: expect.stringMatching(/^(ECONNREFUSED|CONNECTION_CLOSED)$/),
        });
        expect(log().filter(({ msg }) => msg === line)).toHaveLength(1);
      }
      expect(JSON.stringify(log())).not.toContain('marked');
      expect(said(log(), `${name} is ready`)).toBeUndefined();
      await end(child);
    },
  );
});

const MIGRATE_MAIN = entryPoint('issuer', 'migrate');

// The first process of a container ignores a signal that it does not handle.
test.each([
  ['gateway', GATEWAY_MAIN, 'redis', 'SIGTERM', 143],
  ['issuer', ISSUER_MAIN, 'redis', 'SIGINT', 130],
  ['migrate', MIGRATE_MAIN, 'postgres', 'SIGTERM', 143],
] as const)(
  'SIGTERM during the start of %s ends it at once, with the exit code of a failed start',
  async (_name, main, store, signal, code) => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const url = `${store}://127.0.0.1:${port}`;
    silent.on('connection', (socket) => socket.resume());
    const asked = once(silent, 'connection');
    const child = run(main, { ...good, ...(store === 'redis' ? { REDIS_URL: url } : { DATABASE_URL: url }) });
    await asked;
    const exited = once(child, 'exit');
    child.kill(signal);
    expect(await exited).toEqual([code, null]);
    silent.close();
  },
);

test.runIf(thorough)('a gateway becomes ready when its Redis starts later', async () => {
  const redis = await startEmbeddedRedis();
  const road = await buildRoad(redis.port);
  await road.cut();
  const port = String(await freePort());
  const url = Object.assign(new URL(redis.url), { port: String(road.port) }).href;
  const child = run(GATEWAY_MAIN, { ...good, GATEWAY_PORT: port, REDIS_URL: url });
  const log = linesOf(child);
  const ready = (status: number) =>
    eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      return answer?.status === status ? true : undefined;
    });
  await ready(503);
  await road.mend();
  // An issuer has drained a partition.
  const client = connectRedis(redis.url, () => {});
  await redisReady(client);
  await client.hset(keys.partition(3), 'state', 'open');
  client.disconnect();
  await ready(200);
  await eventually(async () => said(log(), 'gateway is ready'));
  await end(child);
  await road.cut();
  await redis.close();
});

type Line = { readonly msg: string; readonly level: number };

/** The lines that a service has logged so far. */
function linesOf(child: ChildProcess): () => Line[] {
  let text = '';
  child.stdout?.on('data', (chunk) => {
    text += String(chunk);
  });
  return () =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
}

const said = (log: readonly Line[], msg: string) => log.find((line) => line.msg === msg);

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
}
