import { expect, test, vi } from 'vitest';
import { createPresign, PresignError } from '../src/index.ts';
import { type Answer, brokenOff, json, pretendIssuer, refusal } from './issuer.ts';

const ISSUED = { url: 'http://g.example/llm/t/a/v1/x', session_id: 'a', expires_at: 1 };
const WANTED = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' };
const NOW = { 'retry-after': '0' };
const KEPT = { id: 'vk_a' };
/** How long a busy machine may take to pass a request on. */
const ARRIVES = { timeout: 60_000 };

const NEW_KEY = { provider: 'openai', name: 'production', key: 'sk-real' };
const badGateway: Answer = (response) => response.writeHead(502).end('<html>');

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'none',
    (error: unknown) => (error instanceof PresignError ? error.code : String(error)),
  );

test.each([
  ['the connection broke off', brokenOff],
  ['429', refusal(429, 'rate_limited', NOW)],
  ['503', refusal(503, 'database_unavailable', NOW)],
  ['a proxy had no answer', badGateway],
  ['the first attempt is still under way', refusal(409, 'idempotency_conflict', NOW)],
] as const)(
  'issuing is retried with the same bytes and one Idempotency-Key when %s',
  async (_what, answer) => {
    const { presign, seen } = await pretendIssuer([answer, answer, json(200, ISSUED)]);
    expect(await presign.presign(WANTED)).toEqual(ISSUED);
    expect(seen.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual(
      Array(3).fill('POST /v1/presign'),
    );
    expect(new Set(seen.map(({ body }) => body)).size).toBe(1);
    const keys = new Set(seen.map(({ headers }) => headers['idempotency-key']));
    expect([...keys]).toEqual([expect.stringMatching(/^[\da-f-]{36}$/)]);
  },
);

test('each call has its own Idempotency-Key, or the one that the caller gives', async () => {
  const { presign, seen } = await pretendIssuer([json(200, ISSUED)]);
  await presign.presign(WANTED);
  await presign.presign(WANTED);
  await presign.presign(WANTED, { idempotencyKey: 'order-7' });
  const keys = seen.map(({ headers }) => headers['idempotency-key']);
  expect(new Set(keys).size).toBe(3);
  expect(keys[2]).toBe('order-7');
});

test.each([
  ['the connection broke off', brokenOff],
  ['503', refusal(503, 'database_unavailable', NOW)],
] as const)('every other POST is retried with one Idempotency-Key, too: %s', async (_what, answer) => {
  const { presign, seen } = await pretendIssuer([answer, json(201, KEPT)]);
  expect(await presign.createVirtualKey(NEW_KEY)).toEqual(KEPT);
  const keys = seen.map(({ headers }) => headers['idempotency-key']);
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), keys[0]]);
});

test('a request is retried if it was refused before its work began', async () => {
  const { presign, seen } = await pretendIssuer([refusal(429, 'rate_limited', NOW), json(201, KEPT)]);
  expect(await presign.createVirtualKey(NEW_KEY)).toEqual(KEPT);
  expect(seen).toHaveLength(2);
});

test('a request is retried if no issuer can have received it', async () => {
  let calls = 0;
  const refused = () => {
    calls++;
    return Promise.reject(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } }));
  };
  const { presign } = await pretendIssuer([], { fetch: refused, maxRetries: 1 });
  expect(await codeOf(presign.createVirtualKey(NEW_KEY))).toBe('connection_failed');
  expect(calls).toBe(2);
});

test.each([
  ['the connection broke off', brokenOff],
  ['503', refusal(503, 'database_unavailable', NOW)],
] as const)('a PATCH is not retried, because it may be stored already: %s', async (_what, answer) => {
  const { presign, seen } = await pretendIssuer([answer, json(200, {})]);
  expect(await codeOf(presign.changeSession({ id: 's' }, { ifRevision: 1 }))).not.toBe('none');
  expect(seen).toHaveLength(1);
});

test('without retries no Idempotency-Key is generated, and nothing is retried', async () => {
  const { presign, seen } = await pretendIssuer([refusal(503, 'database_unavailable', NOW)], {
    maxRetries: 0,
  });
  expect(await codeOf(presign.presign(WANTED))).toBe('database_unavailable');
  expect(seen.map(({ headers }) => headers['idempotency-key'])).toEqual([undefined]);
});

test('without retries an Idempotency-Key of the caller is still sent', async () => {
  const { presign, seen } = await pretendIssuer([json(200, ISSUED)], { maxRetries: 0 });
  await presign.presign(WANTED, { idempotencyKey: 'order-7' });
  expect(seen[0]?.headers['idempotency-key']).toBe('order-7');
});

