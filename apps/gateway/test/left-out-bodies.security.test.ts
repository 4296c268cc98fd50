import { BUNDLED_KNOWLEDGE, BUNDLED_PRICES, dialectOf, loadProviders } from '@presign/providers';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { compileRules } from '../src/grant/call-rules.ts';
import { grantMemory, type Policy } from '../src/grant/policy.ts';
import type { LlmGrant } from '../src/grant/verify.ts';
import { MODEST, scanBody } from '../src/llm/body.ts';
import { planBody } from '../src/llm/plan-body.ts';
import { planRead, planWhole, scanToPlan } from '../src/llm/plan-read.ts';
import { startBodyWorkers } from '../src/workers/body-workers.ts';
import { textOf } from './text-of.ts';

const providers = loadProviders(undefined);
const NOW = Date.parse('2026-11-30T12:00:00Z');
const prices = { current: () => BUNDLED_PRICES, status: () => ({ lists: [], problem: undefined }) };
const knowledge = { current: () => BUNDLED_KNOWLEDGE, providers: new Map() };
/** The work that was charged, in order. */
let charged: number[] = [];
const readQuota = { waitMs: () => 0, take: (_: unknown, work: number) => void charged.push(work) };
const start = { prices, knowledge, providersFile: undefined, maxBodyBytes: 2 ** 24 };
const bodyWorkers = startBodyWorkers(start, readQuota);
afterAll(() => bodyWorkers.close());
beforeEach(() => {
  charged = [];
});

const SMALL = 20;
/** A body with so many of these is read in a worker. */
const LARGE = 80_000;
/** A body with so many is read on the event loop, but not twice. */
const ONCE = 40_000;
const words = (times: number) => 'A few words that fill a body. '.repeat(times);
const chat = (times: number, more = '') =>
  `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"${words(times)}"}]${more}}`;
const claude = (times: number, more = '') =>
  `{"model":"claude-sonnet-4-5","max_tokens":50,"system":"${words(times)}","messages":[{"role":"user","content":[{"type":"text","text":"${words(times)}"}${more}]}]}`;
/** The plan needs its text, because the provider writes it in another form. */
const TOOL_USE = `,{"type":"tool_use","id":"a","name":"f","input":{},"text":"${words(SMALL)}"}`;

type Case = readonly [
  what: string,
  id: string,
  path: string,
  bodyOf: (times: number) => string,
  source?: Pick<Policy, 'config' | 'models' | 'conditions'>,
];
const CHAT = ['openai', '/v1/chat/completions'] as const;
const CASES: readonly Case[] = [
  ['chat', ...CHAT, (times) => chat(times)],
  ['a stream', ...CHAT, (times) => chat(times, ',"stream":true')],
  ['a config beside the texts', ...CHAT, (times) => chat(times), { config: { max_tokens: 7 } }],
  ['a config in their place', ...CHAT, (times) => chat(times), { config: { messages: [] } }],
  ['a field without a bound', ...CHAT, (times) => chat(times, ',"prediction":{}')],
  ['a model that is not allowed', ...CHAT, (times) => chat(times), { config: undefined, models: ['gpt-4o'] }],
  ['no JSON', ...CHAT, (times) => `${chat(times)}}`],
  ['Responses', 'openai', '/v1/responses', (times) => `{"model":"gpt-4o-mini","input":"${words(times)}"}`],
  ['messages', 'anthropic', '/v1/messages', (times) => claude(times)],
  ['a call of a tool', 'anthropic', '/v1/messages', (times) => claude(times, TOOL_USE)],
];

/** A call of such a body: as the gateway plans it, and as it is planned from all of its texts. */
async function both([what, id, path, bodyOf, source]: Case, times: number) {
  const provider = providers.get(id);
  if (!provider) throw new Error(id);
  const grant = { id: what, sessionId: 's', provider, method: 'POST' } as LlmGrant;
  const target = { path, query: '' };
  const limited = { costLimited: true, tokenLimited: true };
  const policy = { config: undefined, accountId: 'a', ...limited, ...source } as Policy;
  const raw = Buffer.from(bodyOf(times));
  const rules = compileRules(policy, dialectOf(provider, path));
  const asked = { grant, target, rules, limited, at: { prices: BUNDLED_PRICES, now: NOW } };
  const whole = planWhole(raw, 'must', asked, scanBody(raw, 'must', rules.names, MODEST));
  const isLight = isReadOnce(raw, asked);
  const memory = grantMemory();
  const planned = await planBody({ bodyWorkers, readQuota, prices, memory }, {
    ...{ grant, policy, now: NOW, target, need: 'must', headers: {} },
    arrived: { raw: Buffer.from(raw), isJson: true },
  } as Parameters<typeof planBody>[1]);
  return { whole: shown(whole), planned: shown(planned), isLight };
}

function isReadOnce(raw: Buffer, asked: Parameters<typeof scanToPlan>[2]): boolean {
  let isOnce = true;
  const scan = scanToPlan(raw, 'must', asked, MODEST);
  planRead(raw, 'must', asked, scan, () => {
    isOnce = false;
    return true;
  });
  return isOnce;
}

/** A plan as data, with the bytes that it sends, or the refusal. */
function shown(planned: Awaited<ReturnType<typeof planBody>> | ReturnType<typeof planWhole>) {
  if ('refusal' in planned) {
    const { refusal, model, unbounded } = planned;
    return { refusal, model, unbounded };
  }
  const { bodyFor, spend, answeredBy: _, pricing, ...data } = planned.plan;
  const cost = pricing?.cost({ input_tokens: 1_000, output_tokens: 10 });
  // A worker writes each bound as a new one, at the end.
  const sent = textOf(bodyFor(data.askedTokens - 1));
  return { ...data, cost, isMetered: spend !== undefined, sent };
}

describe.each(CASES.map((each) => ({ what: each[0], each })))(
  'with long texts, a body of $what',
  ({ each }) => {
    test('is planned, sent or refused as it is when it is read whole', async () => {
      const { whole, planned } = await both(each, SMALL);
      expect(planned).toEqual(whole);
    });

    test('is planned, sent or refused alike in a worker', async () => {
      const { whole, planned } = await both(each, LARGE);
      expect(planned).toEqual(whole);
    });

    test('is planned, sent or refused alike in a worker if it would be read there twice', async () => {
      const { whole, planned } = await both(each, ONCE);
      expect(planned).toEqual(whole);
    });

    test('is charged for each time that it is read', async () => {
      const { isLight } = await both(each, SMALL);
      expect(charged).toHaveLength(isLight ? 1 : 2);
      expect(new Set(charged).size).toBe(1);
    });
  },
);

test('most of these bodies are read without their texts, and some whole', async () => {
  const light: string[] = [];
  for (const each of CASES) if ((await both(each, SMALL)).isLight) light.push(each[0]);
  expect(light).toEqual(['chat', 'a stream', 'a config beside the texts', 'Responses', 'messages']);
});
