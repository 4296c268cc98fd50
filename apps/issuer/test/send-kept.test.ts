import { gunzipSync } from 'node:zlib';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { keep, onceMade, sendKept } from '../src/answers/send-kept.ts';
import type { IssuerEnv } from '../src/identity/caller.ts';

const TEXT = 'A text that is long enough to be zipped. '.repeat(50_000);
const app = new Hono<IssuerEnv>();
app.get('/', async (c) => sendKept(c, await keep(TEXT, { 'content-type': 'text/plain' })));
const ask = (accepted: string, method = 'GET') =>
  app.request('/', { method, headers: { 'accept-encoding': accepted } });

test.each(['gzip', 'br, gzip;q=0.5', 'gzip;q=1.0, identity'])(
  'Accept-Encoding "%s" gets gzip',
  async (accepted) => {
    const answer = await ask(accepted);
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(Buffer.from(await answer.arrayBuffer())).toString()).toBe(TEXT);
  },
);

test.each(['', 'identity', 'br', 'gzip;q=0', 'gzip; q=0.000, br'])(
  'Accept-Encoding "%s" gets the plain text',
  async (accepted) => {
    const answer = await ask(accepted);
    expect(answer.headers.get('content-encoding')).toBeNull();
    expect(await answer.text()).toBe(TEXT);
  },
);

test('HEAD returns the headers alone', async () => {
  const answer = await ask('identity', 'HEAD');
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
    200,
    'text/plain',
    '',
  ]);
});

test('a text that failed to build is built at the next request', async () => {
  let tries = 0;
  const make = onceMade(async () => {
    if (++tries === 1) throw new Error('too many open files');
    return tries;
  });
  await expect(make()).rejects.toThrow('too many open files');
  expect([await make(), await make()]).toEqual([2, 2]);
});
