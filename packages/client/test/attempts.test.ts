import { expect, test } from 'vitest';
import { type Attempt, createPresign, requestIdOf } from '../src/index.ts';
import { API_KEY, brokenOff, json, pretendIssuer, refusal } from './issuer.ts';

const ISSUED = { url: 'http://g.example/llm/t/v4.public.a-token/v1/x', session_id: 'a', expires_at: 1 };
const WANTED = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' };
const NOW = { 'retry-after': '0' };
const ID = 'a-session-id';

test('an answer has the request id of the issuer’s log, and otherwise exactly the fields of the API', async () => {
  const { presign } = await pretendIssuer([
    json(200, ISSUED, { 'x-request-id': 'request-1' }),
    json(200, { id: ID }, { 'x-request-id': 'request-2' }),
    json(200, { id: ID }),
  ]);
  const issued = await presign.presign(WANTED);
  const sessions = [await presign.getSession({ id: ID }), await presign.getSession({ id: ID })] as const;
  expect([issued, ...sessions].map(requestIdOf)).toEqual(['request-1', 'request-2', undefined]);
  expect(Object.keys(sessions[0])).toEqual(['id']);
  expect(JSON.parse(JSON.stringify(issued))).toEqual(ISSUED);
  expect(requestIdOf({ ...issued })).toBeUndefined();
});

test('each attempt is reported with its outcome and the next wait, and without any value of its request', async () => {
  const reports: Attempt[] = [];
  const { presign } = await pretendIssuer(
    [
      brokenOff,
      refusal(503, 'database_unavailable', { ...NOW, 'x-request-id': 'request-1' }),
      json(200, ISSUED, { 'x-request-id': 'request-2' }),
      refusal(404, 'not_found'),
    ],
    { onAttempt: (attempt) => reports.push(attempt) },
  );
  await presign.presign(WANTED, { idempotencyKey: 'order-7' });
  await expect(presign.getSession({ id: ID })).rejects.toThrow('not_found');
  const some = expect.any(Number);
  const issuing = { operation: 'POST /v1/presign', durationMs: some };
  const unanswered = { status: undefined, requestId: undefined };
  expect(reports).toEqual([
    { ...issuing, ...unanswered, attempt: 1, code: 'connection_failed', retryInMs: some },
    {
      ...issuing,
      ...{ attempt: 2, status: 503, code: 'database_unavailable', requestId: 'request-1', retryInMs: some },
    },
    { ...issuing, attempt: 3, status: 200, code: undefined, requestId: 'request-2', retryInMs: undefined },
    {
      ...{ operation: 'GET /v1/sessions/{id}', attempt: 1, status: 404, code: 'not_found' },
      ...{ requestId: undefined, durationMs: some, retryInMs: undefined },
    },
  ]);
  const text = JSON.stringify(reports);
  for (const secret of [API_KEY, 'sk-real', 'a-token', ID, 'order-7', '127.0.0.1'])
    expect(text).not.toContain(secret);
});

test.each([
  [
    'throws',
    () => {
      throw new Error('the log is full');
    },
  ],
  // Vitest fails for a rejection without a handler.
  ['rejects', async () => Promise.reject(new Error('the log is full'))],
])('an answer is returned even if a hook %s', async (_how, onAttempt) => {
  const { url } = await pretendIssuer([json(200, ISSUED)]);
  expect(await createPresign({ url, apiKey: API_KEY, onAttempt }).presign(WANTED)).toEqual(ISSUED);
});
