import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { issue, least, refused, send } from './ask.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

test.each([
  ['PUT', '/v1/presign', 'POST'],
  ['GET', '/v1/presign', 'POST'],
  ['POST', '/v1/sessions', 'DELETE, GET, HEAD'],
  ['PUT', '/v1/sessions/x', 'DELETE, GET, HEAD, PATCH'],
  ['DELETE', '/v1/webhooks', 'GET, HEAD, POST'],
  ['POST', '/healthz', 'GET, HEAD'],
  ['DELETE', '/openapi.json', 'GET, HEAD'],
])('%s %s returns 405 with the methods of the address', async (method, path, allowed) => {
  const sent = await send(stack, { method, path });
  refused(sent, 'method_not_supported');
  expect(sent.headers.get('allow')).toBe(allowed);
});

test('an address without any method stays a 404, and a request without a key learns no address', async () => {
  const sent = await send(stack, { method: 'PUT', path: '/v1/nowhere' });
  refused(sent, 'not_found');
  expect(sent.headers.get('allow')).toBeNull();
  refused(await send(stack, { method: 'PUT', path: '/v1/presign', apiKey: undefined }), 'unauthenticated');
});

test.each([
  ['POST', '/v1/mcp-presign', 'Perhaps you mean POST /v2/mcp-presign.'],
  ['POST', '/v2/presign', 'Perhaps you mean POST /v1/presign.'],
])('%s %s gets an error with the right path', async (method, path, hint) => {
  expect(refused(await send(stack, { method, path, body: least }), 'not_found')).toContain(hint);
});

test.each([
  ['ip_ranges', { ip_ranges: ['192.0.2.0/24'] }, 'did you mean bind.ip_ranges?'],
  ['path', { path: 'https://api.openai.com/v1/chat/completions' }, 'without scheme and host'],
])('a wrong %s gets a hint', async (param, fields, hint) => {
  const sent = await send(stack, { body: { ...least, ...fields } });
  expect(refused(sent, 'invalid_request', param)).toContain(hint);
});

test.each([
  ['user', 'external_user'],
  ['key', 'virtual_key'],
  ['modle', 'model'],
  ['day,sesion_id', 'session_id'],
])('group_by=%s gets a hint: %s', async (group, meant) => {
  const sent = await send(stack, { method: 'GET', path: `/v1/usage?group_by=${group}` });
  expect(refused(sent, 'invalid_request', 'group_by')).toContain(`did you mean ${meant}?`);
});

describe('several errors in a request', () => {
  test('are all in its error, unknown fields first', async () => {
    const body = { ...least, max_uses: 0, cost_limit: -1, max_usez: 1, external_user: 7 };
    const sent = await send(stack, { body });
    expect(refused(sent, 'invalid_request', 'max_usez')).toContain('did you mean max_uses?');
    const { problems } = JSON.parse(sent.text).error as { problems: { param: string; message: string }[] };
    expect(problems.map(({ param }) => param).sort()).toEqual([
      'cost_limit',
      'external_user',
      'max_uses',
      'max_usez',
    ]);
    for (const { param, message } of problems) expect(message.startsWith(`${param}: `)).toBe(true);
  });

  test('are listed up to 20, and a single one is not listed', async () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`field_${i}`, i]));
    const sent = await send(stack, { body: { ...least, ...many } });
    expect(JSON.parse(sent.text).error.problems).toHaveLength(20);
    const one = await send(stack, { body: { ...least, max_uses: 0 } });
    expect(JSON.parse(one.text).error).not.toHaveProperty('problems');
  });

  test('are named in a query, too', async () => {
    const sent = await send(stack, { method: 'GET', path: '/v1/calls?limit=0&session_id=x' });
    expect(JSON.parse(sent.text).error.problems).toMatchObject([{ param: 'limit' }, { param: 'session_id' }]);
  });
});

test('a whole number that JavaScript would round is refused with its position, and all others are kept', async () => {
  const post = (metadata: string) =>
    send(stack, { body: JSON.stringify(least).replace('}', `,"metadata":${metadata}}`) });
  const place = 'metadata.orders[1].id';
  for (const id of ['9007199254740993', '-9007199254740993', '12345678901234567890', '1e300']) {
    const sent = await post(`{"orders":[{"id":1},{"id":${id}}]}`);
    expect(refused(sent, 'invalid_request', place)).toContain('as a string');
  }
  const metadata = {
    id: Number.MAX_SAFE_INTEGER,
    low: Number.MIN_SAFE_INTEGER,
    part: 0.1,
    text: '9007199254740993',
  };
  const { session_id } = await issue(stack, { metadata });
  const { text } = await send(stack, { method: 'GET', path: `/v1/sessions/${session_id}` });
  expect(JSON.parse(text).grants[0].metadata).toEqual(metadata);
});
