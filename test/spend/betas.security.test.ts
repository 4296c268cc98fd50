import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { AWS_KEY } from '../sdk/upstreams/bedrock.ts';
import { SERVICE_ACCOUNT } from '../sdk/upstreams/vertex.ts';

let upstream: Upstream;
let stack: Stack;

const answer: Answer = (seen, response) => {
  const token = { access_token: 'ya29', expires_in: 3_600, token_type: 'Bearer' };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(seen.url === '/token' ? token : {}));
};

const HAIKU = 'us.anthropic.claude-haiku-4-5-20251001-v1:0';
const BEDROCK = `/model/${HAIKU}`;
const VERTEX = '/v1/projects/p/locations/global/publishers';

beforeAll(async () => {
  upstream = await startUpstream(answer);
  const price = { input: 1_000_000, output: 1_000_000 };
  const entry = { base_url: upstream.url, pricing: { m: price, 'claude-m': price, [HAIKU]: price } };
  const vertex = { ...entry, token_url: `${upstream.url}/token` };
  const kinds = { anthropic: entry, openai: entry, openrouter: entry, google: entry, cohere: entry };
  const harmless_betas = ['new-2026-12-02'];
  stack = await startStack({
    providers: {
      ...kinds,
      bedrock: entry,
      vertex,
      declared: { ...entry, extends: 'anthropic', harmless_betas },
    },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

type Call = { readonly provider: string; readonly path: string; readonly body: object };
/** A place where a call can ask for betas: the call that asks, and the place's name in refusals and figures. */
type Place = readonly [what: string, name: string, call: Call, ask: (betas: readonly string[]) => Asked];
type Asked = { readonly headers?: Readonly<Record<string, string>>; readonly body?: object };

const CHAT = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] };
/** OpenRouter's bound leaves thinking out, so a model needs a known maximum. */
const ROUTED = 'anthropic/claude-haiku-4.5';
const MESSAGE = { anthropic_version: 'x', max_tokens: 5, messages: CHAT.messages };
const CONVERSE = {
  messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
  inferenceConfig: { maxTokens: 5 },
};
const CALLS: readonly Call[] = [
  { provider: 'anthropic', path: '/v1/messages', body: CHAT },
  { provider: 'openrouter', path: '/api/v1/messages', body: { ...CHAT, model: ROUTED } },
  { provider: 'openrouter', path: '/api/v1/chat/completions', body: { ...CHAT, model: ROUTED } },
  { provider: 'openai', path: '/v1/chat/completions', body: CHAT },
  { provider: 'openai', path: '/v1/responses', body: { model: 'm', max_output_tokens: 5, input: 'Hi' } },
  { provider: 'openai', path: '/v1/completions', body: { model: 'm', max_tokens: 5, prompt: 'Hi' } },
  { provider: 'openai', path: '/v1/embeddings', body: { model: 'm', input: 'Hi' } },
  { provider: 'bedrock', path: `${BEDROCK}/invoke`, body: MESSAGE },
  { provider: 'bedrock', path: `${BEDROCK}/converse`, body: CONVERSE },
  { provider: 'vertex', path: `${VERTEX}/anthropic/models/claude-m:rawPredict`, body: MESSAGE },
  {
    ...{ provider: 'google', path: '/v1beta/models/m:generateContent' },
    body: { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 5 } },
  },
  { provider: 'cohere', path: '/v2/chat', body: { ...CHAT, model: 'command-r-08-2024' } },
];

const inHeader = (call: Call, header: string): Place => [
  `the header ${header} of ${call.provider} ${call.path}`,
  header,
  call,
  (betas) => ({ headers: { [header]: betas.join(', ') } }),
];
const inBody =
  (name: string, body: (betas: readonly string[]) => object) =>
  (call: Call): Place => [
    `the body of ${call.provider} ${call.path}`,
    name,
    call,
    (betas) => ({ body: body(betas) }),
  ];
const inMessage = inBody('anthropic_beta[]', (betas) => ({ anthropic_beta: betas }));
const inConverse = inBody('additionalModelRequestFields.anthropic_beta[]', (betas) => ({
  additionalModelRequestFields: { anthropic_beta: betas },
}));
const PLACES: readonly Place[] = [
  ...CALLS.flatMap((call) =>
    ['openai-beta', 'anthropic-beta', 'x-anthropic-beta'].map((header) => inHeader(call, header)),
  ),
  ...CALLS.filter(({ body }) => body === MESSAGE).map(inMessage),
  ...CALLS.filter(({ body }) => body === CONVERSE).map(inConverse),
];

const KEYS: Readonly<Record<string, object>> = { bedrock: AWS_KEY, vertex: SERVICE_ACCOUNT };

async function call({ provider, path, body }: Call, { headers, body: more }: Asked, limits: object) {
  const key = KEYS[provider];
  const client_api_key = key ? JSON.stringify(key) : 'sk-real';
  const { url } = await stack.issue({ provider, path, client_api_key, ...limits });
  const before = upstream.seen.length;
  const answered = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...body, ...more }),
  });
  const text = await answered.text();
  const sent = upstream.seen.slice(before).filter((seen) => seen.url !== '/token');
  return { status: answered.status, code: answered.headers.get('x-presign-code'), text, sent };
}

