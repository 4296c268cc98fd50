import { describe, expect, test } from 'vitest';
import {
  BUNDLED_PRICES,
  chargedPrice,
  type JsonObject,
  loadProviders,
  pricingOf,
  spendOf as spendOn,
} from '../../src/index.ts';
import { known } from '../apply.ts';
import { readEvents, spendOf } from './openai-call.ts';

const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-21T12:00:00Z') };

/** The shapes of usage, of an answer and of the events of a stream, for 1,000 tokens of input and 100 of output. */
const CHAT = {
  usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
  answer: (usage: object, model: string) => ({
    model,
    choices: [{ message: { content: 'x' }, finish_reason: 'stop' }],
    usage,
  }),
  events: (usage: object, model: string) => [
    { model, choices: [{ delta: { content: '"usage":{"cost":9}' }, finish_reason: 'stop' }] },
    { model, choices: [], usage },
    '[DONE]',
  ],
};
const RESPONSES = {
  usage: { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 },
  answer: (usage: object, model: string) => ({ model, status: 'completed', output: [], usage }),
  events: (usage: object, model: string) => [
    { type: 'response.completed', response: { model, status: 'completed', output: [], usage } },
  ],
};
const MESSAGES = {
  usage: { input_tokens: 1_000, output_tokens: 100 },
  answer: (usage: object, model: string) => ({ type: 'message', model, content: [], usage }),
  events: (usage: object, model: string) => [
    { type: 'message_start', message: { model, usage: { input_tokens: 1_000, output_tokens: 1 } } },
    { type: 'message_delta', usage },
    { type: 'message_stop' },
  ],
};
const EMBEDDINGS = {
  usage: { prompt_tokens: 1_000, total_tokens: 1_000 },
  answer: (usage: object, model: string) => ({ object: 'list', model, data: [], usage }),
};
const IMAGES = {
  usage: { input_tokens: 50, output_tokens: 1_056, total_tokens: 1_106 },
  answer: (usage: object) => ({ created: 1, data: [{ b64_json: 'AAAA' }], usage }),
};
const RERANK = {
  usage: { search_units: 1, total_tokens: 150 },
  answer: (usage: object, model: string) => ({ model, results: [{ index: 0 }], usage }),
};

type Form = {
  readonly usage: object;
  readonly answer: (usage: object, model: string) => object;
  readonly events?: (usage: object, model: string) => readonly (object | string)[];
};

const inDollars = (microusd: number) => ({ cost: microusd / 1e6 });
const inTicks = (microusd: number) => ({ cost_in_usd_ticks: microusd * 10_000 });
const inParts = (microusd: number) => ({ cost: { request_cost: 0.005, total_cost: microusd / 1e6 } });

/** Every endpoint of a vendor that states what it bills. */
const ENDPOINTS: readonly (readonly [string, string, string, Form, (microusd: number) => object])[] = [
  ['openrouter', '/api/v1/chat/completions', 'openai/gpt-4o-mini', CHAT, inDollars],
  ['openrouter', '/api/v1/completions', 'openai/gpt-4o-mini', CHAT, inDollars],
  ['openrouter', '/api/v1/responses', 'openai/gpt-4o-mini', RESPONSES, inDollars],
  ['openrouter', '/api/v1/messages', 'openai/gpt-4o-mini', MESSAGES, inDollars],
  ['xai', '/v1/chat/completions', 'grok-4', CHAT, inTicks],
  ['xai', '/v1/responses', 'grok-4', RESPONSES, inTicks],
  ['perplexity', '/chat/completions', 'sonar', CHAT, inParts],
  ['perplexity', '/v1/sonar', 'sonar', CHAT, inParts],
];

/** Its other endpoints: the list has no model that is billed by tokens there, so only the statement shows. */
const WITHOUT_LIST: readonly (readonly [string, string, Form, (microusd: number) => object])[] = [
  ['openrouter', '/api/v1/embeddings', EMBEDDINGS, inDollars],
  ['openrouter', '/api/v1/rerank', RERANK, inDollars],
  ['xai', '/v1/images/generations', IMAGES, inTicks],
  ['perplexity', '/v1/embeddings', EMBEDDINGS, inParts],
];

test('the tables have every endpoint of a vendor that states a cost', () => {
  const here = [...ENDPOINTS, ...WITHOUT_LIST].map(([id, path]) => `${id} ${path}`);
  const all = ['openrouter', 'xai', 'perplexity'].flatMap((id) =>
    known(id)
      .routes.filter(({ path, dialect }) => dialect.spend && spendOn(known(id), path))
      .map(({ path }) => `${id} ${path}`),
  );
  // Nothing bounds an agent of Perplexity, so it passes only without a limit.
  expect(here.toSorted()).toEqual(
    all
      .filter(
        (each) =>
          !/v1\/(agent|responses)$/.test(each) || each.startsWith('openrouter') || each.startsWith('xai'),
      )
      .toSorted(),
  );
});

