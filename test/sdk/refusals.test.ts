import { createAnthropic } from '@ai-sdk/anthropic';
import { createCohere } from '@ai-sdk/cohere';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { readSigningKey, signToken } from '@presign/crypto';
import { APICallError, generateText, type LanguageModel, streamText } from 'ai';
import { CohereClientV2 } from 'cohere-ai';
import Groq from 'groq-sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { PLACEHOLDER_KEY, REAL_KEY } from './keys.ts';

/** A call of an SDK. `base` is the URL up to and including the token. */
type Call = { readonly base: string; readonly model: string; readonly stream: boolean };

type Sdk = {
  readonly name: string;
  readonly provider: string;
  readonly paths: (model: string) => readonly [string, ...string[]];
  /** A model with a price. */
  readonly model: string;
  /** Makes one attempt. */
  readonly call: (call: Call) => PromiseLike<unknown>;
  /** The code, where a program finds it. */
  readonly codeIn: (error: never) => unknown;
};

const key = { apiKey: PLACEHOLDER_KEY, maxRetries: 0 };
const messages = [{ role: 'user' as const, content: 'Hello' }];
const geminiPaths = (model: string) =>
  [`/v1beta/models/${model}:generateContent`, `/v1beta/models/${model}:streamGenerateContent`] as const;

/** A model of the Vercel AI SDK in use. It throws the errors of streams through the stream. */
async function callVercel(model: LanguageModel, { stream }: Call): Promise<void> {
  const ask = { model, messages, maxRetries: 0, maxOutputTokens: 10 };
  if (!stream) return void (await generateText(ask));
  for await (const part of streamText({ ...ask, onError: () => {} }).fullStream) {
    if (part.type === 'error') throw part.error;
  }
}

const codeInHeader = (error: APICallError) => {
  expect(APICallError.isInstance(error)).toBe(true);
  return error.responseHeaders?.['x-presign-code'];
};

