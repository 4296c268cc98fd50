import { expect, test } from 'vitest';
import { fitsUrl, hasLimits, nameOfUrl, planChange, type Url, wordsOf } from '../src/data/urls.ts';

const url = (fields: Partial<Url> = {}): Url => ({
  ...{ id: '12345678-0000-4000-8000-000000000000', kind: 'llm', provider: 'sandbox', method: 'POST' },
  ...{ paths: ['/v1/chat/completions'], models: null, server: null, bundle_id: null },
  ...{ external_session: null, external_user: 'adam', virtual_key: null, api_key: null, metadata: null },
  ...{ issued_at: 0, expires_at: 10_000, status: 'active', cost_limit: 1_000_000, max_uses: 10 },
  ...{ calls_per_minute: null, calls_per_day: null, concurrent_calls: null, tokens_per_minute: null },
  ...{ conditions: null, shared_budgets: [], revision: 1, settled: { used: 0, spent: 0 }, live: null },
  ...{ session_id: 's', session_name: null, ...fields },
});

const RAISE = { kind: 'raise', dollars: 5_000_000, uses: 0 } as const;

test('a raise adds to each limit, and skips URLs without limits, ended URLs and parts of a bundle', () => {
  const urls = [
    url(),
    url({ external_user: 'grace', cost_limit: 250_000 }),
    url({ cost_limit: null }),
    url({ status: 'expired' }),
    url({ bundle_id: 'b' }),
    url({ bundle_id: 'b' }),
  ];
  const plan = planChange(RAISE, urls);
  expect(plan.planned.map(({ fields }) => fields)).toEqual([
    { cost_limit: 6_000_000 },
    { cost_limit: 5_250_000 },
  ]);
  expect(wordsOf(plan)).toEqual([
    'The limits of 2 URLs of 2 users rise from the next call on.',
    '2 URLs may spend $5.00 more each, in all $10.00.',
    '1 URL stays as it is: it has no such limit.',
    '1 URL stays as it is: it has ended, and never comes back.',
    '2 URLs stay as they are: they change with the URLs of their bundles.',
  ]);
});

test('a raise of uses leaves the money limit unchanged', () => {
  const plan = planChange({ kind: 'raise', dollars: 0, uses: 1_500 }, [url()]);
  expect(plan.planned[0]?.fields).toEqual({ max_uses: 1_510 });
  expect(wordsOf(plan)[1]).toBe('1 URL may make 1,500 more calls each.');
});

test('an extension counts from the present end of each URL', () => {
  const plan = planChange({ kind: 'extend', seconds: 2 * 86_400 }, [url(), url({ expires_at: 20_000 })]);
  expect(plan.planned.map(({ fields }) => fields?.expires_at)).toEqual([182_800, 192_800]);
  expect(wordsOf(plan)[0]).toBe('2 URLs of 1 user end 2 days later than now.');
});

test('a revocation includes parts of bundles, and says that nothing changes if all have ended', () => {
  expect(planChange({ kind: 'revoke' }, [url({ bundle_id: 'b' })]).planned).toHaveLength(1);
  const plan = planChange({ kind: 'revoke' }, [url({ status: 'revoked' }), url({ status: 'expired' })]);
  expect(wordsOf(plan)).toEqual([
    'Nothing changes.',
    '2 URLs stay as they are: they have ended, and never come back.',
  ]);
});

test.each([
  [{ name: 'CHAT' }, true],
  [{ name: '1234' }, true],
  [{ name: 'other' }, false],
  [{ state: 'exhausted' }, false],
  [{ model: 'sandbox-1' }, true],
  [{ model: 'gpt-5' }, false],
  [{ provider: 'openai' }, false],
  [{ external_user: 'grace' }, false],
  [{ ends: '1h' }, false],
  [{ ends: '1d' }, true],
])('a URL and the filter %j', (filters, fits) => {
  expect(fitsUrl(url({ session_name: 'chat of adam', models: ['sandbox-1'] }), filters, 5_000)).toBe(fits);
});

test('a URL without a list of models allows every model, and an ended URL is not ended again', () => {
  expect(fitsUrl(url(), { model: 'gpt-5' }, 0)).toBe(true);
  expect(fitsUrl(url({ status: 'expired' }), { ends: '7d' }, 20_000)).toBe(false);
});

test('a URL is named by its session and the beginning of its id', () => {
  expect(nameOfUrl(url())).toBe('12345678');
  expect(nameOfUrl(url({ external_session: 'chat-7' }))).toBe('chat-7 · 12345678');
});

test('the console recognises limits that a URL already has', () => {
  expect(hasLimits(url({ cost_limit: 5, max_uses: 3 }), { cost_limit: 5 })).toBe(true);
  expect(hasLimits(url({ cost_limit: 5, max_uses: 3 }), { cost_limit: 5, max_uses: 4 })).toBe(false);
});

test("a filter in the page's address applies to the metadata field that it names, and finds nothing if no URL has the field", () => {
  const own = url({ metadata: { team: 'blue' } });
  for (const filters of [{ session_id: 's' }, { id: own.id }, { 'metadata.team': 'blue' }])
    expect(fitsUrl(own, filters, 0), JSON.stringify(filters)).toBe(true);
  for (const filters of [{ session_id: 't' }, { 'metadata.team': 'red' }, { user: 'adam' }])
    expect(fitsUrl(own, filters, 0), JSON.stringify(filters)).toBe(false);
});
