import { expect, test } from 'vitest';
import { adviceOn, messageIn } from '../src/issue/refusal.ts';

const MESSAGE = 'uses_exhausted: This URL has no uses left (max_uses 3). Issue a new URL.';

test.each([
  ['OpenAI', { error: { code: 'uses_exhausted', message: MESSAGE } }],
  ['Anthropic', { type: 'error', error: { message: MESSAGE } }],
  ['Google', { error: { code: 403, message: MESSAGE, details: [] } }],
  ['Cohere', { message: MESSAGE, code: 'uses_exhausted' }],
  ['JSON-RPC', { jsonrpc: '2.0', id: 1, error: { code: -32_000, message: MESSAGE } }],
])('the console finds the message of a refusal in the format of %s', (_name, body) => {
  expect(messageIn(JSON.stringify(body), 'uses_exhausted')).toBe(
    'This URL has no uses left (max_uses 3). Issue a new URL.',
  );
});

test('an answer that is not a refusal has no message', () => {
  expect(messageIn('{"choices": []}', 'uses_exhausted')).toBeUndefined();
  expect(messageIn('no JSON', 'uses_exhausted')).toBeUndefined();
});

test('each refusal has a next step', () => {
  expect(adviceOn('cost_held')).toContain('other calls have ended');
  expect(adviceOn('of_tomorrow')).toContain('reference of errors');
});