test.each(WITHOUT_LIST)(
  'an answer of %s %s is charged the cost that the vendor states',
  (id, path, form, state) => {
    const reported = spendOf(id, path).readAnswer(form.answer({ ...form.usage, ...state(500_000) }, 'm'));
    expect(reported && chargedPrice(undefined, reported)?.microusd).toBe(500_000);
  },
);

test('a call of each endpoint of OpenRouter sends the highest price that may be billed', () => {
  for (const { path, dialect } of known('openrouter').routes) {
    if (!dialect.spend) continue;
    const body = spendOn(known('openrouter'), path)?.withHighestPrice?.({ model: 'm' }, { input: 2_500_000 });
    expect(body, path).toMatchObject({ model: 'm', provider: { max_price: { prompt: '2.5' } } });
  }
});

/** The cost of an answer whose usage has more members, read whole and from a stream. */
function costs(id: string, path: string, model: string, form: Form, more: object) {
  const pricing = pricingOf(known(id), model, NOW);
  const usage = { ...form.usage, ...more };
  const whole = spendOf(id, path).readAnswer(form.answer(usage, model));
  const streamed = form.events && readEvents(id, path, form.events(usage, model));
  const cost = (reported: typeof whole) => reported && chargedPrice(pricing, reported)?.microusd;
  return form.events ? [cost(whole), cost(streamed)] : [cost(whole)];
}

describe.each(ENDPOINTS)('%s %s (%s)', (id, path, model, form, state) => {
  const [list = 0] = costs(id, path, model, form, {});

  test("is charged the larger of the list price and the vendor's stated cost", () => {
    expect(list).toBeGreaterThan(0);
    for (const [stated, charged] of [
      [list, list],
      [list * 3, list * 3],
      [list + 0.2, list + 1],
      [list - 1, list],
      [0, list],
      [-5, list],
    ] as const)
      expect(costs(id, path, model, form, state(stated))).toEqual([charged, charged]);
  });

  test('without a stated cost is charged the list price, and with an unreadable one has an unknown cost', () => {
    for (const none of [{}, { cost: null, cost_in_usd_ticks: null }])
      expect(costs(id, path, model, form, none)).toEqual([list, list]);
    const [field = ''] = Object.keys(state(0));
    for (const absurd of ['0.01', 1e300, true, [], {}]) {
      const stated = id === 'perplexity' ? { cost: { total_cost: absurd } } : { [field]: absurd };
      expect(costs(id, path, model, form, stated)).toEqual([undefined, undefined]);
    }
  });

  test('has lines whose sum is the charge', () => {
    const pricing = pricingOf(known(id), model, NOW);
    const reported = spendOf(id, path).readAnswer(form.answer({ ...form.usage, ...state(list * 3) }, model));
    const lines = reported && chargedPrice(pricing, reported)?.lines;
    expect(lines?.at(-1)).toEqual({ unit: 'other', count: 1, rate: list * 2 });
  });
});

test("no other vendor's answer has a stated cost, whatever its usage contains", () => {
  const odd = { cost: 9, cost_in_usd_ticks: 9e10 };
  for (const [id, path] of [
    ['openai', '/v1/chat/completions'],
    ['groq', '/openai/v1/chat/completions'],
    ['together', '/v1/chat/completions'],
  ] as const)
    expect(spendOf(id, path).readAnswer(CHAT.answer({ ...CHAT.usage, ...odd }, 'm'))?.stated).toBeUndefined();
});

