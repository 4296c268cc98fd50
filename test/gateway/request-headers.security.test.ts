import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { askRaw } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
let gateway: string;
/** Path with token of an OpenAI grant. */
let openai: string;

const REAL = 'sk-the-real-key';
const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: REAL };

beforeAll(async () => {
  providers = await startProviders();
  stack = await startStack({ providers: providers.file });
  gateway = stack.gatewayUrls[0] ?? '';
  openai = await pathOf(CHAT);
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.seen.length = 0;
  providers.answer = OK;
});

const pathOf = async (ask: object) => new URL((await stack.issue(ask)).url).pathname;

/** Sends a call with these header lines and gives back what the provider saw, names in lower case. */
async function arrived(path: string, lines: string[], method = 'POST'): Promise<[string, string][]> {
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: gateway',
    'Connection: close',
    'Content-Length: 2',
    ...lines,
  ];
  const answer = await askRaw(gateway, `${head.join('\r\n')}\r\n\r\n{}`);
  expect(answer.status).toBe(200);
  expect(providers.seen).toHaveLength(1);
  const raw = providers.seen[0]?.rawHeaders ?? [];
  return raw.flatMap((name, i) =>
    i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1] ?? ''] as [string, string]] : [],
  );
}
const names = (headers: [string, string][]) => headers.map(([name]) => name);

const HOLDERS_OWN = [
  'Authorization: Bearer holder',
  'authorization: Basic aG9sZGVy',
  'AUTHORIZATION: holder',
  'Proxy-Authorization: Basic aG9sZGVy',
  'X-Api-Key: holder',
  'x-goog-api-key: holder',
  'X-GOOG-API-KEY: holder',
  'api-key: holder',
  'Api_Key: holder',
  'X_Api_Key: holder',
  'x_goog_api_key: holder',
  'Ocp-Apim-Subscription-Key: holder',
  // Azure answers it with a trace of the whole request.
  'Ocp-Apim-Trace: holder',
  'Cookie: holder=1',
  'Cookie2: $Version="holder"',
];

test.each([
  [CHAT, 'authorization', `Bearer ${REAL}`],
  [{ provider: 'anthropic', path: '/v1/messages', client_api_key: REAL }, 'x-api-key', REAL],
  [
    { provider: 'google', path: '/v1beta/models/gemini-x:generateContent', client_api_key: REAL },
    'x-goog-api-key',
    REAL,
  ],
  [
    { provider: 'google', path: '/v1beta/openai/chat/completions', client_api_key: REAL },
    'authorization',
    `Bearer ${REAL}`,
  ],
  [
    { provider: 'azure-openai', path: '/openai/deployments/d/chat/completions', client_api_key: REAL },
    'api-key',
    REAL,
  ],
  [{ provider: 'cohere', path: '/v2/chat', client_api_key: REAL }, 'authorization', `Bearer ${REAL}`],
])(
  "%o: the real key is sent once as %s, and nothing of the holder's credential",
  async (ask, header, value) => {
    const headers = await arrived(await pathOf(ask), HOLDERS_OWN);
    expect(headers.filter(([, each]) => each.includes(REAL))).toEqual([[header, value]]);
    expect(JSON.stringify(headers)).not.toMatch(/holder/i);
  },
);

test.each([
  'key=holder',
  'KEY=holder',
  'Key=holder',
  'k%65y=holder',
  '%6B%45%79=holder',
  'api_key=holder',
  'api-key=holder',
  'apiKey=holder',
  'API%5FKEY=holder',
  'access_token=holder',
  'access%5ftoken=holder',
  'oauth_token=holder',
  'bearer_token=holder',
  'subscription-key=holder',
  '%24key=holder',
  '$key=holder',
  '$httpMethod=DELETE-holder',
  '%24httpHeaders=Authorization:holder',
  '+key=holder',
  'key%20=holder',
  'key',
])('a credential in the query, as in ?%s, is dropped, and the rest keeps its bytes', async (pair) => {
  await arrived(`${openai}?a=%2f+x&${pair}&b=1&a=2&keys=3&monkey=4`, []);
  expect(providers.seen[0]?.url).toBe('/v1/chat/completions?a=%2f+x&b=1&a=2&keys=3&monkey=4');
});

test('a query with credentials alone leaves no question mark', async () => {
  await arrived(`${openai}?key=a&api_key=b`, []);
  expect(providers.seen[0]?.url).toBe('/v1/chat/completions');
});

test.each([
  'X-HTTP-Method-Override: DELETE',
  'x-http-method: DELETE',
  'X-Method-Override: DELETE',
  'X_HTTP_Method_Override: DELETE',
  'X-HTTP-METHOD-OVERRIDE: GET',
  'X-Original-URL: /v1/files',
  'X-Rewrite-URL: /v1/files',
])('%s is dropped, so that the checked method and path are the ones that apply', async (line) => {
  const headers = await arrived(openai, [line]);
  expect(names(headers)).not.toContain(line.split(':')[0]?.toLowerCase());
});

