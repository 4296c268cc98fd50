import { type PresignAnswer, virtualKeyAnswer } from '@presign/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, least, refused, type Sent, send } from './ask.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream(answerChat);
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const CHAT = '/v1/chat/completions';
const SPEECH = '/v1/audio/transcriptions';
const UNPRICED = { model: 'model-without-a-price' };

async function ask<T>(method: string, path: string, body?: object): Promise<T> {
  const sent = await send(stack, { method, path, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(300);
  return JSON.parse(sent.text) as T;
}
const patch = (path: string, body: object) => send(stack, { method: 'PATCH', path, body });
const makeKey = (budget: object) =>
  ask<{ id: string }>('POST', '/v1/virtual-keys', {
    name: 'k',
    provider: 'openai',
    key: 'sk-upstream',
    budget,
  });
const issue = (fields: object) =>
  ask<PresignAnswer>(
    'POST',
    '/v1/presign',
    'virtual_key' in fields ? { ...OF_KEY, ...fields } : { ...least, ...fields },
  );
const OF_KEY = { provider: least.provider, path: least.path };
let users = 0;

/** Each request that gives issued URLs a limit: makes a URL without it, and asks for it. */
type Way = {
  readonly of: 'cost' | 'tokens';
  readonly param: string;
  /** Issues a URL, and returns how its limit is changed. */
  readonly make: (url: object) => Promise<{ url: string; set: (value: number | null) => Promise<Sent> }>;
};
const onGrant = (name: string) => async (fields: object) => {
  const { url } = await issue(fields);
  return {
    url,
    set: (value: number | null) => patch(`/v1/grants/${claimsOf(stack, url).jti}`, { [name]: value }),
  };
};
const onSession = (name: string) => async (fields: object) => {
  const { url, session_id } = await issue(fields);
  const set = (value: number | null) => patch(`/v1/sessions/${session_id}`, { grants: { [name]: value } });
  return { url, set };
};
const onKey = async (fields: object) => {
  const { id } = await makeKey({ max_uses: 100 });
  const { url } = await issue({ ...fields, virtual_key: id });
  const set = (cost_limit: number | null) => patch(`/v1/virtual-keys/${id}`, { budget: { cost_limit } });
  return { url, set };
};
const onBudget = (name: string) => async (fields: object) => {
  const external_user = `user-${users++}`;
  const scope = { external_user };
  const { id } = await ask<{ id: string }>('POST', '/v1/budgets', {
    scope,
    window: 'lifetime',
    max_uses: 100,
  });
  const { url } = await issue({ ...fields, external_user });
  return { url, set: (value: number | null) => patch(`/v1/budgets/${id}`, { [name]: value }) };
};
const WAYS: readonly (readonly [string, Way])[] = [
  ['PATCH /v1/grants, cost_limit', { of: 'cost', param: 'cost_limit', make: onGrant('cost_limit') }],
  [
    'PATCH /v1/grants, tokens_per_minute',
    { of: 'tokens', param: 'tokens_per_minute', make: onGrant('tokens_per_minute') },
  ],
  [
    'PATCH /v1/sessions, cost_limit',
    { of: 'cost', param: 'grants.cost_limit', make: onSession('cost_limit') },
  ],
  [
    'PATCH /v1/sessions, tokens_per_minute',
    { of: 'tokens', param: 'grants.tokens_per_minute', make: onSession('tokens_per_minute') },
  ],
  ['PATCH /v1/virtual-keys, cost_limit', { of: 'cost', param: 'budget.cost_limit', make: onKey }],
  ['PATCH /v1/budgets, cost_limit', { of: 'cost', param: 'cost_limit', make: onBudget('cost_limit') }],
  ['PATCH /v1/budgets, tokens', { of: 'tokens', param: 'tokens', make: onBudget('tokens') }],
];

/** URLs on which no call could pass under a limit, and how issuing refuses them. */
const DEAD = [
  ['an endpoint without a known bound', { path: SPEECH }, ['cost', 'tokens'], 'path'],
  ['a config with a model without a price', { config: UNPRICED }, ['cost'], 'config.model'],
] as const;

type Body = { readonly path: string; readonly type: string; readonly text: string };

const BOUNDARY = 'b0undary';
const FORM = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--${BOUNDARY}--\r\n`;
const chat = (content: string): Body => ({
  path: CHAT,
  type: 'application/json',
  text: JSON.stringify({ ...UNPRICED, max_tokens: 100, messages: [{ role: 'user', content }] }),
});

const SPOKEN: Body = { path: SPEECH, type: `multipart/form-data; boundary=${BOUNDARY}`, text: FORM };
const WRITTEN = chat('hello');

/** Calls that a limit refuses, and whether the gateway hands the body to a worker. */
const BODIES: readonly (readonly [string, Body, boolean])[] = [
  ['a form', SPOKEN, false],
  ['a call of a model without a price', WRITTEN, false],
  ['a large call of a model without a price', chat('hello '.repeat(400_000)), true],
];

async function outcomeOf(url: string, gateway: number, { path, type, text }: Body): Promise<string> {
  const at = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '').replace(CHAT, path);
  const answer = await fetch(at, { method: 'POST', headers: { 'content-type': type }, body: text });
  const body = (await answer.json()) as { error?: { code: string } };
  return body.error?.code ?? 'passed';
}
/** The outcomes on both gateways of the kind of call that the first path of a URL takes. */
const outcomes = (url: string) =>
  Promise.all([0, 1].map((gateway) => outcomeOf(url, gateway, url.endsWith(SPEECH) ? SPOKEN : WRITTEN)));

const LIMIT = 100_000_000;
const AT_ISSUE = { cost: { cost_limit: LIMIT }, tokens: { tokens_per_minute: LIMIT } };

describe.each(WAYS)('%s', (_name, { of, param, make }) => {
  test.each(DEAD)(
    'of a URL with %s: is refused as at issuing, and the URL is unchanged',
    async (_, url, limits, atIssue) => {
      const isDead = (limits as readonly string[]).includes(of);
      const sent = await send(stack, { body: { ...least, ...url, ...AT_ISSUE[of] } });
      if (isDead) refused(sent, 'invalid_request', atIssue);
      else expect(sent.status, sent.text).toBe(200);
      const issued = await make(url);
      expect(await outcomes(issued.url)).toEqual(['passed', 'passed']);
      const changed = await issued.set(LIMIT);
      if (!isDead) return expect(changed.status, changed.text).toBe(200);
      refused(changed, 'invalid_request', param);
      expect(await outcomes(issued.url)).toEqual(['passed', 'passed']);
    },
  );

  test.each(BODIES)('%s passes again, unchanged, when the limit is removed', async (_, body, isLarge) => {
    const { url, set } = await make({ path: [CHAT, SPEECH] });
    expect((await set(LIMIT)).status).toBe(200);
    for (const gateway of [0, 1]) await outcomeOf(url, gateway, body);
    const limited = [await outcomeOf(url, 0, body), await outcomeOf(url, 1, body)];
    const expected =
      body.path === SPEECH ? 'unsupported_media_type' : of === 'cost' ? 'price_unknown' : 'passed';
    expect(limited).toEqual([expected, expected]);
    expect((await set(null)).status).toBe(200);
    // The bytes of a large body are with a worker, so its holder sends it again.
    if (isLarge && expected !== 'passed') {
      const first = [await outcomeOf(url, 0, body), await outcomeOf(url, 1, body)];
      expect(first).toEqual(['limits_unavailable', 'limits_unavailable']);
    }
    for (const gateway of [0, 1]) {
      expect(await outcomeOf(url, gateway, body)).toBe('passed');
      // A call that passes may be the one that shows the gateway that the limit is gone.
      await eventually(async () => {
        expect(await outcomeOf(url, gateway, body)).toBe('passed');
        return upstream.seen.at(-1)?.body.length === Buffer.byteLength(body.text);
      });
    }
  });
});

test('a limit removed from a virtual key does not limit its URLs', async () => {
  const { id } = await makeKey({ cost_limit: LIMIT });
  const { url } = await issue({ virtual_key: id });
  expect(await outcomeOf(url, 0, WRITTEN)).toBe('price_unknown');
  const read = virtualKeyAnswer.parse(
    JSON.parse((await patch(`/v1/virtual-keys/${id}`, { budget: { cost_limit: null } })).text),
  );
  expect(read.budget?.cost_limit).toBeNull();
  expect(await outcomeOf(url, 0, WRITTEN)).toBe('passed');
});

test('an existing limit of a URL can be lowered, even below what any call needs', async () => {
  const { url } = await issue({ cost_limit: LIMIT });
  expect((await patch(`/v1/grants/${claimsOf(stack, url).jti}`, { cost_limit: 0 })).status).toBe(200);
});
