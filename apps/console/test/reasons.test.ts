import type { Call } from '@presign/client';
import { expect, test } from 'vitest';
import { endOf, reasonOf } from '../src/data/reasons.ts';

type Refusal = NonNullable<Call['refusal']>;

const NONE: Refusal = {
  ...{ code: '', reason: null, name: null, limit_of: null, budget: null },
  ...{ limit: null, used: null, needed: null, remaining: null, body_bytes: null },
};
const OF_BUDGET = { limit_of: 'budget', budget: 'b' } as const;

const cases: readonly (readonly [string, Partial<Refusal>, string])[] = [
  [
    'cost_limit_too_low',
    { ...OF_BUDGET, needed: 30_000 },
    'the budget Team had not enough left, and the call could cost up to $0.03',
  ],
  [
    'cost_limit_too_low',
    { needed: 30_000, remaining: 0 },
    'its URL had $0.00 left, and the call could cost up to $0.03',
  ],
  [
    'token_limit_too_low',
    { ...OF_BUDGET, needed: 500 },
    'the budget Team had not enough left, and the call could use 500 tokens',
  ],
  [
    'token_limit_too_low',
    { ...OF_BUDGET, needed: 500, remaining: 1, limit: 9 },
    'the budget Team had 1 token left, and the call could use 500 tokens',
  ],
  ['concurrency_limited', { limit: 3 }, 'its URL allows 3 calls at once'],
  [
    'concurrency_limited',
    { limit: 3, needed: 5 },
    'it is a batch of 5 calls, and its URL allows 3 calls at once',
  ],
  ['rate_limited', { limit: 1 }, 'its URL allows 1 call a minute'],
  [
    'rate_limited',
    { limit: 10, needed: 20 },
    'it is a batch of 20 calls, and its URL allows 10 calls a minute',
  ],
  [
    'daily_rate_limited',
    { limit: 10, needed: 20 },
    'it is a batch of 20 calls, and its URL allows 10 calls a day',
  ],
  [
    'token_rate_limited',
    { limit: 1_000, needed: 700, remaining: 300 },
    'it could use 700 tokens, and its URL allows 1,000 tokens a minute, of which 300 were left',
  ],
  [
    'token_rate_too_low',
    { limit: 100, needed: 700 },
    'it could use 700 tokens, and its URL allows 100 tokens a minute',
  ],
  ['uses_exhausted', { limit: 5, used: 5 }, 'all 5 uses of its URL are spent'],
  ['uses_exhausted', { limit: 1, used: 1 }, 'the only use of its URL is spent'],
  ['uses_exhausted', OF_BUDGET, 'the budget Team has no uses left'],
  [
    'uses_exhausted',
    { limit: 5, used: 3, remaining: 2, needed: 4 },
    'it is a batch of 4 calls, and its URL had 2 uses left',
  ],
];

test.each(cases)('the reason of %s with %j is right in words', (code, figures, words) => {
  expect(reasonOf({ ...NONE, ...figures, code }, 'Team')).toBe(words);
});

test.each([
  ['model_not_allowed', { model: 'gpt-4o' }, 'the URL does not allow the model gpt-4o'],
  ['model_not_allowed', {}, 'the URL does not allow this model'],
  ['tool_not_allowed', { tool: 'add' }, 'the URL does not allow the tool add'],
])('a call that was refused for %s with %j names what it asked for, if it is known', (code, of, reason) => {
  const call = { outcome: code, model: null, tool: null, ...of, refusal: { ...NONE, code } };
  expect(endOf(call as unknown as Call, '')).toBe(`Refused, because ${reason}.`);
});