test.each([
  'Cookie: session=1',
  'Forwarded: for=192.0.2.1',
  'Via: 1.1 proxy',
  'X-Forwarded-For: 192.0.2.1',
  'X-Forwarded-Host: gateway',
  'X-Forwarded-Proto: http',
  'X_Forwarded_For: 192.0.2.1',
  'X-Forwarded-Anything: 1',
  'X-Real-IP: 192.0.2.1',
  'X-Client-IP: 192.0.2.1',
  'True-Client-IP: 192.0.2.1',
  'CF-Connecting-IP: 192.0.2.1',
  'Origin: https://app.example',
  'Referer: https://app.example/llm/t/secret',
  'Sec-Fetch-Site: cross-site',
  'Sec-CH-UA: "x"',
  'X-Presign-Uses-Remaining: 9',
  'Keep-Alive: timeout=5',
  'Proxy-Connection: keep-alive',
  'TE: trailers',
  'Trailer: X-Late',
])('%s is not sent to the provider', async (line) => {
  const headers = await arrived(openai, [line]);
  expect(names(headers)).not.toContain(line.split(':')[0]?.toLowerCase());
});

test('headers that Connection names are dropped, in any spelling', async () => {
  const headers = await arrived(openai, [
    'connection: X-One , x-TWO',
    'Connection: x-three',
    'X-One: 1',
    'x-two: 2',
    'X-Three: 3',
    'X-Four: 4',
  ]);
  expect(names(headers).filter((name) => /^x-(one|two|three|four)$/.test(name))).toEqual(['x-four']);
});

test('Connection cannot remove the real key', async () => {
  const headers = await arrived(openai, ['Connection: authorization, content-length, host, content-type']);
  expect(headers).toContainEqual(['authorization', `Bearer ${REAL}`]);
  expect(providers.seen[0]?.body.toString()).toBe('{}');
});

test('all other headers pass unchanged and in order, duplicates included', async () => {
  const lines = [
    'Content-Type: application/json',
    'OpenAI-Organization: org-1',
    'anthropic-beta: a',
    'Anthropic-Beta: b, c',
    'X-Stainless-Lang: js',
    'X-Request-Id: mine',
    'Idempotency-Key: k-1',
    'User-Agent: test/1',
    'X-Empty:',
    'X-Latin: caf\xe9',
    'X-Tab: a\tb',
  ];
  const headers = await arrived(openai, [...lines, 'Accept-Encoding: gzip, br, zstd']);
  // The gateway's own: it asks for what it can decode.
  expect(headers).toContainEqual(['accept-encoding', 'gzip, br']);
  const sent = lines.map((line) => [
    line.slice(0, line.indexOf(':')).toLowerCase(),
    line.slice(line.indexOf(':') + 1).trim(),
  ]);
  expect(headers.filter(([name]) => sent.some(([each]) => each === name))).toEqual(sent);
  expect(names(headers).filter((name) => name === 'host')).toHaveLength(1);
  expect(headers).toContainEqual(['host', new URL(providers.url).host]);
});

test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'post', 'Post', 'X'])(
  'method %s is refused if the URL allows POST, whatever the override header says',
  async (method) => {
    const lines = ['Host: gateway', 'Connection: close', 'X-HTTP-Method-Override: POST', 'Content-Length: 0'];
    const answer = await askRaw(gateway, `${method} ${openai} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    expect([400, 403]).toContain(answer.status);
    if (answer.status === 403 && method !== 'HEAD') {
      expect(JSON.parse(answer.body)).toMatchObject({
        error: { code: 'method_not_allowed', allowed: ['POST'] },
      });
    }
    expect(providers.seen).toHaveLength(0);
  },
);

test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'])(
  'a URL for %s allows exactly that method',
  async (method) => {
    const path = await pathOf({ ...CHAT, path: '/v1/models', method });
    await arrived(path, [], method);
    expect(providers.seen[0]?.method).toBe(method);
    const post = await askRaw(
      gateway,
      `POST ${path} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    expect(post.status).toBe(403);
    expect(providers.seen).toHaveLength(1);
  },
);

test.each(['websocket', 'h2c', 'TLS/1.0', 'HTTP/2.0', 'anything'])(
  'an upgrade to %s is refused',
  async (to) => {
    const lines = ['Host: gateway', 'Connection: Upgrade', `Upgrade: ${to}`, 'Content-Length: 2'];
    const answer = await askRaw(gateway, `POST ${openai} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('opens no WebSocket');
    expect(providers.seen).toHaveLength(0);
  },
);

test('Expect: 100-continue is answered by the gateway and not forwarded', async () => {
  const headers = await arrived(openai, ['Expect: 100-continue']);
  expect(names(headers)).not.toContain('expect');
  expect(providers.seen[0]?.body.toString()).toBe('{}');
});
