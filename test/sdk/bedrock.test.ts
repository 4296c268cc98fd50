import { Readable } from 'node:stream';
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk';
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import type { Upstream } from '../harness/upstream.ts';
import { PLACEHOLDER_KEY } from './keys.ts';
import { AWS_KEY, BEDROCK_API_KEY, signatureOf, startBedrock } from './upstreams/bedrock.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startBedrock();
  stack = await startStack({ providers: { bedrock: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const MODEL = 'eu.anthropic.claude-haiku-4-5-20251001-v1:0';
/** As AWS's SDKs write it. */
const PATH = '/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse';
const OPERATIONS = ['converse', 'converse-stream', 'invoke', 'invoke-with-response-stream'];

const issue = (limits: object = {}, key: object = AWS_KEY) =>
  stack.issue({
    provider: 'bedrock',
    path: [PATH, ...OPERATIONS.map((operation) => `/model/*/${operation}`)],
    client_api_key: JSON.stringify(key, undefined, 2),
    ...limits,
  });
const aws = (url: string) =>
  new BedrockRuntimeClient({
    region: 'us-east-1',
    endpoint: url.replace(PATH, ''),
    credentials: {
      accessKeyId: 'placeholder',
      secretAccessKey: PLACEHOLDER_KEY,
      sessionToken: PLACEHOLDER_KEY,
    },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  });
const claude = (url: string) =>
  new AnthropicBedrock({
    baseURL: url.replace(PATH, ''),
    awsRegion: 'us-east-1',
    apiKey: PLACEHOLDER_KEY,
    maxRetries: 0,
  });

const converse = {
  modelId: MODEL,
  messages: [{ role: 'user' as const, content: [{ text: 'Hi' }] }],
  inferenceConfig: { maxTokens: 100 },
};
const message = {
  model: MODEL,
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hi' }],
};
const invoke = {
  modelId: MODEL,
  contentType: 'application/json',
  body: JSON.stringify({
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: 100,
    messages: message.messages,
  }),
};

/** Each kind of call with its official client: the text of the answer. */
const CALLS: Readonly<Record<string, (url: string) => Promise<string>>> = {
  Converse: async (url) => {
    const answer = await aws(url).send(new ConverseCommand(converse));
    return answer.output?.message?.content?.[0]?.text ?? '';
  },
  ConverseStream: async (url) => {
    const { stream } = await aws(url).send(new ConverseStreamCommand(converse));
    let text = '';
    for await (const each of stream ?? []) text += each.contentBlockDelta?.delta?.text ?? '';
    return text;
  },
  InvokeModel: async (url) => {
    const { body } = await aws(url).send(new InvokeModelCommand(invoke));
    return (JSON.parse(body.transformToString()) as { content: [{ text: string }] }).content[0].text;
  },
  InvokeModelWithResponseStream: async (url) => {
    const { body } = await aws(url).send(new InvokeModelWithResponseStreamCommand(invoke));
    let text = '';
    for await (const { chunk } of body ?? []) {
      const each = JSON.parse(Buffer.from(chunk?.bytes ?? []).toString()) as { delta?: { text?: string } };
      text += each.delta?.text ?? '';
    }
    return text;
  },
  "Anthropic's client": async (url) => {
    const { content } = await claude(url).messages.create(message);
    return content[0]?.type === 'text' ? content[0].text : '';
  },
  "Anthropic's client, streamed": async (url) => {
    let text = '';
    for await (const each of await claude(url).messages.create({ ...message, stream: true }))
      if (each.type === 'content_block_delta' && each.delta.type === 'text_delta') text += each.delta.text;
    return text;
  },
};

describe.each(Object.entries(CALLS))('%s', (_name, call) => {
  test('is signed with the real key, and nothing of the holder reaches AWS', async () => {
    const { url } = await issue();
    expect(await call(url)).toBe('Hello');
    const seen = upstream.seen.at(-1);
    const all = [seen?.url, ...(seen?.rawHeaders ?? []), seen?.body.toString()].join('\n');
    expect(all).not.toContain(PLACEHOLDER_KEY);
    expect(all).not.toContain(AWS_KEY.secret_access_key);
    expect(seen?.headers.authorization).toContain(`/${AWS_KEY.region}/bedrock/aws4_request`);
  });

  test('is charged by its usage under a cost limit, and its output bound is what the limit can pay', async () => {
    // 1.1 dollars for a million input tokens, 5.5 for output, 0.11 for tokens from the cache.
    const { url } = await issue({ cost_limit: 100_000 });
    expect(await call(url)).toBe('Hello');
    const body = JSON.parse(upstream.seen.at(-1)?.body.toString() ?? '') as Record<string, unknown>;
    expect(body.max_tokens ?? (body.inferenceConfig as { maxTokens: number }).maxTokens).toBe(100);
    const spent = await eventually(async () => {
      const answer = await fetch(url.replace(PATH, ''));
      const status = (await answer.json()) as { held: number; spent: number };
      return status.held === 0 ? status.spent : undefined;
    });
    expect(spent).toBe(Math.ceil(20 * 1.1 + 10 * 0.11 + 7 * 5.5));
  });
});

test('a Bedrock API key is sent as a bearer token', async () => {
  const { url } = await issue({}, { api_key: BEDROCK_API_KEY, region: 'us-west-2' });
  const answer = await aws(url).send(new ConverseCommand(converse));
  expect(answer.stopReason).toBe('end_turn');
  expect(upstream.seen.at(-1)?.headers['x-amz-date']).toBeUndefined();
});

test.each([
  ['that its holder sends in pieces', { 'content-type': 'application/json' }],
  ['of another type', { 'content-type': 'text/plain' }],
])('a large body %s is signed completely', async (_what, headers) => {
  const { url } = await issue();
  const text = 'word '.repeat(60_000);
  const pieces = [JSON.stringify({ messages: [{ role: 'user', content: [{ text }] }] }).slice(0, -1), '}'];
  const body = Readable.from(pieces.map((each) => Buffer.from(each)));
  const { statusCode } = await request(url, { method: 'POST', headers, body });
  expect(statusCode).toBe(200);
  expect(upstream.seen.at(-1)?.body.toString()).toBe(pieces.join(''));
});

test('an error that quotes the signed request shows no part of the key', async () => {
  const { url } = await issue(
    {},
    { ...AWS_KEY, secret_access_key: 'another/secret+of-the-same-account000000' },
  );
  const error = await aws(url)
    .send(new ConverseCommand(converse))
    .catch((thrown: Error) => thrown);
  expect(error).toMatchObject({
    name: 'InvalidSignatureException',
    message: expect.stringMatching(/\*{40,}/),
  });
  expect(JSON.stringify(error)).not.toContain(AWS_KEY.session_token);
  expect(stack.logs.join('')).not.toContain(AWS_KEY.session_token);
});

test('a model without a price for every region is refused under a cost limit', async () => {
  const { url } = await issue({ cost_limit: 100_000 });
  for (const modelId of [
    'us.amazon.nova-lite-v1:0',
    'us.anthropic.claude-sonnet-5-5',
    'us-gov.anthropic.claude-opus-4-8',
  ]) {
    const error = await aws(url)
      .send(new ConverseCommand({ ...converse, modelId }))
      .catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ name: 'price_unknown', message: expect.stringMatching(/is not known/) });
  }
});

test("no uses left raises an error of AWS's SDK and of Anthropic's client that says so", async () => {
  const { url } = await issue({ max_uses: 1 });
  await aws(url).send(new ConverseCommand(converse));
  const error = await aws(url)
    .send(new ConverseCommand(converse))
    .catch((thrown: Error) => thrown);
  const says = expect.stringMatching(/This URL has no uses left/) as unknown;
  expect(error).toMatchObject({ name: 'uses_exhausted', message: says, $metadata: { httpStatusCode: 403 } });
  const other = await claude(url)
    .messages.create(message)
    .catch((thrown: Error) => thrown);
  expect(other).toMatchObject({ status: 403, message: says });
});

test.each([
  ['one word', 'AKIDEXAMPLE000000001'],
  ['JSON without a region', JSON.stringify({ ...AWS_KEY, region: undefined })],
  ['a region that would be another host', JSON.stringify({ ...AWS_KEY, region: 'us-east-1.example.com/' })],
  ['a region of another partition', JSON.stringify({ ...AWS_KEY, region: 'us-gov-west-1' })],
])('a key that no call could use is refused at issuing: %s', async (_what, client_api_key) => {
  const answer = await stack.presign({ provider: 'bedrock', path: PATH, client_api_key });
  expect(answer.status).toBe(400);
  const text = await answer.text();
  expect(text).toContain('client_api_key: expected the JSON text');
  expect(text).not.toContain('AKIDEXAMPLE');
});

/** https://docs.aws.amazon.com/general/latest/gr/signature-v4-test-suite.html, get-vanilla */
test("the mock's signature equals the one that AWS publishes for its test request", () => {
  const request = {
    ...{ method: 'GET', url: '/', body: Buffer.alloc(0) },
    headers: { host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z' },
  };
  const account = {
    secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
    scope: ['us-east-1', 'service'] as const,
  };
  expect(signatureOf(request, ['host', 'x-amz-date'], account)).toBe(
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  );
});
