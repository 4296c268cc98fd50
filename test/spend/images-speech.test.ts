import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { statusOf } from './many-calls.ts';

const IMAGES = '/v1/images/generations';
const SPEECH = '/v1/audio/speech';

let answer: Answer;
let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((...call) => answer(...call));
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const issue = async (limits: object = { cost_limit: 1_000_000 }) => {
  const path = [IMAGES, SPEECH, '/v1/images/edits'];
  const { url } = await stack.issue({ provider: 'openai', path, client_api_key: 'sk-real', ...limits });
  return url.replace(IMAGES, '');
};
const clientOf = (base: string) => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'unused', maxRetries: 0 });
const moneyOf = (base: string) => statusOf(`${base}${IMAGES}`);

const json = (body: unknown): Answer => {
  const text = JSON.stringify(body);
  return (_seen, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(text);
};
/** Usage as OpenAI reports it: 50 × $5 and 1,056 × $40 for a million tokens are 42,490 microdollars. */
const USAGE = {
  input_tokens: 50,
  input_tokens_details: { text_tokens: 50, image_tokens: 0 },
  output_tokens: 1_056,
  total_tokens: 1_106,
};
const COST = 42_490;
const cat = {
  model: 'gpt-image-1',
  prompt: 'A cat',
  quality: 'medium',
  size: '1024x1024',
} as const;

test('images of 24 MB reach the SDK unchanged, and cost the usage stated after them', async () => {
  const b64_json = Buffer.alloc(9 * 1024 * 1024, 'picture').toString('base64');
  answer = json({ created: 1, data: [{ b64_json }, { b64_json }], usage: USAGE });
  const base = await issue();
  const { data } = await clientOf(base).images.generate({ ...cat, n: 2 });
  expect(data?.map((each) => each.b64_json === b64_json)).toEqual([true, true]);
  expect(await moneyOf(base)).toMatchObject({ spent: COST, held: 0 });
});

test('an answer without usage costs its hold', async () => {
  answer = json({ created: 1, data: [{ b64_json: 'AAAA' }] });
  const base = await issue();
  const { response } = await clientOf(base).images.generate(cat).withResponse();
  const cost = Number(response.headers.get('x-presign-cost'));
  expect(cost).toBeGreaterThan(1_056 * 40);
  expect(await moneyOf(base)).toMatchObject({ spent: cost, held: 0 });
});

test('a streamed image costs the usage of its last event', async () => {
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: 'A'.repeat(1_000_000), ...more })}\n\n`;
  answer = (_seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(event('image_generation.partial_image', { partial_image_index: 0 }));
    response.end(event('image_generation.completed', { usage: USAGE }));
  };
  const base = await issue();
  const stream = await clientOf(base).images.generate({ ...cat, stream: true, partial_images: 1 });
  const types: string[] = [];
  for await (const each of stream) types.push(each.type);
  expect(types).toEqual(['image_generation.partial_image', 'image_generation.completed']);
  expect(await moneyOf(base)).toMatchObject({ spent: COST, held: 0 });
});

test('speech is played while the provider still sends it, and costs its characters', async () => {
  let speakOn = () => {};
  const more = new Promise<void>((resolve) => {
    speakOn = resolve;
  });
  answer = async (_seen, response) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' });
    response.write(Buffer.alloc(100, 1));
    await more;
    response.end(Buffer.alloc(100, 2));
  };
  const base = await issue();
  const spoken = await clientOf(base).audio.speech.create({
    model: 'tts-1',
    voice: 'alloy',
    input: 'Hello!',
  });
  const reader = spoken.body?.getReader();
  const first = await reader?.read();
  expect(first?.value?.[0]).toBe(1);
  expect(await moneyOf(base)).toMatchObject({ spent: 0, held: 6 * 15 });
  speakOn();
  let bytes = first?.value?.length ?? 0;
  for (let next = await reader?.read(); next?.value; next = await reader?.read()) bytes += next.value.length;
  expect(bytes).toBe(200);
  expect(await moneyOf(base)).toMatchObject({ spent: 6 * 15, held: 0 });
});

test.each([
  ['gpt-image-2 of unknown size', 'size', { ...cat, model: 'gpt-image-2', size: 'auto' as const }],
  ['eleven pictures', 'n', { ...cat, n: 11 }],
])('%s has no bound', async (_what, param, body) => {
  const error = await clientOf(await issue())
    .images.generate(body)
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 422, code: 'cost_unbounded', param });
});

test('a voice priced by tokens has no bound', async () => {
  const said = { model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Hello!' };
  const before = upstream.seen.length;
  const error = await clientOf(await issue())
    .audio.speech.create(said)
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 422, code: 'cost_unbounded', param: 'model' });
  expect(String(error)).toMatch(/price of gpt-4o-mini-tts at openai has no rate for characters/);
  expect(upstream.seen).toHaveLength(before);
});

test('edits are multipart, so they get 415 under a limit and pass without one', async () => {
  const image = await toFile(Buffer.from('png'), 'cat.png', { type: 'image/png' });
  const edit = async (base: string) =>
    clientOf(base).images.edit({ model: 'gpt-image-1', image, prompt: 'a' });
  const error = await edit(await issue()).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 415 });
  answer = json({ created: 1, data: [{ b64_json: 'AAAA' }] });
  expect((await edit(await issue({}))).data).toHaveLength(1);
});

test('ten parallel calls on the money of three reach the provider three times', async () => {
  answer = async (_seen, response, request) => {
    await json({ created: 1, data: [{ b64_json: 'AAAA' }] })(_seen, response, request);
  };
  const once = await issue();
  const hold = await clientOf(once).images.generate(cat).withResponse();
  const holdMicrousd = Number(hold.response.headers.get('x-presign-cost'));
  const base = await issue({ cost_limit: 3 * holdMicrousd });
  const before = upstream.seen.length;
  const calls = Array.from({ length: 10 }, () =>
    clientOf(base)
      .images.generate(cat)
      .then(Boolean, () => false),
  );
  expect((await Promise.all(calls)).filter(Boolean)).toHaveLength(3);
  expect(upstream.seen.length - before).toBe(3);
  expect(await moneyOf(base)).toMatchObject({ spent: 3 * holdMicrousd, held: 0 });
});