test('reads and revocations are retried, at most as often as configured', async () => {
  const { presign, seen } = await pretendIssuer([brokenOff], { maxRetries: 3 });
  expect(await codeOf(presign.getSession({ id: 'a' }))).toBe('connection_failed');
  expect(seen).toHaveLength(4);
  expect(await codeOf(presign.revokeGrant({ id: 'a' }))).toBe('connection_failed');
  expect(seen).toHaveLength(8);
});

test.each([400, 401, 403, 404, 409, 500])('a %i is not retried', async (status) => {
  const { presign, seen } = await pretendIssuer([refusal(status, 'some_code'), json(200, ISSUED)]);
  expect(await codeOf(presign.presign(WANTED))).toBe('some_code');
  expect(seen).toHaveLength(1);
});

test('a long Retry-After returns the error at once, with the time to wait', async () => {
  const { presign, seen } = await pretendIssuer([refusal(429, 'rate_limited', { 'retry-after': '3600' })]);
  await expect(presign.listSessions()).rejects.toMatchObject({ status: 429, retryAfterSeconds: 3600 });
  expect(seen).toHaveLength(1);
});

test('a Retry-After within the bound is obeyed, and the backoff grows up to a bound', async () => {
  const late = () => new Response('', { status: 503, headers: { 'retry-after': '7' } });
  const lost = () => Promise.reject(new TypeError('fetch failed'));
  const answers = [late, ...Array(6).fill(lost), () => new Response('{"keys":[]}')];
  const fetch = async () => answers.shift()?.() ?? expect.fail('asked too often');
  const presign = createPresign({ url: 'http://issuer.example', apiKey: 'a', maxRetries: 7, fetch });

  vi.spyOn(Math, 'random').mockReturnValue(1);
  const timers = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((done: () => void) => done()) as never);
  await presign.publicKeys();
  const waits = timers.mock.calls.map(([, delayMs]) => delayMs);
  vi.restoreAllMocks();
  expect(waits).toEqual([7_250, 500, 1_000, 2_000, 4_000, 4_000, 4_000]);
});

test("a signal aborts the request and the wait for the next attempt, with the signal's reason", async () => {
  const silent = await pretendIssuer([() => {}]);
  const reason = new Error('enough');
  const controller = new AbortController();
  const under = silent.presign.listSessions({}, { signal: controller.signal });
  await vi.waitFor(() => expect(silent.seen).toHaveLength(1), ARRIVES);
  controller.abort(reason);
  await expect(under).rejects.toBe(reason);

  const busy = await pretendIssuer([refusal(429, 'rate_limited', { 'retry-after': '30' })]);
  const second = new AbortController();
  const waiting = busy.presign.listSessions({}, { signal: second.signal });
  await vi.waitFor(() => expect(busy.seen).toHaveLength(1), ARRIVES);
  second.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  expect(busy.seen).toHaveLength(1);
});

test('a timeout is an error after the last attempt', async () => {
  let attempts = 0;
  // Counts what is sent: a busy machine may time out before a request arrives.
  const counted: typeof fetch = (...request) => {
    attempts++;
    return fetch(...request);
  };
  const { presign } = await pretendIssuer([() => {}], { timeoutMs: 100, maxRetries: 1, fetch: counted });
  expect(await codeOf(presign.listSessions())).toBe('timed_out');
  expect(attempts).toBe(2);
  const { signal } = new AbortController();
  expect(await codeOf(presign.createApiKey({ name: 'a', scopes: ['read'] }, { signal }))).toBe('timed_out');
  expect(attempts).toBe(4);
});

test('a redirect is not followed, because its target would get the provider key', async () => {
  const other = await pretendIssuer([json(200, ISSUED)]);
  const { presign } = await pretendIssuer([
    (response) => response.writeHead(307, { location: `${other.url}/v1/presign` }).end(),
  ]);
  await expect(presign.presign(WANTED)).rejects.toMatchObject({ code: 'unexpected_answer', status: 307 });
  expect(other.seen).toEqual([]);
});

test('one request may have its own timeout', async () => {
  const { presign, seen } = await pretendIssuer([brokenOff], { maxRetries: 2 });
  await expect(presign.listSessions({}, { maxRetries: 0 })).rejects.toMatchObject({
    code: 'connection_failed',
  });
  expect(seen).toHaveLength(1);
  const silent = await pretendIssuer([() => {}], { maxRetries: 0 });
  await expect(silent.presign.publicKeys({}, { timeoutMs: 20 })).rejects.toMatchObject({ code: 'timed_out' });
  await expect(presign.publicKeys({}, { maxRetries: -1 })).rejects.toThrow(TypeError);
});