const SDKS: readonly Sdk[] = [
  {
    name: 'openai',
    provider: 'openai',
    paths: () => ['/v1/chat/completions'],
    model: 'gpt-4o-mini',
    call: ({ base, model, stream }) =>
      new OpenAI({ ...key, baseURL: `${base}/v1` }).chat.completions.create({
        ...{ model, messages, stream },
        max_completion_tokens: 10,
      }),
    codeIn: (error: InstanceType<typeof OpenAI.APIError>) => error.code,
  },
  {
    name: '@anthropic-ai/sdk',
    provider: 'anthropic',
    paths: () => ['/v1/messages'],
    model: 'claude-haiku-4-5',
    call: ({ base, model, stream }) =>
      new Anthropic({ ...key, baseURL: base }).messages.create({ model, messages, stream, max_tokens: 10 }),
    codeIn: (error: InstanceType<typeof Anthropic.APIError>) => error.errorCode,
  },
  {
    name: '@google/genai',
    provider: 'google',
    paths: geminiPaths,
    model: 'gemini-2.5-flash',
    call: ({ base, model, stream }) => {
      const { models } = new GoogleGenAI({ ...key, httpOptions: { baseUrl: base } });
      const ask = { model, contents: 'Hello', config: { maxOutputTokens: 10 } };
      return stream ? models.generateContentStream(ask) : models.generateContent(ask);
    },
    codeIn: ({ message }: Error) => JSON.parse(message).error.details[0].metadata.code,
  },
  {
    name: 'cohere-ai',
    provider: 'cohere',
    paths: () => ['/v2/chat'],
    model: 'command-a-03-2025',
    call: ({ base, model, stream }) => {
      const client = new CohereClientV2({ baseUrl: base, token: PLACEHOLDER_KEY });
      const ask = { model, messages, maxTokens: 10 };
      return stream ? client.chatStream(ask, { maxRetries: 0 }) : client.chat(ask, { maxRetries: 0 });
    },
    codeIn: (error: { body: { code: string } }) => error.body.code,
  },
  {
    name: 'groq-sdk',
    provider: 'groq',
    paths: () => ['/openai/v1/chat/completions'],
    model: 'llama-3.3-70b-versatile',
    call: ({ base, model, stream }) =>
      new Groq({ ...key, baseURL: base }).chat.completions.create({
        ...{ model, messages, stream },
        max_completion_tokens: 10,
      }),
    codeIn: (error: { error: { error: { code: string } } }) => error.error.error.code,
  },
  {
    name: 'ai with @ai-sdk/openai',
    provider: 'openai',
    paths: () => ['/v1/responses'],
    model: 'gpt-4o-mini',
    call: (call) => callVercel(createOpenAI({ ...key, baseURL: `${call.base}/v1` })(call.model), call),
    codeIn: codeInHeader,
  },
  {
    name: 'ai with @ai-sdk/anthropic',
    provider: 'anthropic',
    paths: () => ['/v1/messages'],
    model: 'claude-haiku-4-5',
    call: (call) => callVercel(createAnthropic({ ...key, baseURL: `${call.base}/v1` })(call.model), call),
    codeIn: codeInHeader,
  },
  {
    name: 'ai with @ai-sdk/google',
    provider: 'google',
    paths: geminiPaths,
    model: 'gemini-2.5-flash',
    call: (call) =>
      callVercel(createGoogleGenerativeAI({ ...key, baseURL: `${call.base}/v1beta` })(call.model), call),
    codeIn: codeInHeader,
  },
  {
    name: 'ai with @ai-sdk/cohere',
    provider: 'cohere',
    paths: () => ['/v2/chat'],
    model: 'command-a-03-2025',
    call: (call) => callVercel(createCohere({ ...key, baseURL: `${call.base}/v2` })(call.model), call),
    codeIn: codeInHeader,
  },
];

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const providers = new Set(SDKS.map(({ provider }) => provider));
  stack = await startStack({
    providers: Object.fromEntries([...providers].map((id) => [id, { base_url: upstream.url }])),
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** Issues a URL for the SDK's paths. Returns it up to and including its token, and in full. */
async function issue({ provider, paths, model }: Sdk, limits: object = {}) {
  const path = paths(model);
  const { url } = await stack.issue({ provider, path, client_api_key: REAL_KEY, ...limits });
  return { base: url.slice(0, -path[0].length), url };
}

/** Takes a use of a URL. */
const take = (url: string) => fetch(url, { method: 'POST', body: '{}' }).then((answer) => answer.text());

/** The same token, expired. */
function expired(base: string): string {
  const [before, token = ''] = base.split('/llm/t/');
  const signed = Buffer.from(token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
  const claims = JSON.parse(signed.toString()) as Record<string, unknown>;
  const past = { ...claims, exp: '2020-01-01T00:00:00Z' };
  return `${before}/llm/t/${signToken(past, readSigningKey(stack.keys.signing))}`;
}

type Refused = {
  readonly code: string;
  readonly says: string;
  readonly refused: (sdk: Sdk) => Promise<{ base: string; model?: string }>;
};

const REFUSALS: readonly Refused[] = [
  {
    code: 'token_invalid',
    says: 'The token in this URL is not valid here. Use the URL exactly as it was issued.',
    refused: async (sdk) => ({ base: (await issue(sdk)).base.replace('/v4.public.', '/v4.public.A') }),
  },
  {
    code: 'token_expired',
    says: 'This URL has expired. Issue a new URL.',
    refused: async (sdk) => ({ base: expired((await issue(sdk)).base) }),
  },
  {
    code: 'cost_limit_reached',
    says: 'This URL has spent its cost_limit of 0 microdollars ($0.00). Issue a new URL.',
    refused: (sdk) => issue(sdk, { cost_limit: 0 }),
  },
  {
    code: 'uses_exhausted',
    says: 'This URL has no uses left (max_uses 1). Issue a new URL.',
    refused: async (sdk) => {
      const { base, url } = await issue(sdk, { max_uses: 1 });
      await take(url);
      return { base };
    },
  },
  {
    code: 'path_not_allowed',
    says: 'This URL allows /elsewhere, not /',
    refused: (sdk) => issue({ ...sdk, paths: () => ['/elsewhere'] }),
  },
  {
    code: 'price_unknown',
    says: 'add the price to PROVIDERS_FILE',
    refused: async (sdk) => {
      const model = 'unpriced';
      // With a path that could be paid for: a URL without any is not issued.
      const paths = (): [string, ...string[]] => [...sdk.paths(sdk.model), ...sdk.paths(model)];
      return { model, ...(await issue({ ...sdk, paths }, { cost_limit: 1_000 })) };
    },
  },
  {
    code: 'rate_limited',
    says: 'This URL has no calls left (1 a minute). Try again in ',
    refused: async (sdk) => {
      const { base, url } = await issue(sdk, { calls_per_minute: 1 });
      await take(url);
      return { base };
    },
  },
];

describe.each(SDKS)('$name', (sdk) => {
  const expectRefusal = async ({ code, says, refused }: Refused, stream: boolean) => {
    const { base, model = sdk.model } = await refused(sdk);
    const thrown = await caught(sdk.call({ base, model, stream }));
    expect(thrown).toBeInstanceOf(Error);
    expect((thrown as Error).message).toContain(`${code}: `);
    expect((thrown as Error).message).toContain(says);
    expect(sdk.codeIn(thrown as never)).toBe(code);
  };

  test.each(REFUSALS)('throws an error that says $code and why', (refused) => expectRefusal(refused, false));
  test.each(REFUSALS.filter(({ code }) => code === 'uses_exhausted'))(
    'throws the same error for a stream ($code)',
    (refused) => expectRefusal(refused, true),
  );
});

const caught = async (call: PromiseLike<unknown>): Promise<unknown> => {
  try {
    return await call;
  } catch (error) {
    return error;
  }
};
