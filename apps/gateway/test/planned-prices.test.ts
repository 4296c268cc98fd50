import {
  BUNDLED_KNOWLEDGE,
  type JsonObject,
  loadProviders,
  type Prices,
  readPriceList,
} from '@presign/providers';
import { afterAll, expect, test } from 'vitest';
import { grantMemory } from '../src/grant/policy.ts';
import type { LlmGrant } from '../src/grant/verify.ts';
import { planBody } from '../src/llm/plan-body.ts';
import { readQuota } from '../src/share/read-quota.ts';
import { startBodyWorkers } from '../src/workers/body-workers.ts';
import { textOf } from './text-of.ts';

const pricesOf = (dollars: number): Prices => {
  const prices = { input_mtok: dollars, output_mtok: dollars };
  const text = JSON.stringify([{ id: 'openai', models: [{ id: 'm', match: { equals: 'm' }, prices }] }]);
  const list = readPriceList(text, { source: 'file', date: '2026-11-22' });
  return { id: list.id, layers: [[list]] };
};
const OLD = pricesOf(6);
const NEW = pricesOf(10);

/** The lists that the services read, one after the other; the last stays. */
let lists: readonly Prices[] = [];
const prices = {
  current: () => {
    const [next = NEW, ...rest] = lists;
    if (rest.length > 0) lists = rest;
    return next;
  },
  status: () => ({ lists: [], problem: undefined }),
};
const quota = readQuota(Date.now);
const knowledge = { current: () => BUNDLED_KNOWLEDGE, providers: new Map() };
const start = { prices, knowledge, providersFile: undefined, maxBodyBytes: 2 ** 24 };
const bodyWorkers = startBodyWorkers(start, quota);
afterAll(() => bodyWorkers.close());

const provider = loadProviders(undefined).get('openai');
const grant = { id: 'g', sessionId: 's', provider, method: 'POST' } as LlmGrant;
const policy = {
  ref: { id: 'g', partition: 0, accountId: 'a', credentialId: 'c', budgetIds: ['p'] },
  accountId: 'a',
  apiKeyId: undefined,
  virtualKeyId: undefined,
  externalUser: undefined,
  server: undefined,
  config: undefined,
  costLimited: true,
  sharedIds: [],
};
const body = JSON.stringify({
  model: 'm',
  messages: [{ role: 'user', content: 'x'.repeat(2_200_000) }],
  max_tokens: 100,
});

test.each([
  ['when its worker has its body', [OLD, OLD, NEW], OLD, 6],
  ['while it waits for a worker', [OLD, NEW], NEW, 10],
])(
  'if a new price list changes %s during a call, its hold, cost and count still use one list',
  async (_when, sequence, used, dollars) => {
    lists = sequence;
    const planned = await planBody({ bodyWorkers, readQuota: quota, prices, memory: grantMemory() }, {
      ...{ grant, policy, now: Date.now(), target: { path: '/v1/chat/completions', query: '' } },
      ...{ need: 'must', headers: {} },
      arrived: { raw: Buffer.from(body), isJson: true },
    } as Parameters<typeof planBody>[1]);
    if ('refusal' in planned) throw new Error(planned.refusal.code);
    const { plan, counting } = planned;
    expect(plan.hold?.ratePerMtok).toBe(dollars * 1_000_000);
    expect(plan.hold?.fixedMicrousd).toBe(plan.inputTokens * dollars);
    expect(plan.pricing?.cost({ input_tokens: 1_000, output_tokens: 10 })).toBe(1_010 * dollars);
    expect(counting?.plan.prices.id).toBe(used.id);
    const { max_tokens: _, ...sent } = JSON.parse(body) as JsonObject;
    expect(JSON.parse(textOf(plan.bodyFor(50)))).toEqual({
      ...sent,
      max_completion_tokens: 50,
      service_tier: 'default',
    });
  },
);
