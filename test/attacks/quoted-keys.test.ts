import { brotliCompressSync, gzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';

const KEY = 'sk-proj-"quoted"/key+1234567890';
const ERROR = JSON.stringify({
  error: {
    message: `Incorrect API key provided: ${KEY}.`,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
  },
});

let upstream: Upstream;
let stack: Stack;
let answer: Answer;
beforeAll(async () => {
  upstream = await startUpstream((...all) => answer(...all));
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(() => {
  answer = (_seen, response) => void response.writeHead(500).end();
});

const BODY = JSON.stringify({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'hi' }],
  max_tokens: 5,
});
async function call(policy: object = {}, path = '/v1/chat/completions') {
  const { url } = await stack.issue({ provider: 'openai', path, client_api_key: KEY, ...policy });
  const headers = { 'content-type': 'application/json', 'accept-encoding': 'gzip, br' };
  const heard = await request(url, { method: 'POST', headers, body: BODY });
  const bytes = Buffer.from(await heard.body.arrayBuffer());
  return { status: heard.statusCode, headers: heard.headers, bytes, text: bytes.toString() };
}
const message = (text: string) => (JSON.parse(text) as { error: { message: string } }).error.message;
const MASKED = /^Incorrect API key provided: \*+\.$/;

const POLICIES: [string, object, string?][] = [
  ['without limits', {}],
  ['with a cost limit, whose answers are kept back', { cost_limit: 1_000_000 }],
  ['with an endpoint that the gateway does not know', {}, '/v1/things'],
];

test.each(POLICIES)('an error that quotes the key is masked for a URL %s', async (_what, policy, path) => {
  for (const status of [400, 401, 403, 429, 500]) {
    answer = (_seen, response) =>
      void response
        .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(ERROR) })
        .end(ERROR);
    const heard = await call(policy, path);
    expect([heard.status, heard.bytes.length]).toEqual([status, Buffer.byteLength(ERROR)]);
    expect(message(heard.text)).toMatch(MASKED);
  }
});

test.each(POLICIES)(
  'a compressed error that quotes the key is masked for a URL %s',
  async (_what, policy, path) => {
    for (const [coding, bytes] of [
      ['gzip', gzipSync(ERROR)],
      ['br', brotliCompressSync(ERROR)],
    ] as const) {
      answer = (_seen, response) =>
        void response
          .writeHead(401, { 'content-type': 'application/json', 'content-encoding': coding })
          .end(bytes);
      const heard = await call(policy, path);
      expect([heard.status, heard.headers['content-encoding']]).toEqual([401, undefined]);
      expect(message(heard.text)).toMatch(MASKED);
    }
  },
);

test('a key is masked wherever the chunks of an error end', async () => {
  const whole = Buffer.from(ERROR);
  const from = whole.indexOf('sk-proj');
  for (let at = from - 1; at < from + Buffer.byteLength(JSON.stringify(KEY)); at += 3) {
    answer = (_seen, response) => {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.write(whole.subarray(0, at), () => setImmediate(() => response.end(whole.subarray(at))));
    };
    expect(message((await call()).text)).toMatch(MASKED);
  }
});

test('a key is masked in the headers of an error and of a redirect', async () => {
  for (const status of [302, 401]) {
    answer = (_seen, response) =>
      void response
        .writeHead(status, { 'x-trace-id': `key=${KEY}`, location: `/login?key=${encodeURIComponent(KEY)}` })
        .end();
    const heard = await call();
    expect(heard.status).toBe(status);
    expect(heard.headers['x-trace-id']).toMatch(/^key=\*+$/);
    expect(JSON.stringify(heard.headers)).not.toContain('sk-proj');
  }
});

test('an answer that is not an error passes byte for byte', async () => {
  const body = Buffer.concat([Buffer.from('{"text":"'), Buffer.alloc(1_000, 'sk-proj-'), Buffer.from('"}')]);
  answer = (_seen, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  expect((await call()).bytes).toEqual(body);
});
