import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { grantIdOf } from '../chaos/sample.ts';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from '../spend/many-calls.ts';

/** 1,000 tokens of input and 100 of output. */
const CHAT = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };
const COUNTS = { input_tokens: 1_000, output_tokens: 100 };
/** Their list prices: gpt-4o-mini $0.15 and $0.60, gpt-4o $2.50 and $10. */
const [MINI, LARGE] = [210, 3_500];

let upstream: Upstream;
let stack: Stack;
/** The model that the upstream says has answered. */
let answers = '';

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const said = { id: 'c', model: answers };
    const message = { role: 'assistant', content: 'x' };
    const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] }];
    const body = seen.url.includes('/messages')
      ? { ...said, type: 'message', content: [{ type: 'text', text: 'x' }], usage: COUNTS }
      : seen.url.includes('/responses')
        ? {
            ...said,
            object: 'response',
            status: 'completed',
            output,
            usage: { ...COUNTS, total_tokens: 1_100 },
          }
        : { ...said, choices: [{ index: 0, message, finish_reason: 'stop' }], usage: CHAT };
    response.end(JSON.stringify(body));
  });
  const base_url = upstream.url;
  const pricing = {
    'claude-small': { input: 500_000, output: 2_500_000 },
    'claude-large': { input: 5_000_000, output: 25_000_000 },
  };
  stack = await startStack({
    providers: {
      openai: { base_url },
      openrouter: { base_url },
      anthropic: { base_url, pricing },
      'azure-openai': { base_url, deployments: { prod: 'gpt-4o-mini', 'prod-eu': 'eu/gpt-4o-mini' } },
    },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ON_DEPLOYMENT = (name: string) => `/openai/deployments/${name}/chat/completions`;
const messages = [{ role: 'user', content: 'x'.repeat(4_000) }];

type Asked = {
  readonly provider: string;
  readonly path: string;
  readonly body: object;
  readonly answered: string;
};

async function call({ provider, path, body, answered }: Asked, limits: object) {
  answers = answered;
  const { url } = await stack.issue({ provider, path, client_api_key: 'sk', ...limits });
  const sent = await post(url, { max_tokens: 100, messages, ...body });
  expect(sent.status, sent.bytes.toString()).toBe(200);
  await callsSettled(stack);
  const [row] = await stack.db
    .select()
    .from(ledger)
    .where(eq(ledger.grantId, grantIdOf(url)));
  return { row, status: await statusOf(url) };
}

const azure = (name: string, answered: string): Asked => ({
  ...{ provider: 'azure-openai', path: ON_DEPLOYMENT(name), body: {}, answered },
});
const routed = (answered: string, body: object): Asked => ({
  ...{ provider: 'openrouter', path: '/api/v1/chat/completions', body, answered },
});
const RESPONSES = {
  input: 'x'.repeat(4_000),
  messages: undefined,
  max_tokens: undefined,
  max_output_tokens: 100,
};

/** Calls, the model of their row, and their cost. */
const CALLS: [string, Asked, string, number | null, onlyUnlimited?: true][] = [
  [
    'a date behind the name',
    {
      provider: 'openai',
      path: '/v1/chat/completions',
      body: { model: 'gpt-4o-mini' },
      answered: 'gpt-4o-mini-2024-07-18',
    },
    'gpt-4o-mini',
    MINI,
  ],
  [
    'another model of the vendor',
    { provider: 'openai', path: '/v1/chat/completions', body: { model: 'gpt-4o' }, answered: 'gpt-4o-mini' },
    'gpt-4o-mini',
    MINI,
  ],
  ['a deployment that runs its model', azure('prod', 'gpt-4o-mini-2024-07-18'), 'prod', MINI],
  ['a deployment in a zone', azure('prod-eu', 'gpt-4o-mini-2024-07-18'), 'prod-eu', 231],
  [
    'a deployment named as another model',
    azure('gpt-4o-mini', 'gpt-4o-2024-08-06'),
    'gpt-4o-2024-08-06',
    LARGE,
  ],
  [
    'a deployment that no list and no operator names',
    azure('mine', 'gpt-4o-2024-08-06'),
    'gpt-4o-2024-08-06',
    LARGE,
    true,
  ],
  [
    'a deployment that Responses repeats',
    {
      provider: 'azure-openai',
      path: '/openai/v1/responses',
      body: { ...RESPONSES, model: 'prod' },
      answered: 'prod',
    },
    'prod',
    MINI,
  ],
  [
    'the next of `models`',
    routed('openai/gpt-4o', { model: 'openai/gpt-4o-mini', models: ['openai/gpt-4o'] }),
    'openai/gpt-4o',
    LARGE,
    true,
  ],
  [
    'one of `models` without `model`',
    routed('openai/gpt-4o', { models: ['openai/gpt-4o'] }),
    'openai/gpt-4o',
    LARGE,
    true,
  ],
  [
    'a fallback',
    {
      provider: 'anthropic',
      path: '/v1/messages',
      body: { model: 'claude-small', fallbacks: [{ model: 'claude-large' }] },
      answered: 'claude-large',
    },
    'claude-large',
    7_500,
    true,
  ],
  [
    'a model without a price',
    { provider: 'openai', path: '/v1/chat/completions', body: { model: 'gpt-4o-mini' }, answered: 'gpt-0' },
    'gpt-0',
    null,
  ],
];

test.each(CALLS)(
  'without a limit, the row of %s has the model that answered and its price',
  async (_, asked, model, cost) => {
    const { row } = await call(asked, {});
    expect([row?.model, row?.costMicrousd]).toEqual([model, cost]);
  },
);

test.each(CALLS.filter(([, , , , onlyUnlimited]) => !onlyUnlimited))(
  'under a limit, the row of %s has the model that answered, and its price or the hold',
  async (_, asked, model, cost) => {
    const { row, status } = await call(asked, { cost_limit: 100_000_000 });
    const charged = cost ?? row?.heldMicrousd;
    expect([row?.model, row?.costMicrousd, row?.overrunMicrousd]).toEqual([model, charged, 0]);
    expect(status).toMatchObject({ spent: charged, revoked: false });
  },
);

test('an unnamed deployment is refused under a limit, and the error says how to name it', async () => {
  const path = [ON_DEPLOYMENT('prod'), ON_DEPLOYMENT('*')];
  const { url } = await stack.issue({
    provider: 'azure-openai',
    path,
    client_api_key: 'sk',
    cost_limit: 1_000_000,
  });
  const refused = await post(`${/^.*\/llm\/t\/[^/]+/.exec(url)?.[0]}${ON_DEPLOYMENT('mine')}`, { messages });
  expect(refused.status).toBe(422);
  expect(refused.bytes.toString()).toContain('`deployments` of PROVIDERS_FILE');
});
