import { afterAll, beforeAll, expect, test } from 'vitest';
import { askRaw } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;
let gateway: string;
/** `/llm/t/<token>` of a grant for the paths below. */
let prefix: string;

const PATHS = ['/v1/chat/completions', '/v1/files/*', '/v1/threads/*/runs'];

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: `${upstream.url}/base` } } });
  gateway = stack.gatewayUrls[0] ?? '';
  const { url } = await stack.issue({ provider: 'openai', path: PATHS, client_api_key: 'sk-real' });
  prefix = new URL(url).pathname.replace('/v1/chat/completions', '');
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const post = (target: string) =>
  askRaw(
    gateway,
    `POST ${target} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  );

/** Spellings that another server might read as an allowed path, or as one that is not. */
const REFUSED = [
  '',
  '/',
  '/v1',
  '/v1/chat',
  '/v1/chat/completions/',
  '/v1/chat/completions//',
  '//v1/chat/completions',
  '/v1//chat/completions',
  '/v1/chat//completions',
  '/v1/chat/completions/.',
  '/v1/chat/completions/..',
  '/v1/./chat/completions',
  '/v1/x/../chat/completions',
  '/../v1/chat/completions',
  '/v1/chat/completions/../../models',
  '/v1/chat/completions/../../../../../v1/models',
  '/v1/files/..',
  '/v1/files/.',
  '/v1/files/...',
  '/v1/files/a..b',
  '/v1/files/../models',
  '/v1/files/%2e%2e/models',
  '/v1/files/%2e%2e',
  '/v1/files/%2E%2E',
  '/v1/files/.%2e',
  '/v1/files/%2e.',
  '/v1/files/%2e',
  '/v1/files/%252e%252e',
  '/v1/files/%252e%252e%252fmodels',
  '/v1/files/%25252e',
  '/v1/files/..%2fmodels',
  '/v1/files/a%2fb',
  '/v1/files/a%2Fb',
  '/v1/files/a%252fb',
  '/v1/files/a\\b',
  '/v1/files/..\\models',
  '\\v1\\chat\\completions',
  '/v1\\chat\\completions',
  '/v1/files/a%5cb',
  '/v1/files/%5c..%5cmodels',
  '/v1/files/a%255cb',
  '/v1/files/%00',
  '/v1/files/a%00.txt',
  '/v1/files/a%0d%0aX-Injected:%201',
  '/v1/files/a%0a',
  '/v1/files/a%09',
  '/v1/files/a%20b',
  '/v1/files/a%7f',
  '/v1/files/%c2%85',
  '/v1/files/%c0%ae%c0%ae',
  '/v1/files/%c0%af',
  '/v1/files/%e0%80%af',
  '/v1/files/%f0%80%80%af',
  '/v1/files/%ff',
  '/v1/files/%ed%a0%80',
  '/v1/files/%',
  '/v1/files/%2',
  '/v1/files/%zz',
  '/v1/files/%u002e',
  '/v1/files/a%3fb',
  '/v1/files/a%23b',
  '/v1/files/a#b',
  '/v1/chat/completions#',
  '/v1/chat/completions#/../models',
  '/v1/chat/completions%3fx=1',
  '/v1/chat/completions%23',
  '/v1/chat/completions%2f',
  '/v1/chat/completions;',
  '/v1/chat/completions;x=1',
  '/v1;x/chat/completions',
  '/v1/ch%61t/completions',
  '/v1/chat/completion%73',
  '/%76%31/chat/completions',
  '/v1%2fchat%2fcompletions',
  '/V1/chat/completions',
  '/v1/Chat/Completions',
  '/v1/chat/completions\xe9',
  '/v1/files/\xc3\xa9',
  '/v1/files/a"b',
  '/v1/files/a<b>',
  '/v1/files/a|b',
  '/v1/files/a^b',
  '/v1/files/a`b',
  '/v1/files/{a}',
  '/v1/files/[a]',
  '/v1/files/',
  '/v1/files',
  '/v1/files/a/b',
  '/v1/threads//runs',
  '/v1/threads/a/b/runs',
  '/v1/threads/../runs',
  '/v1/threads/%2e%2e/runs',
  '/v1/threads/a/runs/..',
  '/v1/*',
  '/*',
  '*',
  '/v1/v1/chat/completions',
  '/base/v1/chat/completions',
  '/http://other.example/v1/chat/completions',
  '@other.example/v1/chat/completions',
  ':80/v1/chat/completions',
];

test.each(REFUSED)('%j is refused and never reaches the provider', async (rest) => {
  const before = upstream.seen.length;
  const answer = await post(prefix + rest);
  expect([400, 401, 403, 404]).toContain(answer.status);
  if (answer.status === 403) expect(answer.body).toContain('"path_not_allowed"');
  expect(upstream.seen.length).toBe(before);
});

