import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import Anthropic from '@anthropic-ai/sdk';
import { ApiError, GoogleGenAI } from '@google/genai';
import { startEmbeddedRedis } from '@presign/local';
import { Cohere, CohereClientV2 } from 'cohere-ai';
import Groq from 'groq-sdk';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { PLACEHOLDER_KEY, REAL_KEY } from './keys.ts';
import { type PacedUpstream, startPacedUpstream } from './upstreams/paced.ts';

const user = [{ role: 'user' as const, content: 'Hello' }];

type Sdk = {
  readonly provider: string;
  readonly path: string;
  readonly call: (base: string) => PromiseLike<unknown>;
  /** Attempts that the SDK makes without further options when the answer says to retry. */
  readonly attempts: number;
  /** Whether the SDK obeys `x-should-retry`. */
  readonly obeys: boolean;
  readonly forbidden: new (...args: never[]) => Error;
  readonly unavailable: new (...args: never[]) => Error;
};

/** Each as it comes, with no retry setting of ours; `base` is the URL up to and including the token. */
const sdks: readonly Sdk[] = [
  {
    provider: 'openai',
    path: '/v1/chat/completions',
    call: (base) =>
      new OpenAI({ baseURL: `${base}/v1`, apiKey: PLACEHOLDER_KEY }).chat.completions.create({
        model: 'm',
        messages: user,
      }),
    attempts: 3,
    obeys: true,
    forbidden: OpenAI.PermissionDeniedError,
    unavailable: OpenAI.InternalServerError,
  },
  {
    provider: 'anthropic',
    path: '/v1/messages',
    call: (base) =>
      new Anthropic({ baseURL: base, apiKey: PLACEHOLDER_KEY }).messages.create({
        model: 'm',
        max_tokens: 1,
        messages: user,
      }),
    attempts: 3,
    obeys: true,
    forbidden: Anthropic.PermissionDeniedError,
    unavailable: Anthropic.InternalServerError,
  },
  {
    provider: 'groq',
    path: '/openai/v1/chat/completions',
    call: (base) =>
      new Groq({ baseURL: base, apiKey: PLACEHOLDER_KEY }).chat.completions.create({
        model: 'm',
        messages: user,
      }),
    attempts: 3,
    obeys: true,
    forbidden: Groq.PermissionDeniedError,
    unavailable: Groq.InternalServerError,
  },
  {
    provider: 'cohere',
    path: '/v2/chat',
    call: (base) =>
      new CohereClientV2({ baseUrl: base, token: PLACEHOLDER_KEY }).chat({ model: 'm', messages: user }),
    attempts: 3,
    obeys: false,
    forbidden: Cohere.ForbiddenError,
    unavailable: Cohere.ServiceUnavailableError,
  },
  {
    provider: 'google',
    path: '/v1beta/models/m:generateContent',
    call: (base) =>
      new GoogleGenAI({
        apiKey: PLACEHOLDER_KEY,
        httpOptions: { baseUrl: base },
      }).models.generateContent({ model: 'm', contents: 'Hello' }),
    // It retries only when given `retryOptions`.
    attempts: 1,
    obeys: false,
    forbidden: ApiError,
    unavailable: ApiError,
  },
];

let upstream: PacedUpstream;
let engine: Awaited<ReturnType<typeof startEmbeddedRedis>>;
let stack: Stack;
let attempts = 0;

/** Every request that this process sends to a gateway; what a gateway sends on has another path. */
const count = (message: unknown) => {
  const { request } = message as { request: { path: string } };
  if (request.path.startsWith('/llm/t/')) attempts += 1;
};

beforeAll(async () => {
  upstream = await startPacedUpstream(() => ({ json: { ok: true } }));
  const providers = Object.fromEntries(sdks.map(({ provider }) => [provider, { base_url: upstream.url }]));
  engine = await startEmbeddedRedis();
  stack = await startStack({ providers, redisUrl: engine.url });
  subscribe('undici:request:create', count);
});
beforeEach(() => {
  attempts = 0;
});
afterEach(() => {
  upstream.seen.length = 0;
});
afterAll(async () => {
  unsubscribe('undici:request:create', count);
  await stack.close();
  await upstream.close();
});

async function issue({ provider, path }: Sdk, limits: object = {}): Promise<string> {
  const { url } = await stack.issue({ provider, path, client_api_key: REAL_KEY, ...limits });
  return url.replace(path, '');
}

const thrownBy = async (call: PromiseLike<unknown>): Promise<unknown> => {
  try {
    return await call;
  } catch (error) {
    return error;
  }
};

describe.each(sdks)('the $provider SDK', (sdk) => {
  test('does not retry when no uses are left', async () => {
    const base = await issue(sdk, { max_uses: 1 });
    await sdk.call(base);
    expect(attempts).toBe(1);
    expect(await thrownBy(sdk.call(base))).toBeInstanceOf(sdk.forbidden);
    expect(attempts).toBe(2);
    expect(upstream.seen).toHaveLength(1);
  });

  test('does not retry after a 500 that took the last use, or gets a refusal that says why', async () => {
    const base = await issue(sdk, { max_uses: 1 });
    upstream.replyOnce({ status: 500, json: { error: { message: 'It broke.' } } });
    const thrown = await thrownBy(sdk.call(base));
    if (sdk.obeys || sdk.attempts === 1) {
      expect((thrown as Error).message).toContain('It broke.');
      expect(attempts).toBe(1);
    } else {
      expect(thrown).toBeInstanceOf(sdk.forbidden);
      expect((thrown as Error).message).toContain('ended with status 500 (provider_error)');
      expect(attempts).toBe(2);
    }
    expect(upstream.seen).toHaveLength(1);
  });

  test.each([429, 503])('succeeds after a %i of the provider at the cost of one use', async (status) => {
    const base = await issue(sdk, { max_uses: 1 });
    const headers = { 'retry-after': '1' };
    upstream.replyOnce({ status, headers, json: { error: { message: 'Come back later.' } } });
    const first = await thrownBy(sdk.call(base));
    if (sdk.attempts === 1) {
      expect(first).toMatchObject({ status });
      await sdk.call(base);
    } else {
      expect(first).toEqual({ ok: true });
    }
    expect(attempts).toBe(2);
    expect(upstream.seen).toHaveLength(2);
    expect(await thrownBy(sdk.call(base))).toBeInstanceOf(sdk.forbidden);
  });
});

describe('while limits cannot be checked', () => {
  const bases = new Map<string, string>();

  beforeAll(async () => {
    for (const sdk of sdks) bases.set(sdk.provider, await issue(sdk));
    await engine.close();
  });

  test.each(sdks)('the $provider SDK retries as often as by default, and says why', async (sdk) => {
    const error = await thrownBy(sdk.call(bases.get(sdk.provider) ?? ''));
    expect(error).toBeInstanceOf(sdk.unavailable);
    expect((error as Error).message).toContain('Limits cannot be checked now');
    expect(attempts).toBe(sdk.attempts);
    expect(upstream.seen).toHaveLength(0);
  });
});