describe("an OpenRouter answer with the user's own provider key", () => {
  const list = 210;
  test.each([
    ['pays its host, and the fee', { is_byok: true }, list, 10, 220],
    ['pays its host, and the fee, where an older answer does not say so', {}, list, 10, 220],
    ['pays once where the host was paid by OpenRouter', { is_byok: false }, list, list, list],
    ['pays once where an older answer states both', {}, 300, 300, 300],
  ])('%s', (_what, more, hosts, own, charged) => {
    const cost_details = { upstream_inference_cost: hosts / 1e6 };
    const found = costs('openrouter', '/api/v1/chat/completions', 'openai/gpt-4o-mini', CHAT, {
      ...more,
      cost: own / 1e6,
      cost_details,
    });
    expect(found).toEqual([charged, charged]);
  });

  const hostParts = { upstream_inference_prompt_cost: 0.0009, upstream_inference_completions_cost: 0.0001 };
  test.each([
    ['the parts of what its host bills', { cost: 1e-5, cost_details: hostParts }, 1_010],
    [
      'parts that are more than the whole',
      { cost: 1e-5, cost_details: { ...hostParts, upstream_inference_cost: 0.0005 } },
      1_010,
    ],
    ['a host without a fee', { cost: null, cost_details: { upstream_inference_cost: 0.005 } }, 5_000],
    ['a fee without a host', { cost: 1e-5 }, undefined],
    ['a host that is null', { cost: 1e-5, cost_details: { upstream_inference_cost: null } }, undefined],
    ['a host that is no number', { cost: 1e-5, cost_details: { upstream_inference_cost: '1' } }, undefined],
  ])('with %s', (_what, more, charged) => {
    const usage = { is_byok: true, ...more };
    const found = costs('openrouter', '/api/v1/chat/completions', 'openai/gpt-4o-mini', CHAT, usage);
    expect(found).toEqual([charged, charged]);
  });
});

test("the parts of Perplexity's stated cost count if they exceed the total, or if the total is absent", () => {
  const of = (cost: object) => costs('perplexity', '/chat/completions', 'sonar', CHAT, { cost });
  const parts = { input_tokens_cost: 0.001, output_tokens_cost: 0.0001, request_cost: 0.5 };
  for (const cost of [parts, { ...parts, total_cost: 0.001 }, { ...parts, citation_tokens_cost: null }])
    expect(of(cost)).toEqual([501_100, 501_100]);
  expect(of({ ...parts, total_cost: 0.6 })).toEqual([600_000, 600_000]);
  expect(of({ ...parts, request_cost: '0.5', total_cost: 0.6 })).toEqual([undefined, undefined]);
});

test('of several stated costs in a stream the largest counts', () => {
  const { usage } = CHAT;
  const [first, , last] = CHAT.events(usage, 'openai/gpt-4o-mini');
  const chunk = (cost: number) => ({ choices: [], usage: { ...usage, cost } });
  const events = [first, chunk(0.004), chunk(0.002), last];
  const reported = readEvents('openrouter', '/api/v1/chat/completions', events);
  expect(reported?.stated?.microusd).toBe(4_000);
});

describe("Perplexity's fee for a request", () => {
  const tokens = { prompt_tokens: 14, completion_tokens: 100, total_tokens: 114 };
  const path = '/chat/completions';
  const of = (model: string, more: JsonObject, provider = known('perplexity')) => {
    const reported = spendOf('perplexity', path).readAnswer(CHAT.answer({ ...tokens, ...more }, model));
    return reported && chargedPrice(pricingOf(provider, model, NOW), reported);
  };

  test.each([
    ['sonar', 'low', 5_114],
    ['sonar', 'medium', 8_114],
    ['sonar', 'high', 12_114],
    ['sonar', 'vast', 12_114],
    ['sonar', undefined, 12_114],
    ['sonar-pro', 'low', 7_542],
    ['sonar-pro', 'constructor', 15_542],
  ])('%s with a context of %s costs %s with its tokens', (model, size, microusd) => {
    const charged = of(model, { search_context_size: size });
    expect(charged?.microusd).toBe(microusd);
    const fee = charged?.lines?.find(({ unit }) => unit === 'requests');
    expect(fee?.rate).toBe(microusd - (model === 'sonar' ? 114 : 1_542));
    expect(charged?.lines?.some(({ unit }) => unit === 'other')).toBe(false);
  });

  test("is the operator's own if PROVIDERS_FILE states one", () => {
    const pricing = { sonar: { input: 1_000_000, output: 1_000_000, requests: 20_000 } };
    const own = loadProviders(JSON.stringify({ perplexity: { pricing } })).get('perplexity');
    expect(of('sonar', { search_context_size: 'low' }, own)?.microusd).toBe(20_114);
  });
});

test('a server that extends several providers reads the stated costs of each, and sends the highest price of each', () => {
  const entry = { extends: ['openai', 'openrouter', 'xai'], base_url: 'https://a.example' };
  const acme = loadProviders(JSON.stringify({ acme: entry })).get('acme');
  const spend = acme && spendOn(acme, '/v1/chat/completions');
  const usage = { ...CHAT.usage, cost: 0.001, cost_in_usd_ticks: 2e7 };
  expect(spend?.readAnswer(CHAT.answer(usage, 'm'))?.stated?.microusd).toBe(2_000);
  expect(spend?.withHighestPrice?.({}, { input: 1 })).toMatchObject({ provider: {} });
});