/** Odd, but the same for every server on the way. */
const PASSED = [
  '/v1/chat/completions',
  '/v1/files/*',
  '/v1/files/a;b=c',
  '/v1/files/a;b',
  '/v1/files/%c3%a9',
  '/v1/files/%C3%A9',
  '/v1/files/%e2%82%ac',
  '/v1/files/%f0%9f%98%80',
  '/v1/files/a%3ab',
  '/v1/files/a:b@c',
  '/v1/files/a%2Bb',
  '/v1/files/a+b',
  "/v1/files/!$&'()*+,=~_-",
  '/v1/files/%3Cscript%3E',
  '/v1/threads/a%40b/runs',
];
/** A query is the holder's; its bytes are kept. */
const QUERIES = [
  '',
  '?a=1',
  '?a=1&b=2&a=3',
  '?a',
  '?a=',
  '?&&a=1&',
  '?path=/../x//y',
  '?q=%2e%2e%2f%00%ff%zz%',
  '?q=a+b%20c',
  '?q=a?b?c',
  '?a=1#b',
  '?q=[]{}|^"<>`\\',
  '?alt=sse&$fields=a,b;c',
  `?long=${'x'.repeat(2_000)}`,
];
const SENT = [...PASSED, ...QUERIES.map((query) => `/v1/chat/completions${query}`)];

test.each(SENT)('%j arrives byte for byte as it was checked', async (rest) => {
  const before = upstream.seen.length;
  const answer = await post(prefix + rest);
  expect(answer.status).toBe(200);
  expect(upstream.seen.slice(before).map(({ url }) => url)).toEqual([`/base${rest}`]);
});

test('a path with any odd bytes arrives unchanged or not at all', async () => {
  const bytes = Array.from({ length: 255 }, (_, i) => String.fromCharCode(i + 1)).filter(
    (c) => !'\r\n '.includes(c),
  );
  for (const byte of bytes) {
    const rest = `/v1/files/a${byte}b`;
    const before = upstream.seen.length;
    const text = await post(prefix + rest).catch(() => undefined);
    const arrived = upstream.seen.slice(before).map(({ url }) => url);
    if (text?.status === 200) expect(arrived).toEqual([`/base${rest}`]);
    else expect(arrived).toEqual([]);
  }
});

test.each([
  ['in absolute form', (target: string) => `http://gateway${target}`],
  ['in absolute form for another host', (target: string) => `http://other.example:81${target}`],
])('a request target %s means the same call, and reaches no other host', async (_what, form) => {
  const before = upstream.seen.length;
  const answer = await post(form(`${prefix}/v1/chat/completions?x=1`));
  // RFC 9112 §3.2.2: a server must accept it.
  expect(answer.status).toBe(200);
  expect(upstream.seen.slice(before).map(({ url }) => url)).toEqual(['/base/v1/chat/completions?x=1']);
});

test.each([
  ['dots that lead to another route', () => '/llm/t/x/../../../healthz/../x'],
  ['dots that lead into this one', () => `/x/..${prefix}/v1/chat/completions`],
  ['a doubled slash in front', () => `/${prefix}/v1/chat/completions`],
  ['another case', () => `${prefix.replace('/llm/t/', '/LLM/T/')}/v1/chat/completions`],
  ['an encoded prefix', () => `${prefix.replace('/llm/', '/%6clm/')}/v1/chat/completions`],
  ['an encoded slash before the path', () => `${prefix}%2fv1/chat/completions`],
  ['no slash at its beginning', () => `llm/t/x/v1/chat/completions`],
  ['an asterisk', () => '*'],
  ['an authority', () => 'gateway:80'],
  ['a query outside ASCII', () => `${prefix}/v1/chat/completions?q=\xc3\xa9`],
  ['another scheme', () => `ftp://gateway${prefix}/v1/chat/completions`],
])('a request target with %s reaches no provider', async (_what, target) => {
  const before = upstream.seen.length;
  const answer = await post(target()).catch(() => ({ status: 400 }));
  expect([400, 401, 404]).toContain(answer.status);
  expect(upstream.seen.length).toBe(before);
});

test('a refusal names the requested path, the allowed paths, and a doubled version prefix', async () => {
  const answer = await post(`${prefix}/v1/v1/chat/completions`);
  const { error } = JSON.parse(answer.body) as { error: { message: string; allowed: string[] } };
  expect(error.allowed).toEqual(PATHS);
  expect(error.message).toContain('/v1/v1/chat/completions');
  expect(error.message).toContain('doubled');
});

test('a base URL that is the whole URL is refused with what to cut', async () => {
  const answer = await post(`${prefix}/v1/chat/completions/chat/completions`);
  expect(answer.status).toBe(403);
  expect(answer.body).toContain(
    'The SDK adds /chat/completions itself: cut it from the end of its base URL.',
  );
});
