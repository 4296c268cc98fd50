import { BUILT_IN_PROVIDERS, errorFactsIn, type Pricing, type VendorRefusals } from '@presign/providers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Admitted } from '../src/limits/admit.ts';
import { judge as judgeCall } from '../src/llm/judge-end.ts';
import type { Metered } from '../src/llm/meter.ts';
import type { Plan } from '../src/llm/plan.ts';
import type { Sent } from '../src/llm/send.ts';

const HELD = 1_000;
const admitted = { is: 'admitted', heldMicrousd: HELD, tokens: 100 } as Admitted;
const priced: Pricing = {
  origin: { source: 'bundled', list: undefined, date: undefined },
  rates: {},
  cost: ({ input_tokens }) => input_tokens,
  lines: ({ input_tokens: count = 0 }) => [{ unit: 'input_tokens', count, rate: 1_000_000 }],
  dearestShort: 1,
  dearestInput: 1,
  dearestOutput: 1,
  contextWindow: undefined,
  fees: () => 0,
};
/** A plan whose usage costs what it says. */
const plan = (limited: boolean, free = false): Plan => ({
  hold: limited ? { fixedMicrousd: HELD, ratePerMtok: undefined, askedTokens: 0, leastTokens: 0 } : undefined,
  worstTokens: undefined,
  writesBound: false,
  inputTokens: 0,
  leastInput: undefined,
  knowledge: undefined,
  spend: undefined,
  model: 'm',
  pricing: priced,
  free,
  streams: false,
  echoes: false,
  dropsUsageEvent: false,
  rewritten: true,
  askedTokens: 0,
  answeredBy: () => ({ pricing: priced }),
  bodyFor: () => null,
});
const judge = (sent: Sent, metered: Metered, plan: Plan, refusals: VendorRefusals = 'undocumented') =>
  judgeCall({ plan, grant: { provider: { refusals } } }, admitted, sent, metered);
const reporting = (cost?: number, ownError = false): Metered => ({
  rest: undefined,
  reported: cost === undefined ? undefined : { model: 'm', usage: { input_tokens: cost, output_tokens: 0 } },
  ownError,
  error: ownError ? errorFactsIn({ error: { code: 'some_code', message: 'no' } }) : undefined,
});

/** Errors that are taken to be free unless a provider documents otherwise. */
const FREE_STATUSES = [400, 401, 404, 405, 413, 415, 422, 429];
const STATUS = fc.integer({ min: 200, max: 599 });
const SENT: fc.Arbitrary<Sent> = fc.oneof(
  fc.record({ is: fc.constant('complete' as const), status: STATUS }),
  fc.record({ is: fc.constant('broken' as const), status: STATUS, why: fc.constant('failure' as const) }),
  fc.constantFrom<Sent>(
    { is: 'unsent', isBounded: false, blocked: false, code: undefined },
    { is: 'unsent', isBounded: false, blocked: true, code: undefined },
    { is: 'unanswered', why: 'timeout' },
    { is: 'unanswered', why: 'failure' },
    { is: 'unavailable' },
    { is: 'unsealable' },
    { is: 'failed' },
  ),
);

describe('under a spend limit', () => {
  test('no call is charged more than its hold, and usage beyond the hold is an overrun', () => {
    fc.assert(
      fc.property(
        SENT,
        fc.option(fc.nat(5_000), { nil: undefined }),
        fc.boolean(),
        (sent, cost, ownError) => {
          const charge = judge(sent, reporting(cost, ownError), plan(true));
          expect(charge.costMicrousd).toBeLessThanOrEqual(HELD);
          expect(charge.overrunMicrousd).toBe(charge.usage ? Math.max(0, Number(cost) - HELD) : 0);
          const paid = Number(charge.costMicrousd) + charge.overrunMicrousd;
          expect(charge.lines?.[0]?.count).toBe(charge.usage ? paid : undefined);
        },
      ),
    );
  });

  test('a call is charged less than its hold only if its usage is complete, or if the provider did no paid work', () => {
    fc.assert(
      fc.property(
        SENT,
        fc.option(fc.nat(5_000), { nil: undefined }),
        fc.boolean(),
        (sent, cost, ownError) => {
          const { costMicrousd } = judge(sent, reporting(cost, ownError), plan(true));
          if (costMicrousd === HELD) return;
          const status = 'status' in sent ? sent.status : 0;
          const reportedInFull = sent.is === 'complete' && status < 400 && cost === costMicrousd;
          const refused =
            sent.is === 'complete' && (FREE_STATUSES.includes(status) || (status >= 500 && ownError));
          const neverSent = ['unsent', 'unavailable', 'unsealable'].includes(sent.is);
          expect(reportedInFull || ((refused || neverSent) && costMicrousd === 0)).toBe(true);
        },
      ),
    );
  });

  test.each<[string, Sent, Metered]>([
    ['a success without usage', { is: 'complete', status: 200 }, reporting()],
    ['a redirect', { is: 'complete', status: 302 }, reporting()],
    ['a broken stream, whatever it reported', { is: 'broken', status: 200, why: 'failure' }, reporting(5)],
    ['a broken error', { is: 'broken', status: 400, why: 'failure' }, reporting()],
    ['a 403', { is: 'complete', status: 403 }, reporting(undefined, true)],
    ['a 408', { is: 'complete', status: 408 }, reporting(undefined, true)],
    ["an intermediary's 502", { is: 'complete', status: 502 }, reporting()],
    ['a call that got no answer', { is: 'unanswered', why: 'failure' }, reporting()],
    ['a call that a revocation cut', { is: 'unanswered', why: 'revoked' }, reporting()],
    ['a timeout', { is: 'unanswered', why: 'timeout' }, reporting()],
    ['a fault of the gateway', { is: 'failed' }, reporting()],
  ])('%s is charged its hold', (_what, sent, metered) => {
    expect(judge(sent, metered, plan(true))).toMatchObject({ uses: 1, costMicrousd: HELD });
  });

  test('usage that cannot be priced is charged its hold', () => {
    const unpriced = { ...plan(true), answeredBy: () => ({ pricing: undefined }) };
    expect(judge({ is: 'complete', status: 200 }, reporting(5), unpriced).costMicrousd).toBe(HELD);
  });

  test('an answer from another model without a price is charged its hold, and the entry says why', () => {
    const elsewhere = { ...plan(true), answeredBy: () => ({ other: 'n', pricing: undefined }) };
    expect(judge({ is: 'complete', status: 200 }, reporting(5), elsewhere)).toMatchObject({
      ...{ costMicrousd: HELD, model: 'n', doubt: { why: 'model' } },
    });
  });
});

