import { describe, expect, test } from 'vitest';
import { ERRORS, type ErrorCode, errorBody, errorMessage, errorStatus, rateLimited } from '../src/index.ts';

describe('the error table', () => {
  test.each([
    [400, ['invalid_request', 'invalid_json', 'unknown_provider']],
    [401, ['unauthenticated', 'token_invalid', 'token_expired']],
    [402, ['cost_limit_reached', 'cost_limit_too_low', 'token_limit_reached', 'token_limit_too_low']],
    [403, ['forbidden', 'grant_revoked', 'uses_exhausted', 'path_not_allowed', 'method_not_allowed']],
    [404, ['not_found']],
    [409, ['session_conflict', 'idempotency_conflict']],
    [413, ['body_too_large']],
    [415, ['unsupported_media_type']],
    [422, ['price_unknown', 'cost_unbounded']],
    [429, ['rate_limited', 'concurrency_limited', 'cost_held', 'tokens_held']],
    [502, ['upstream_unreachable']],
    [503, ['overloaded', 'limits_unavailable', 'database_unavailable']],
    [504, ['upstream_timeout']],
  ] as const)('%i is the status of the codes that the documentation names', (status, codes) => {
    for (const code of codes) expect(errorStatus({ code })).toBe(status);
  });

  test('every code has a message that is a whole sentence', () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) expect(ERRORS[code][2]).toMatch(/^[A-Z].+\.$/);
  });
});

describe('the envelope', () => {
  test('has code, message, type, param and request_id, and nothing else', () => {
    expect(errorBody({ code: 'not_found' }, 'r1')).toEqual({
      error: {
        code: 'not_found',
        message: 'Nothing was found at this address. Check the path and the id in it.',
        type: 'not_found_error',
        param: null,
        request_id: 'r1',
      },
    });
  });

  test('can have further fields of the refusal', () => {
    const refusal = { code: 'cost_limit_too_low', param: 'x', details: { needed: 5, remaining: 3 } } as const;
    expect(errorBody(refusal, 'r1').error).toMatchObject({ param: 'x', needed: 5, remaining: 3 });
  });
});

describe('the error message', () => {
  const url = { limit_of: 'url' };
  test.each([
    [
      { code: 'uses_exhausted', details: { ...url, limit: 1, used: 1 } },
      'This URL has no uses left (max_uses 1). Issue a new URL.',
    ],
    [{ code: 'uses_exhausted' }, 'This URL has no uses left. Issue a new URL.'],
    [
      { code: 'cost_limit_reached', details: { ...url, limit: 1, remaining: 0 } },
      'This URL has spent its cost_limit of 1 microdollar ($0.000001). Issue a new URL.',
    ],
    [
      { code: 'cost_limit_reached', details: { ...url, limit: 0, remaining: 0 } },
      'This URL has spent its cost_limit of 0 microdollars ($0.00). Issue a new URL.',
    ],
    [
      { code: 'cost_held', details: { ...url, limit: 50, remaining: 30 } },
      'Calls under way hold too much of the 30 microdollars ($0.00003) that are left of the spend limit. Try again when they have ended.',
    ],
    [
      { code: 'cost_held', details: { limit_of: 'virtual_key' } },
      'Calls under way hold too much of the spend limit. Try again when they have ended.',
    ],
    [{ code: 'not_found', details: { ...url, limit: 1 } }, ERRORS.not_found[2]],
    [{ code: 'uses_exhausted', message: 'Its own.', details: { limit: 1 } }, 'Its own.'],
  ] as const)('of %o has its numbers', (refusal, message) => {
    expect(errorMessage(refusal)).toBe(message);
  });

  test.each([
    [1, 500, 'This URL has no calls left (1 a minute). Try again in 1 second.'],
    [60, 1001, 'This URL has no calls left (60 a minute). Try again in 2 seconds.'],
  ])('of a rate limit of %i a minute names the limit and the wait', (perMinute, waitMs, message) => {
    const rateLimit = { name: 'calls_per_minute', limit: perMinute, left: 0, resetMs: 60_000 } as const;
    expect(rateLimited({ rateLimit, waitMs }, 'This URL').message).toBe(message);
  });
});
