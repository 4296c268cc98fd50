import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from '../issuer/ask.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((seen, response, request) => {
    if (seen.method !== 'GET') return answerChat(seen, response, request);
    const headers = {
      'content-type': 'application/json',
      'cache-control': 'public, max-age=60',
      vary: 'origin',
    };
    response.writeHead(200, headers).end('{"data":[]}');
  });
  const base_url = upstream.url;
  stack = await startStack({ providers: { openai: { base_url }, anthropic: { base_url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const KEY = 'sk-of-the-provider';
const CHAT = '/v1/chat/completions';
const least = { provider: 'openai', path: CHAT, client_api_key: KEY };
const BODY = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hi' }] });

/** An issued URL in its two forms. */
async function issue(fields: object = {}) {
  const { url, session_id } = await stack.issue({ ...least, ...fields });
  const [, token = '', path = ''] = /\/llm\/t\/([^/]+)(\/.*)$/.exec(url) ?? [];
  return { url, token, session: session_id, bare: `${stack.gatewayUrls[0]}/llm${path}` };
}

type Init = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string };
const post = (url: string, { headers, ...init }: Init = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: BODY,
    ...init,
  });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const codeOf = (answer: Response) => answer.headers.get('x-presign-code');

describe('a token in Authorization', () => {
  test('equals a token in the URL, and both share the uses', async () => {
    const { url, token, bare } = await issue({ max_uses: 3 });
    expect((await post(bare, { headers: bearer(token) })).headers.get('x-presign-uses-remaining')).toBe('2');
    expect((await post(url)).headers.get('x-presign-uses-remaining')).toBe('1');
    const lower = { authorization: `bearer   ${token}` };
    expect((await post(bare, { headers: lower })).headers.get('x-presign-uses-remaining')).toBe('0');
    expect(codeOf(await post(bare, { headers: bearer(token) }))).toBe('uses_exhausted');
  });

  test('does not reach the provider, the log or an answer', async () => {
    const { token, bare } = await issue();
    const passed = await post(`${bare}?a=b`, { headers: bearer(token) });
    const refused = await post(`${bare}/none`, { headers: bearer(token) });
    expect([passed.status, codeOf(refused)]).toEqual([200, 'path_not_allowed']);
    const seen = upstream.seen.at(-1);
    expect(seen).toMatchObject({ url: `${CHAT}?a=b`, headers: { authorization: `Bearer ${KEY}` } });
    const all = [await passed.text(), await refused.text(), JSON.stringify(upstream.seen), ...stack.logs];
    expect(all.filter((text) => text.includes(token.slice(20, 60)))).toEqual([]);
  });

  test('is ignored if the URL has a token', async () => {
    const [one, other] = [await issue({ max_uses: 1 }), await issue()];
    expect((await post(one.url, { headers: bearer(other.token) })).status).toBe(200);
    expect(codeOf(await post(one.url, { headers: bearer(other.token) }))).toBe('uses_exhausted');
  });

  test('shows what its URL has left at GET /llm', async () => {
    const { token } = await issue({ max_uses: 7 });
    const at = `${stack.gatewayUrls[0]}/llm`;
    expect(await (await fetch(at, { headers: bearer(token) })).json()).toMatchObject({ max_uses: 7 });
    expect(codeOf(await fetch(at))).toBe('token_invalid');
    expect(codeOf(await fetch(at, { method: 'PUT' }))).toBe('method_not_supported');
  });

  test('can be set as the API key of an official SDK', async () => {
    const openai = await issue();
    const client = new OpenAI({ baseURL: openai.bare.replace(/\/chat.*/, ''), apiKey: openai.token });
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    await client.chat.completions.create({ model: 'gpt-4o-mini', messages });
    expect(upstream.seen.at(-1)?.headers.authorization).toBe(`Bearer ${KEY}`);
    const anthropic = await issue({ provider: 'anthropic', path: '/v1/messages' });
    const options = { baseURL: `${stack.gatewayUrls[0]}/llm`, authToken: anthropic.token, apiKey: null };
    const ask = { model: 'claude-haiku-4-5', max_tokens: 10, messages };
    await new Anthropic({ ...options, maxRetries: 0 }).messages.create(ask);
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-api-key': KEY });
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('authorization');
    const wrong = new Anthropic({ ...options, authToken: 'none', maxRetries: 0 });
    await expect(wrong.messages.create(ask)).rejects.toMatchObject({ status: 403 });
  });
});

test('a cache in between gives an answer to no other token, even if the provider allows shared caching', async () => {
  const { url, token, bare } = await issue({ method: 'GET', path: '/v1/models' });
  const passed = await fetch(bare, { headers: bearer(token) });
  expect([passed.status, passed.headers.get('cache-control')]).toEqual([200, 'public, max-age=60']);
  expect(passed.headers.get('vary')?.split(/, */).sort()).toEqual(['authorization', 'origin']);
  expect((await fetch(url)).headers.get('vary')).toBe('origin');
  const refused = await fetch(bare);
  expect([refused.status, refused.headers.get('cache-control')]).toEqual([401, 'no-store']);
});

/** Each fault of a token, and the headers and the URL that have it. */
const FAULTS: readonly (readonly [
  string,
  string,
  (of: Awaited<ReturnType<typeof issue>>) => [string, Init],
])[] = [
  ['no header', 'token_invalid', ({ bare }) => [bare, {}]],
  [
    'another scheme',
    'token_invalid',
    ({ bare, token }) => [bare, { headers: { authorization: `Basic ${token}` } }],
  ],
  ['no scheme', 'token_invalid', ({ bare, token }) => [bare, { headers: { authorization: token } }]],
  ['another header', 'token_invalid', ({ bare, token }) => [bare, { headers: { 'x-api-key': token } }]],
  ['the query', 'token_invalid', ({ bare, token }) => [`${bare}?access_token=${token}`, {}]],
  ['two tokens', 'token_invalid', ({ bare, token }) => [bare, { headers: bearer(`${token} ${token}`) }]],
  [
    'a wrong signature',
    'token_invalid',
    ({ bare, token }) => [bare, { headers: bearer(`${token.slice(0, -4)}AAAA`) }],
  ],
  [
    'a long text',
    'token_invalid',
    ({ bare }) => [bare, { headers: bearer('v4.public.'.padEnd(9_000, 'A')) }],
  ],
  ['another path', 'path_not_allowed', ({ bare, token }) => [`${bare}/x`, { headers: bearer(token) }]],
  [
    'a climbing path',
    'path_not_allowed',
    ({ bare, token }) => [`${bare}/%2e%2e/x`, { headers: bearer(token) }],
  ],
  [
    'another method',
    'method_not_allowed',
    ({ bare, token }) => [bare, { method: 'PUT', headers: bearer(token) }],
  ],
];

test.each(FAULTS)('a call with %s is refused: %s', async (_what, code, ask) => {
  const before = upstream.seen.length;
  expect(codeOf(await post(...ask(await issue())))).toBe(code);
  expect(upstream.seen.length).toBe(before);
});

test('a revoked or expired URL is also refused with its token in a header', async () => {
  const { token, bare, session } = await issue();
  await send(stack, { method: 'DELETE', path: `/v1/sessions/${session}` });
  expect(codeOf(await post(bare, { headers: bearer(token) }))).toBe('grant_revoked');
  const short = await issue({ expires_in: 1 });
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect(codeOf(await post(short.bare, { headers: bearer(short.token) }))).toBe('token_expired');
});

test('a URL bound to an origin is also bound with its token in a header', async () => {
  const { token, bare } = await issue({ bind: { origins: ['https://app.example.com'] } });
  const from = (origin: string) => post(bare, { headers: { ...bearer(token), origin } });
  const passed = await from('https://app.example.com');
  expect(passed.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
  expect(codeOf(await from('https://other.example.com'))).toBe('origin_not_allowed');
});