describe('usage that contradicts itself', () => {
  const done: Sent = { is: 'complete', status: 200 };
  const doubted = (usage?: { input_tokens: number }): Metered => ({
    ...reporting(),
    reported: { model: 'm', usage, doubt: { why: 'falls' } },
  });

  test('is charged its hold under a limit, and has no known cost without one', () => {
    const doubt = { why: 'falls' };
    expect(judge(done, doubted(), plan(true))).toMatchObject({
      costMicrousd: HELD,
      overrunMicrousd: 0,
      doubt,
    });
    expect(judge(done, doubted(), plan(false))).toMatchObject({ costMicrousd: undefined, doubt });
  });

  test('is charged the larger count if that resolves the contradiction', () => {
    expect(judge(done, doubted({ input_tokens: 7 }), plan(true)).costMicrousd).toBe(7);
  });
});

test('without a limit an unknown cost is undefined, and a free call costs 0', () => {
  const done: Sent = { is: 'complete', status: 200 };
  expect(judge(done, reporting(), plan(false)).costMicrousd).toBeUndefined();
  expect(judge(done, reporting(7), plan(false)).costMicrousd).toBe(7);
  expect(judge(done, reporting(), plan(false, true)).costMicrousd).toBe(0);
});

describe('a provider that documents what it bills', () => {
  const refusalsOf = (id: string): VendorRefusals => BUILT_IN_PROVIDERS.get(id)?.refusals ?? 'undocumented';
  const failed = (body: object | undefined): Metered => ({
    ...reporting(undefined, body !== undefined),
    error: body && errorFactsIn(body),
  });
  const withCode = (code: string) => failed({ error: { code, message: 'no' } });

  test.each<[string, string, number, Metered, 0 | 1, number]>([
    ['bills a content filter', 'azure-openai', 400, withCode('content_filter'), 1, HELD],
    ['bills an input limit', 'azure-openai', 400, withCode('context_length_exceeded'), 1, HELD],
    ['bills a 400 that could not be read', 'azure-openai', 400, failed(undefined), 1, HELD],
    ['does not bill another 400', 'azure-openai', 400, withCode('invalid_request'), 1, 0],
    ['bills its timeout', 'azure-openai', 408, withCode('timeout'), 1, HELD],
    ['does not bill a rate limit', 'azure-openai', 429, withCode('429'), 0, 0],
    ['does not bill a moderated call', 'openrouter', 403, withCode('403'), 0, 0],
    ['does not bill missing credits', 'openrouter', 402, withCode('402'), 0, 0],
    ['does not bill a failed request', 'google', 500, withCode('500'), 0, 0],
    ['does not document a bad gateway', 'google', 502, withCode('502'), 1, 0],
  ])('%s: %s %i', (_what, id, status, metered, uses, costMicrousd) => {
    const charge = judge({ is: 'complete', status }, metered, plan(true), refusalsOf(id));
    expect(charge).toMatchObject({ uses, costMicrousd, overrunMicrousd: 0 });
  });

  test('a fee above the hold is an overrun', () => {
    const violation = failed({
      code: 'permission-denied',
      error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
    });
    expect(judge({ is: 'complete', status: 403 }, violation, plan(true), refusalsOf('xai'))).toMatchObject({
      uses: 1,
      costMicrousd: HELD,
      overrunMicrousd: 50_000 - HELD,
    });
  });

  test('a 401, 429, 503 or 529 that the provider bills is counted as a use', () => {
    for (const status of [401, 429, 503, 529]) {
      const sent: Sent = { is: 'complete', status };
      const refusals: VendorRefusals = [{ status, code: 'ran', billing: 'billed' }];
      expect(judge(sent, withCode('ran'), plan(true), refusals)).toMatchObject({
        uses: 1,
        costMicrousd: HELD,
      });
      expect(judge(sent, withCode('not_ran'), plan(true), refusals)).toMatchObject({
        uses: 0,
        costMicrousd: 0,
      });
    }
  });
});
