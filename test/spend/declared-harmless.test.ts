import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream(answerChat);
  const entry = {
    extends: 'openai',
    base_url: upstream.url,
    pricing: { m: { input: 1_000_000, output: 0 } },
  };
  const harmless_fields = ['note', 'messages[].content[].type=sketch', 'prediction'];
  stack = await startStack({
    providers: {
      strict: entry,
      newer: { ...entry, harmless_fields },
    },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** A large body is planned by a worker, and text of a model with an encoding is counted when money is short. */
const LONG = 'x'.repeat(1_100_000);
const TEXT = { type: 'text', text: 'Hi' };
const CASES = [
  ['a field', { note: 'Hi' }, 200],
  ['a field of a large body', { note: LONG }, 200],
  ['a kind', { messages: [{ role: 'user', content: [TEXT, { type: 'sketch', text: 'Hi' }] }] }, 200],
  ['another kind', { messages: [{ role: 'user', content: [{ type: 'film' }] }] }, 422],
  ['what has a fee', { prediction: { type: 'content', content: 'Hi' } }, 422],
] as const;

const issue = (provider: string, more: object = {}) =>
  stack.issue({
    ...{ provider, path: '/v1/chat/completions', client_api_key: 'sk', cost_limit: 2_000_000 },
    ...more,
  });

test.each(CASES)(
  '%s that PROVIDERS_FILE declares passes under a limit, or not',
  async (_what, fields, status) => {
    const body = JSON.stringify({
      model: 'm',
      max_tokens: 5,
      messages: [{ role: 'user', content: 'Hi' }],
      ...fields,
    });
    const call = async (provider: string) => {
      const { url } = await issue(provider);
      return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    };
    const strict = await call('strict');
    expect(strict.status).toBe(422);
    const { error } = (await strict.json()) as { error: { message: string } };
    const canDeclare = !('prediction' in fields);
    expect(error.message.includes('harmless_fields')).toBe(canDeclare);
    const before = upstream.seen.length;
    expect((await call('newer')).status).toBe(status);
    if (status !== 200) return;
    // It is sent as it came.
    expect(JSON.parse(String(upstream.seen[before]?.body))).toMatchObject(fields);
  },
);

test('its bytes are held', async () => {
  const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }], note: LONG };
  const { url } = await issue('newer', { cost_limit: 90_000 });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.headers.get('x-presign-code')).toBe('cost_limit_too_low');
});

test('the issuer accepts it in a config, and refuses others', async () => {
  const ask = { path: '/v1/chat/completions', client_api_key: 'sk', cost_limit: 2_000_000 };
  const presign = async (provider: string, config: object) =>
    (await stack.presign({ ...ask, provider, config })).status;
  expect(await presign('newer', { note: 'Hi' })).toBe(200);
  expect(await presign('newer', { other: 'Hi' })).toBe(400);
  expect(await presign('strict', { note: 'Hi' })).toBe(400);
});
