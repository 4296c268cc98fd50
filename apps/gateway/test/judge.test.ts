import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Admitted } from '../src/limits/admit.ts';
import { judge } from '../src/llm/judge-end.ts';
import type { Metered } from '../src/llm/meter.ts';
import type { Plan } from '../src/llm/plan.ts';
import type { Sent } from '../src/llm/send.ts';

const HELD = 1_000;
const admitted = { is: 'admitted', heldMicrousd: HELD, tokens: 100 } as Admitted;
/** A plan whose usage costs what it says. */
const plan = (limited: boolean, free = false): Plan => ({
  hold: limited ? { fixedMicrousd: HELD, ratePerMtok: undefined, askedTokens: 0, leastTokens: 0 } : undefined,
  spend: undefined,
  model: 'm',
  pricing: {
    cost: ({ input_tokens }) => input_tokens,
    dearestInput: 1,
    dearestOutput: 1,
    contextWindow: undefined,
    fees: () => 0,
  },
  free,
  streams: false,
  dropsUsageEvent: false,
  rewritten: true,
  bodyFor: () => null,
});
const told = (cost?: number, ownError = false): Metered => ({
  rest: undefined,
  reported: cost === undefined ? undefined : { model: 'm', usage: { input_tokens: cost, output_tokens: 0 } },
  ownError,
});

const STATUS = fc.integer({ min: 200, max: 599 });
const SENT: fc.Arbitrary<Sent> = fc.oneof(
  fc.record({ is: fc.constantFrom('complete' as const, 'broken' as const), status: STATUS }),
  fc.constantFrom<Sent>(
    { is: 'unsent', blocked: false, code: undefined },
    { is: 'unsent', blocked: true, code: undefined },
    { is: 'unanswered', why: 'timeout' },
    { is: 'unanswered', why: 'failure' },
    { is: 'unavailable' },
    { is: 'unsealable' },
    { is: 'failed' },
  ),
);

describe('under a spend limit', () => {
  test('no call is charged more than its hold, and what was used beyond it is told', () => {
    fc.assert(
      fc.property(
        SENT,
        fc.option(fc.nat(5_000), { nil: undefined }),
        fc.boolean(),
        (sent, cost, ownError) => {
          const charge = judge(sent, told(cost, ownError), plan(true), admitted);
          expect(charge.costMicrousd).toBeLessThanOrEqual(HELD);
          expect(charge.overrunMicrousd).toBe(charge.usage ? Math.max(0, Number(cost) - HELD) : 0);
        },
      ),
    );
  });

  test('a call is charged less than its hold only for usage told in full, or where nothing was paid', () => {
    fc.assert(
      fc.property(
        SENT,
        fc.option(fc.nat(5_000), { nil: undefined }),
        fc.boolean(),
        (sent, cost, ownError) => {
          const { costMicrousd } = judge(sent, told(cost, ownError), plan(true), admitted);
          if (costMicrousd === HELD) return;
          const status = 'status' in sent ? sent.status : 0;
          const usageTold = sent.is === 'complete' && status < 400 && cost === costMicrousd;
          const refused = sent.is === 'complete' && status >= 400 && (status < 500 || ownError);
          const neverSent = ['unsent', 'unavailable', 'unsealable'].includes(sent.is);
          expect(usageTold || ((refused || neverSent) && costMicrousd === 0)).toBe(true);
        },
      ),
    );
  });

  test.each<[string, Sent, Metered]>([
    ['a success without usage', { is: 'complete', status: 200 }, told()],
    ['a redirect', { is: 'complete', status: 302 }, told()],
    ['a broken stream, whatever it said', { is: 'broken', status: 200 }, told(5)],
    ['a broken error', { is: 'broken', status: 400 }, told()],
    ["an intermediary's 502", { is: 'complete', status: 502 }, told()],
    ['a call that got no answer', { is: 'unanswered', why: 'failure' }, told()],
    ['a call that a revocation cut', { is: 'unanswered', why: 'revoked' }, told()],
    ['a timeout', { is: 'unanswered', why: 'timeout' }, told()],
    ['a fault of ours', { is: 'failed' }, told()],
  ])('%s is charged its hold', (_what, sent, metered) => {
    expect(judge(sent, metered, plan(true), admitted)).toMatchObject({ uses: 1, costMicrousd: HELD });
  });

  test('usage that cannot be priced is charged its hold', () => {
    const unpriced = { ...plan(true), pricing: undefined };
    expect(judge({ is: 'complete', status: 200 }, told(5), unpriced, admitted).costMicrousd).toBe(HELD);
  });
});

test('without a limit a cost that is not known is not taken for 0, and a free call is', () => {
  const done: Sent = { is: 'complete', status: 200 };
  expect(judge(done, told(), plan(false), admitted).costMicrousd).toBeUndefined();
  expect(judge(done, told(7), plan(false), admitted).costMicrousd).toBe(7);
  expect(judge(done, told(), plan(false, true), admitted).costMicrousd).toBe(0);
});
