import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Stack } from '../harness/stack.ts';
import { countSteps } from '../harness/steps.ts';

// Blocks are counted in code that is compiled from now on, so nothing of the services is imported before.
const steps = await countSteps();
const { startStack } = await import('../harness/stack.ts');
const { startUpstream } = await import('../harness/upstream.ts');
const { least } = await import('../issuer/ask.ts');

let stack: Stack;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let bystander: string;
beforeAll(async () => {
  upstream = await startUpstream();
  const providers = Object.fromEntries(['openai', 'google'].map((id) => [id, { base_url: upstream.url }]));
  stack = await startStack({ providers });
  bystander = (await stack.issue({ ...least })).url;
});
afterAll(async () => {
  steps.stop();
  await stack.close();
  await upstream.close();
});

/** A part of something at its documented maximum: the half of it, or all. */
type Share = 0.5 | 1;
const count = (most: number, share: Share) => Math.floor(most * share);
const fields = (most: number, share: Share, prefix = 'f') =>
  Object.fromEntries(Array.from({ length: count(most, share) }, (_, i) => [`${prefix}${i}`, i]));

/** A config of 20 levels with names near the limits of a config: 16 KB in all. */
const deepConfig = () => {
  let inner: object = fields(150, 1, 'k');
  for (let level = 0; level < 20; level++) inner = { [`level_${level}_${'n'.repeat(240)}`]: inner };
  return inner;
};
const LIGATURE = '\ufdfa';
const GEMINI = { provider: 'google', path: '/v1beta/models/gemini-2.5-flash:generateContent' };
const chat = (more: object = {}) => ({ model: 'gpt-4o-mini', messages: [], ...more });

/** The steps of some work without those of sweeps that run at the same time. */
async function fewest(work: () => Promise<unknown>): Promise<number> {
  const measured: number[] = [];
  for (let i = 0; i < 3; i++) measured.push(await steps.during(work));
  return Math.min(...measured);
}

type Refused = {
  readonly what: string;
  readonly code: string;
  readonly ask: object;
  readonly body: (share: Share) => string;
};

/** Bodies of 2,000 parts and 64 KB at most are read by the thread that serves everyone. */
const LLM: readonly Refused[] = [
  {
    what: 'fields for Gemini, under a config of short fields',
    code: 'invalid_request',
    ask: { ...GEMINI, config: fields(200, 1) },
    body: (share) => JSON.stringify({ contents: [], ...fields(900, share, 'h'), F0: 1 }),
  },
  {
    what: 'spellings of one field for Gemini',
    code: 'invalid_request',
    ask: { ...GEMINI, config: { max_tokens: 5, generationConfig: fields(900, 1) } },
    body: (share) => {
      const spelt = (i: number) => `generation${'_'.repeat(1_000 + i)}config`;
      const objects = Array.from({ length: count(40, share) }, (_, i) => [spelt(i), fields(20, 1)]);
      return JSON.stringify({ ...Object.fromEntries(objects), MAX_TOKENS: 1 });
    },
  },
  {
    what: 'names below a config of depth 20',
    code: 'invalid_request',
    ask: { config: deepConfig() },
    body: (share) => {
      const path = Array.from({ length: 20 }, (_, i) => `"level_${19 - i}_${'n'.repeat(240)}":{`).join('');
      return `{${path}${JSON.stringify(fields(900, share, 'h')).slice(1, -1)},"K1":1${'}'.repeat(21)}`;
    },
  },
  {
    what: 'fields that are not allowed',
    code: 'field_not_allowed',
    ask: { allowed_fields: Array.from({ length: 100 }, (_, i) => `a${i}`) },
    body: (share) => JSON.stringify({ ...fields(100, 1, 'a'), ...fields(1_800, share, 'h') }),
  },
  {
    what: 'tools with other models',
    code: 'model_not_allowed',
    ask: { models: Array.from({ length: 50 }, (_, i) => (i === 49 ? 'gpt-4o-mini' : `m${i}`)) },
    body: (share) => {
      const tools = Array.from({ length: count(600, share) }, () => ({ model: 'm1' }));
      return JSON.stringify(chat({ tools: [...tools, { model: 'x' }] }));
    },
  },
  {
    what: 'messages whose cost has no bound',
    code: 'cost_unbounded',
    ask: { cost_limit: 1_000_000_000 },
    body: (share) => {
      const messages = Array.from({ length: count(500, share) }, () => ({ role: 'user', content: 'x' }));
      return JSON.stringify(chat({ messages, surprise: 1 }));
    },
  },
];

const call = (name: string, more: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name, arguments: {}, ...more },
});
const longNames = (most: number) =>
  Array.from({ length: most }, (_, i) => `${LIGATURE.repeat(27)}${String.fromCharCode(0x4e00 + i)}`);

