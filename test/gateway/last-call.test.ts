import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GrantStatus } from '@presign/schema';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
/** A provider that takes a call and closes the connection without an answer. */
const rude = createServer((incoming) => incoming.socket.destroy());

beforeAll(async () => {
  providers = await startProviders();
  await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve));
  const at = (port: number) => ({ extends: 'openai', base_url: `http://127.0.0.1:${port}` });
  const extra = { rude: at((rude.address() as AddressInfo).port), absent: at(await freePort()) };
  // So that an answer always waits for its settle, also on a busy machine.
  stack = await startStack({ providers: { ...providers.file, ...extra }, gateway: { settlingMs: 60_000 } });
});
afterAll(async () => {
  await stack.close();
  await providers.close();
  rude.close();
});
beforeEach(() => {
  providers.answer = OK;
});

const PATH = '/v1/chat/completions';
const issue = async (limits: object) =>
  (await stack.issue({ provider: 'openai', path: PATH, client_api_key: 'sk', ...limits })).url;

const answering = (status: number, headers: Record<string, string> = {}) => {
  providers.answer = (_seen, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end('{"error":{"message":"no"}}');
  };
};

async function call(url: string) {
  const answer = await request(url, { method: 'POST', body: '{}' });
  const { error } = (await answer.body.json()) as { error?: Record<string, unknown> };
  return { status: answer.statusCode, error, shouldRetry: answer.headers['x-should-retry'] };
}

const lastCallOf = async (url: string) =>
  ((await (await fetch(url.replace(PATH, ''))).json()) as GrantStatus).last_call;

test('the refusal after a failed last use says how that use failed, and so does the status of the URL', async () => {
  const url = await issue({ max_uses: 1 });
  expect(await lastCallOf(url)).toBeNull();
  answering(500);
  const began = Math.floor(Date.now() / 1000);
  await call(url);
  const { error } = await call(url);
  expect(error).toMatchObject({
    code: 'uses_exhausted',
    message: expect.stringContaining('The last call of this URL ended with status 500 (provider_error).'),
    last_call: { status: 500, code: 'provider_error', at: expect.any(Number) },
  });
  const last = await lastCallOf(url);
  expect(error?.last_call).toEqual(last);
  expect(last?.at).toBeGreaterThanOrEqual(began);
  expect(last?.at).toBeLessThanOrEqual(Date.now() / 1000);
});

test('a call that succeeds clears the failure before it', async () => {
  const url = await issue({ max_uses: 2 });
  answering(500);
  await call(url);
  expect(await lastCallOf(url)).toMatchObject({ status: 500 });
  providers.answer = OK;
  await call(url);
  expect(await lastCallOf(url)).toBeNull();
  expect((await call(url)).error).not.toHaveProperty('last_call');
});

test('a call that its holder left is a failure, even if the provider answers it', async () => {
  const url = await issue({ max_uses: 1 });
  const leaving = new AbortController();
  let answerNow = () => {};
  const asked = new Promise<void>((reached) => {
    providers.answer = async (...provider) => {
      reached();
      await new Promise<void>((resolve) => {
        answerNow = resolve;
      });
      await OK(...provider);
    };
  });
  const left = request(url, { method: 'POST', body: '{}', signal: leaving.signal }).catch(() => 'left');
  await asked;
  leaving.abort();
  expect(await left).toBe('left');
  // The end of a connection arrives before a request that is sent after it.
  expect(await lastCallOf(url)).toBeNull();
  answerNow();
  const last = await eventually(async () => (await lastCallOf(url)) ?? undefined);
  expect(last).toMatchObject({ status: 200, code: 'holder_left' });
});

test.each([400, 404, 408, 409, 500, 502])(
  'x-should-retry is false on a %i that keeps the last use, whatever the provider says',
  async (status) => {
    const url = await issue({ max_uses: 2 });
    answering(status, { 'x-should-retry': 'true' });
    expect((await call(url)).shouldRetry).toBe('true');
    expect((await call(url)).shouldRetry).toBe('false');
  },
);

test.each([401, 429, 503])('a %i that returns the last use has no x-should-retry', async (status) => {
  const url = await issue({ max_uses: 1 });
  answering(status);
  expect(await call(url)).toMatchObject({ status, shouldRetry: undefined });
  expect(await lastCallOf(url)).toMatchObject({ status, code: 'provider_error' });
});

test('an answer below 400, and a URL without max_uses, have no x-should-retry', async () => {
  expect((await call(await issue({ max_uses: 1 }))).shouldRetry).toBeUndefined();
  answering(500);
  expect((await call(await issue({}))).shouldRetry).toBeUndefined();
});

test('a call that was sent and not answered keeps the last use, with x-should-retry false', async () => {
  const url = await issue({ provider: 'rude', max_uses: 1 });
  expect(await call(url)).toMatchObject({ status: 502, shouldRetry: 'false' });
  expect((await call(url)).error).toMatchObject({
    code: 'uses_exhausted',
    last_call: { status: 502, code: 'upstream_unreachable' },
  });
});

test('a call that was not sent may be retried', async () => {
  const url = await issue({ provider: 'absent', max_uses: 1 });
  expect(await call(url)).toMatchObject({ status: 502, shouldRetry: undefined });
  // The gateway waits a moment before it tries that address again.
  expect(await call(url)).toMatchObject({ status: 503, error: { code: 'upstream_unreachable' } });
});

test('the same provider error returns a use at a vendor that documents it as free', async () => {
  answering(408);
  const kept = await issue({ max_uses: 1 });
  await call(kept);
  expect((await call(kept)).error?.code).toBe('uses_exhausted');
  answering(500);
  const path = '/v1beta/models/m:generateContent';
  const url = await issue({ provider: 'google', path, max_uses: 1 });
  const before = providers.seen.length;
  for (let i = 0; i < 2; i++) expect(await call(url)).toMatchObject({ status: 500, shouldRetry: undefined });
  expect(providers.seen).toHaveLength(before + 2);
});