/** Whether a request has all that was asked for. */
function arrived({ headers, body }: Upstream['seen'][number], asked: Asked): void {
  expect(headers).toMatchObject(asked.headers ?? {});
  expect(JSON.parse(String(body))).toMatchObject(asked.body ?? {});
}

const LIMITED = { cost_limit: 2_000_000 };
const HARMLESS = ['effort-2025-11-24', 'responses=experimental'];
const COSTLY = 'context-1m-2025-08-07';
const NEW = 'new-2026-12-01';

test.each(PLACES)(
  '%s: betas pass under a limit if everything they allow is known',
  async (_what, _, to, ask) => {
    const { status, sent } = await call(to, ask(HARMLESS), LIMITED);
    expect([status, sent.length]).toEqual([200, 1]);
    for (const seen of sent) arrived(seen, ask(HARMLESS));
  },
);

/** A beta, the limit, and the code of the refusal. Only a beta that is not known can be declared. */
const REFUSED = [
  [COSTLY, LIMITED, 'cost_unbounded'],
  [NEW, LIMITED, 'cost_unbounded'],
  [NEW, { tokens_per_minute: 100_000 }, 'tokens_unbounded'],
] as const;

test.each(PLACES)('%s: any other beta is refused by name under a limit', async (_what, name, to, ask) => {
  for (const [beta, limits, code] of REFUSED) {
    const { status, code: said, text, sent } = await call(to, ask([...HARMLESS, beta]), limits);
    expect([status, said, sent.length]).toEqual([422, code, 0]);
    expect(text).toContain(beta);
    expect(text.includes('harmless_betas')).toBe(beta === NEW);
    const line = `"unbounded":"${name}=${beta}"`;
    await eventually(async () => stack.logs.some((each) => each.includes(line)));
  }
});

test.each(PLACES)('%s: every beta passes without a limit', async (_what, _, to, ask) => {
  const asked = ask([...HARMLESS, COSTLY, NEW]);
  const { status, sent } = await call(to, asked, {});
  expect([status, sent.length]).toEqual([200, 1]);
  for (const seen of sent) arrived(seen, asked);
});

test('a beta that the operator declares harmless passes under a limit', async () => {
  const to = { provider: 'declared', path: '/v1/messages', body: CHAT };
  const asked = { headers: { 'anthropic-beta': 'effort-2025-11-24,new-2026-12-02' } };
  const { status, sent } = await call(to, asked, LIMITED);
  expect(status).toBe(200);
  expect(sent[0]?.headers).toMatchObject(asked.headers);
});

test.each([
  ['a text in place of a list', { anthropic_beta: NEW }],
  ['a number', { anthropic_beta: [7] }],
  ['a name that is no name', { anthropic_beta: ['a b'] }],
])('%s is refused under a limit', async (_what, body) => {
  const to = CALLS.find((each) => each.body === MESSAGE) as Call;
  const { code, sent } = await call(to, { body }, LIMITED);
  expect([code, sent.length]).toEqual(['cost_unbounded', 0]);
});