const MCP: readonly Refused[] = [
  {
    what: 'tools that are not allowed',
    code: 'tool_not_allowed',
    ask: { tools: longNames(500) },
    body: (share) =>
      JSON.stringify([
        ...Array.from({ length: count(98, share) }, (_, i) => call(longNames(500)[i] ?? '')),
        call('x'),
      ]),
  },
  {
    what: 'names like those that have a price',
    code: 'invalid_request',
    ask: { pricing: { tools: Object.fromEntries([...longNames(100), 'deep'].map((name) => [name, 1])) } },
    body: (share) =>
      JSON.stringify([
        ...Array.from({ length: count(98, share) }, (_, i) => call(`${LIGATURE.repeat(60)}${i}`)),
        call('Deep'),
      ]),
  },
  {
    what: 'arguments of a tool with conditions',
    code: 'argument_not_allowed',
    ask: { arguments: { t: Object.fromEntries(longNames(20).map((name) => [name, { equals: 1 }])) } },
    body: (share) =>
      JSON.stringify(
        Array.from({ length: count(98, share) }, () =>
          call('t', { arguments: { [LIGATURE.repeat(20)]: 1 } }),
        ),
      ),
  },
];

/** Calls a URL, and says why it is refused. */
async function codeOf(url: string, body: string): Promise<string | undefined> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const answer = await fetch(url, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  return answer.headers.get('x-presign-code') ?? undefined;
}

/** A bystander's call is answered while the refusals are made, and no refusal takes more than twice the steps of its half. */
async function walk(url: string, { code, body }: Refused): Promise<void> {
  // The first call loads and compiles the policy.
  expect(await codeOf(url, body(0.5))).toBe(code);
  const of = (share: Share) => fewest(() => codeOf(url, body(share)));
  const half = await of(0.5);
  expect(await of(1)).toBeLessThanOrEqual(2 * half);
  const beside = fetch(bystander, { method: 'POST', body: JSON.stringify(chat()) });
  const refused = await Promise.all(Array.from({ length: 10 }, () => codeOf(url, body(1))));
  expect(new Set(refused)).toEqual(new Set([code]));
  expect((await beside).status).toBe(200);
}

describe('an LLM call that is refused before its admission', () => {
  test.each(LLM)('for $what takes steps in proportion to its body', async (each) => {
    await walk((await stack.issue({ ...least, ...each.ask })).url, each);
  });
});

describe('an MCP call that is refused before its admission', () => {
  test.each(MCP)('for $what takes steps in proportion to its body', async (each) => {
    const server = { name: 'a', url: `${upstream.url}/mcp`, transport: 'http', ...each.ask };
    const answer = await stack.issueMcp({ servers: [server] });
    await walk(answer.servers.a?.url ?? '', each);
  });
});

/** A request of the issuer that is refused, with a policy of the same size. */
const ISSUER: readonly {
  readonly what: string;
  readonly code: string;
  readonly policy: (share: Share) => object;
  readonly ask: (share: Share) => object;
}[] = [
  {
    what: 'a config beside the one of a policy',
    code: 'policy_forbids',
    policy: (share) => ({ config: { max_tokens: 5, ...fields(199, share, 'p') } }),
    ask: (share) => ({ config: { ...fields(199, share), max_output_tokens: 9 } }),
  },
  {
    what: 'a config for Gemini beside the one of a policy',
    code: 'policy_forbids',
    policy: (share) => ({ config: { max_tokens: 5, generationConfig: fields(900, share, 'p') } }),
    ask: (share) => ({
      ...GEMINI,
      config: { ...fields(199, share), generation_config: { max_output_tokens: 9 } },
    }),
  },
  {
    what: 'fields that a policy does not allow',
    code: 'policy_forbids',
    policy: () => ({ allowed_fields: Array.from({ length: 100 }, (_, i) => `${i}${'a'.repeat(200)}`) }),
    ask: (share) => ({ config: fields(200, share) }),
  },
  {
    what: 'a config under which no call has a bound',
    code: 'invalid_request',
    policy: () => ({ providers: ['google'] }),
    ask: (share) => ({
      ...GEMINI,
      cost_limit: 1_000_000,
      config: { max_tokens: 'x', generationConfig: fields(900, share) },
    }),
  },
];

describe('a URL that is not issued', () => {
  test.each(ISSUER)('for $what takes steps in proportion to the request', async ({ code, policy, ask }) => {
    const refusal = async (key: string, share: Share) => {
      const answer = await stack.presign({ ...least, ...ask(share) }, { authorization: `Bearer ${key}` });
      expect(await answer.json()).toMatchObject({ error: { code } });
    };
    const measured: number[] = [];
    for (const share of [0.5, 1] as const) {
      const key = await keyWith(policy(share));
      await refusal(key, share);
      measured.push(await fewest(() => refusal(key, share)));
    }
    const [half = 0, whole = 0] = measured;
    expect(whole).toBeLessThanOrEqual(2 * half);
  });
});

async function keyWith(policy: object): Promise<string> {
  const answer = await fetch(`${stack.issuerUrl}/v1/api-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'walk', scopes: ['presign'], policy }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return (JSON.parse(text) as { key: string }).key;
}
