import { expect, test } from 'vitest';
import { refusalIn } from '../src/issue/socket-turn.ts';

const NONE = { code: null, requestId: null };

test('an error of the gateway on a socket is a refusal with its code', () => {
  const message = 'uses_exhausted: This URL has no uses left (max_uses 1). Issue a new URL.';
  const error = { code: 'uses_exhausted', message, request_id: 'r' };
  expect(refusalIn({ error })).toEqual({ code: 'uses_exhausted', requestId: 'r' });
});

test('an error of the provider on a socket is not a refusal', () => {
  const error = { code: 'previous_response_not_found', message: 'Previous response not found.' };
  expect(refusalIn({ error })).toEqual(NONE);
  expect(refusalIn({ error: { ...error, request_id: 'req_of_the_provider' } })).toEqual(NONE);
  expect(refusalIn({})).toEqual(NONE);
});
