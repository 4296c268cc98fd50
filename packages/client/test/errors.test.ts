import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionFailedError,
  createPresign,
  InsufficientQuotaError,
  InvalidRequestError,
  NotFoundError,
  PermissionDeniedError,
  PresignError,
  type PresignOptions,
  RateLimitError,
  TimedOutError,
  UnexpectedAnswerError,
} from '../src/index.ts';
import { type Answer, API_KEY, brokenOff, json, pretendIssuer, refusal } from './issuer.ts';

const PROVIDER_KEY = 'sk-real-0123456789';
const WANTED = { provider: 'openai', path: '/v1/x', client_api_key: PROVIDER_KEY };

const caught = (promise: Promise<unknown>): Promise<PresignError> =>
  promise.then(
    () => expect.fail('there was no error'),
    (error: unknown) => (error instanceof PresignError ? error : expect.fail(String(error))),
  );

test('a refusal is an error with all fields of the body', async () => {
  const more = { param: 'max_uses', limit: 3, used: 3, message: 'max_uses: expected another.' };
  const { presign } = await pretendIssuer([refusal(429, 'rate_limited', { 'retry-after': '60' }, more)]);
  const error = await caught(presign.presign(WANTED));
  expect(error).toMatchObject({
    name: 'ApiError',
    message: 'max_uses: expected another.',
    status: 429,
    code: 'rate_limited',
    param: 'max_uses',
    requestId: '0d9c8b7a-6f5e-4d3c-8b2a-190807060504',
    details: { limit: 3, used: 3 },
    retryAfterSeconds: 60,
  });
});

test.each([
  ['invalid_request_error', InvalidRequestError],
  ['authentication_error', AuthenticationError],
  ['insufficient_quota', InsufficientQuotaError],
  ['permission_error', PermissionDeniedError],
  ['not_found_error', NotFoundError],
  ['conflict_error', ConflictError],
  ['rate_limit_error', RateLimitError],
  ['of_a_newer_issuer', ApiError],
])('a refusal of type %s has its own class', async (type, kind) => {
  const { presign } = await pretendIssuer([refusal(400, 'some_code', {}, { type })]);
  const error = await caught(presign.presign(WANTED));
  expect(error).toBeInstanceOf(kind);
  expect([error.name, error.code]).toEqual([kind.name, 'some_code']);
});

test.each<[Answer, typeof PresignError, Partial<PresignOptions>]>([
  [brokenOff, ConnectionFailedError, {}],
  [() => {}, TimedOutError, { timeoutMs: 20 }],
  [(response) => response.end('<html>'), UnexpectedAnswerError, {}],
])('an answer that fails on the way has its class', async (answer, kind, options) => {
  const { presign } = await pretendIssuer([answer], { maxRetries: 0, ...options });
  expect(await caught(presign.publicKeys())).toBeInstanceOf(kind);
});

test('an error without a JSON body names its request, without the parameters', async () => {
  const page = await pretendIssuer([
    (response) => response.writeHead(404, { 'x-request-id': 'r-1' }).end('<html>'),
  ]);
  const error = await caught(page.presign.getSession({ id: 'session-1' }));
  expect(error).toMatchObject({ status: 404, code: 'unexpected_answer', requestId: 'r-1', param: undefined });
  expect(error.message).toBe('GET /v1/sessions/{id}: the answer is not that of an issuer (status 404).');
});

test.each([
  ['a page of something else', 'text/html', '<html>'],
  ['half an answer', 'application/json', '{"url":'],
])('%s is an error, whatever its status', async (_what, type, body) => {
  const { presign } = await pretendIssuer([
    (response) => response.writeHead(200, { 'content-type': type }).end(body),
  ]);
  expect(await caught(presign.presign(WANTED))).toMatchObject({ status: 200, code: 'unexpected_answer' });
});

test('if the issuer is unreachable, the error names its address and the cause', async () => {
  const url = await closedUrl();
  const below = url.replace('//', '//user:secret@');
  const presign = createPresign({ url: `${below}/below/a-secret`, apiKey: API_KEY, maxRetries: 0 });
  const error = await caught(presign.publicKeys());
  expect(error).toMatchObject({ status: undefined, code: 'connection_failed' });
  const reason = `the issuer could not be reached, or the connection broke off (${url}: ECONNREFUSED)`;
  expect(error.message).toBe(`GET /v1/keys: ${reason}.`);
});

describe('neither the API key nor a provider key is shown in', () => {
  const quoting = (_url: string, init: RequestInit) =>
    Promise.reject(
      new Error(`cannot send ${JSON.stringify(init)}`, {
        cause: { ...init, code: init.headers && JSON.stringify(init) },
      }),
    );
  const echo = json(500, {
    error: { code: 'internal_error', message: `Bearer ${API_KEY}`, details: [API_KEY], request_id: API_KEY },
  });

  const page: Answer = (response) => response.end(`<p>${API_KEY}`);

  test.each([
    ['a refusal that quotes it', echo, {}],
    ['a connection that broke off', brokenOff, {}],
    ['what a fetch of another make throws', brokenOff, { fetch: quoting }],
    ['an answer of something other than an issuer', page, {}],
    ['an answer that does not come', () => {}, { timeoutMs: 20 }],
  ] as const)('the error of %s', async (_what, answer, options) => {
    const { presign } = await pretendIssuer([answer], { maxRetries: 0, ...options });
    expectNoKey(await caught(presign.presign(WANTED)));
  });

  test('the client itself', async () => {
    const { presign } = await pretendIssuer([]);
    expectNoKey(presign);
    expect(JSON.stringify(presign)).toBe('{}');
  });

  test('the error about a key that cannot be a header', () => {
    for (const apiKey of [`${API_KEY}\n`, ` ${API_KEY}`, `${API_KEY}ü`]) {
      const error = thrownBy(() => createPresign({ url: 'http://x.example', apiKey }));
      expect(error).toBeInstanceOf(TypeError);
      expectNoKey(error);
    }
  });
});

test.each([
  ['url', { url: 'issuer.example' }],
  ['url', { url: 'ftp://issuer.example' }],
  ['apiKey', { apiKey: '' }],
  ['apiKey', { apiKey: undefined as unknown as string }],
  ['maxRetries', { maxRetries: -1 }],
  ['maxRetries', { maxRetries: 0.5 }],
  ['timeoutMs', { timeoutMs: 0 }],
])('an invalid option %s is refused with what it must be: %j', (name, wrong) => {
  const error = thrownBy(() => createPresign({ url: 'https://issuer.example', apiKey: API_KEY, ...wrong }));
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).toContain(`${name}: `);
});

/** The URL of a port without a listener. */
async function closedUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

function expectNoKey(value: unknown): void {
  const shown = [inspect(value, { depth: null, showHidden: true }), JSON.stringify(value), String(value)];
  if (value instanceof Error) shown.push(value.message, value.stack ?? '', inspect(value.cause));
  for (const text of shown) for (const key of [API_KEY, PROVIDER_KEY]) expect(text).not.toContain(key);
}

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return expect.fail('nothing was thrown');
}
