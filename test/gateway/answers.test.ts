import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { exchange, readAnswers } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

let providers: Providers;
/** A provider of bytes: whatever it gets, it sends `wire` and may close. */
let raw: Server;
let wire = '';
let staysOpen = false;
const sockets = new Set<Socket>();
let stack: Stack;
let url: string;
let getUrl: string;
let headUrl: string;
let rawUrl: string;

beforeAll(async () => {
  providers = await startProviders();
  raw = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    let isFirst = true;
    socket.on('data', (data) => {
      if (!isFirst && !data.toString().endsWith('{}')) return;
      isFirst = false;
      const bytes = Buffer.from(wire, 'latin1');
      if (staysOpen) socket.write(bytes);
      else if (socket.writable) socket.end(bytes);
    });
  });
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
  const rawBase = `http://127.0.0.1:${(raw.address() as AddressInfo).port}`;
  stack = await startStack({
    providers: { ...providers.file, raw: { extends: 'openai', base_url: rawBase } },
  });
  const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
  [url, getUrl, headUrl, rawUrl] = (await Promise.all(
    [ask, { ...ask, method: 'GET' }, { ...ask, method: 'HEAD' }, { ...ask, provider: 'raw' }].map(
      async (each) => (await stack.issue(each)).url,
    ),
  )) as [string, string, string, string];
});
afterAll(async () => {
  await stack.close();
  await providers.close();
  raw.close();
  for (const socket of sockets) socket.destroy();
});
beforeEach(() => {
  staysOpen = false;
  providers.answer = OK;
  providers.seen.length = 0;
});

/** Not the dispatcher of all: an earlier `fetch` of the process may have made that of Node's own undici. */
const dispatcher = new Agent();
const post = (to = url) => request(to, { method: 'POST', body: '{}', dispatcher });

test.each([301, 302, 303, 307, 308])('a redirect with %i is passed, not followed', async (status) => {
  providers.answer = (_seen, response) => {
    response.writeHead(status, { location: `${providers.url}/elsewhere` }).end('moved');
  };
  const answer = await post();
  expect(answer.statusCode).toBe(status);
  expect(answer.headers.location).toBe(`${providers.url}/elsewhere`);
  expect(await answer.body.text()).toBe('moved');
  expect(providers.seen).toHaveLength(1);
});

test.each([
  400, 401, 402, 403, 404, 405, 409, 413, 415, 418, 422, 429, 451, 500, 501, 502, 503, 504, 529, 599,
])("a provider's error %i passes unchanged, with body and headers", async (status) => {
  const body = JSON.stringify({ error: { message: `made upstream: ${status}`, type: 'x' } });
  providers.answer = (_seen, response) => {
    const headers = {
      'content-type': 'application/problem+json',
      'retry-after': '7',
      'x-request-id': 'req_theirs',
    };
    response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
  };
  const answer = await post();
  expect(answer.statusCode).toBe(status);
  expect(await answer.body.text()).toBe(body);
  expect(answer.headers).toMatchObject({
    'content-type': 'application/problem+json',
    'retry-after': '7',
    'x-request-id': 'req_theirs',
    'content-length': String(body.length),
  });
});

test.each([
  ['gzip', gzipSync('{"some":"json"}')],
  ['br', brotliCompressSync('{"some":"json"}')],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 1, 2, 255])],
  ['identity', Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256))],
])(
  'an answer compressed with %s passes byte for byte, and Accept-Encoding passes too',
  async (coding, bytes) => {
    providers.answer = (_seen, response) => {
      response.writeHead(200, { 'content-encoding': coding, 'content-length': bytes.length }).end(bytes);
    };
    const answer = await request(url, { method: 'POST', body: '{}', headers: { 'accept-encoding': coding } });
    expect(Buffer.from(await answer.body.arrayBuffer())).toEqual(bytes);
    expect(answer.headers['content-encoding']).toBe(coding);
    expect(providers.seen[0]?.headers['accept-encoding']).toBe(coding);
  },
);

test.each([204, 304])('an answer %i has no body, and its connection serves the next call', async (status) => {
  providers.answer = (_seen, response) => {
    response.writeHead(status, { etag: '"x"' }).end();
  };
  const target = new URL(url).pathname;
  const one = `POST ${target} HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}`;
  const answers = readAnswers(await exchange(new URL(url).origin, one + one, 2));
  expect(answers.map((each) => [each.status, each.body])).toEqual([
    [status, ''],
    [status, ''],
  ]);
});

test('a call with HEAD gets the headers alone, and its connection serves the next call', async () => {
  providers.answer = (_seen, response) => {
    response.writeHead(200, { 'content-length': '1234', 'openai-version': 'x' }).end();
  };
  const one = `HEAD ${new URL(headUrl).pathname} HTTP/1.1\r\nHost: g\r\n\r\n`;
  const text = await exchange(
    new URL(url).origin,
    one + one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
  );
  expect(text.match(/^HTTP\/1\.1 200 OK\r$/gm)).toHaveLength(2);
  expect(text.match(/content-length: 1234/gi)).toHaveLength(2);
  expect(text.match(/openai-version: x/gi)).toHaveLength(2);
  expect(providers.seen.map(({ method }) => method)).toEqual(['HEAD', 'HEAD']);
});

test('a HEAD that is refused has a status and headers, and no body', async () => {
  const target = new URL(headUrl).pathname.replace('/v1/chat', '/v1/chatter');
  const text = await exchange(
    new URL(url).origin,
    `HEAD ${target} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n`,
  );
  expect(text).toMatch(/^HTTP\/1\.1 403 /);
  expect(text.endsWith('\r\n\r\n')).toBe(true);
  expect(text).toMatch(/x-request-id: /i);
});

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const PROCESSING = 'HTTP/1.1 102 Processing\r\nX-Of: interim\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n';
test.each([
  ['a 100 that was not asked for', CONTINUE],
  ['two of them', CONTINUE + CONTINUE],
  ['a 102', PROCESSING],
  ['a 103', HINTS],
  ['one of each', HINTS + CONTINUE + PROCESSING],
])('informational responses are not taken for the answer: %s', async (_what, interim) => {
  wire = `${interim}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfinal`;
  const answer = await post(rawUrl);
  expect(answer.statusCode).toBe(200);
  expect(await answer.body.text()).toBe('final');
  expect(answer.headers.link).toBeUndefined();
  expect(answer.headers['x-of']).toBeUndefined();
});

test.each<[string, number, string | undefined]>([
  ['304 Not Modified', 123, undefined],
  ['304 Not Modified', 0, undefined],
  ['204 No Content', 7, undefined],
  ['204 No Content', 0, undefined],
  ['205 Reset Content', 0, '0'],
])('a %s that states a length of %i is an answer without a body', async (status, length, stated) => {
  // The end of the connection must not be what ends the answer.
  staysOpen = true;
  wire = `HTTP/1.1 ${status}\r\nContent-Length: ${length}\r\nETag: "x"\r\n\r\n`;
  const answer = await post(rawUrl);
  expect([answer.statusCode, await answer.body.text()]).toEqual([Number.parseInt(status, 10), '']);
  expect([answer.headers.etag, answer.headers['content-length']]).toEqual(['"x"', stated]);
});

test.each([
  ['304 Not Modified', 0],
  ['304 Not Modified', 123],
  ['204 No Content', 0],
  ['204 No Content', 7],
])(
  'a %s with a content-length of %i leaves its connection usable for the next calls',
  async (status, stated) => {
    staysOpen = true;
    wire = `HTTP/1.1 ${status}\r\nContent-Length: ${stated}\r\n\r\n`;
    sockets.clear();
    for (let i = 0; i < 20; i++) {
      const answer = await post(rawUrl);
      expect(answer.statusCode).toBe(Number.parseInt(status, 10));
      await answer.body.dump();
    }
    expect(sockets.size).toBeLessThanOrEqual(1);
  },
);

test.each([
  ['of a known length', 'Content-Length: 2\r\n'],
  ['that ends with its connection', ''],
])('the headers of an answer %s reach the holder byte for byte, and duplicates stay', async (...given) => {
  const length = given[1];
  wire =
    'HTTP/1.1 200 Fine\r\nContent-Type: text/x; charset=utf-8\r\nX-RateLimit-Remaining: 9\r\nOpenAI-Two: a\r\n' +
    'OpenAI-Two: b\r\nWarning: 299 - "x"\r\nOpenAI-Latin: caf\xe9\r\n' +
    `${length}\r\nok`;
  const target = new URL(rawUrl).pathname;
  const text = await exchange(
    new URL(rawUrl).origin,
    `POST ${target} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  );
  const headers = readAnswers(text)[0]?.headers ?? [];
  for (const pair of [
    ['content-type', 'text/x; charset=utf-8'],
    ['x-ratelimit-remaining', '9'],
    ['openai-two', 'a'],
    ['openai-two', 'b'],
    ['warning', '299 - "x"'],
    ['openai-latin', 'caf\xe9'],
  ])
    expect(headers).toContainEqual(pair);
});

test.each([
  [
    'a bare line feed in a header',
    'HTTP/1.1 200 OK\r\nX-A: 1\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok',
  ],
  [
    'a bare carriage return in a header',
    'HTTP/1.1 200 OK\r\nX-A: 1\rSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok',
  ],
  ['a NUL in a header', 'HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 2\r\n\r\nok'],
  ['a folded header', 'HTTP/1.1 200 OK\r\nX-A: 1\r\n Set-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!'],
  [
    'length and chunked',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  ],
  [
    'bytes after its end',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n',
  ],
  ['no HTTP at all', 'SSH-2.0-x\r\n'],
  [
    'an unasked upgrade',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw bytes',
  ],
])('an answer with %s cannot inject a second answer', async (_what, text) => {
  wire = text;
  const got = await exchange(
    new URL(rawUrl).origin,
    `POST ${new URL(rawUrl).pathname} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  );
  expect(got.toLowerCase()).not.toMatch(/\r?\n\s*set-cookie/);
  expect(got.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  expect(got).not.toMatch(/^HTTP\/1\.1 101/);
});

test('an answer that its provider ends by closing arrives complete', async () => {
  wire = 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end';
  expect(await (await post(rawUrl)).body.text()).toBe('until the end');
});

test('a body that the holder sends with GET reaches the provider', async () => {
  const target = new URL(getUrl).pathname;
  const text = await exchange(
    new URL(getUrl).origin,
    `GET ${target} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  );
  expect(readAnswers(text)[0]?.status).toBe(200);
  expect(providers.seen[0]?.body.toString()).toBe('{}');
});

const EVENTS = 'data: \xc3\xa9\n\ndata: {"x": "0\\r\\n"}\n\n';
const streamed = (version: string, more = '') =>
  `POST ${new URL(rawUrl).pathname} HTTP/${version}\r\nHost: g\r\n${more}Content-Length: 2\r\n\r\n{}`;
const TEXT_STREAM = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';

test.each([
  ['in one piece', `${TEXT_STREAM}\r\n${EVENTS}`],
  [
    'in chunks',
    `${TEXT_STREAM}Transfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n${(EVENTS.length - 5).toString(16)}\r\n${EVENTS.slice(5)}\r\n0\r\n\r\n`,
  ],
  ['and is empty', `${TEXT_STREAM}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
])(
  'an answer without a length that arrives %s reaches the holder in chunks, and its connection stays usable',
  async (_how, text) => {
    wire = text;
    const both = readAnswers(await exchange(new URL(rawUrl).origin, streamed('1.1').repeat(2), 2));
    expect(both).toHaveLength(2);
    for (const { status, headers, body } of both) {
      expect(status).toBe(200);
      expect(headers).toContainEqual(['transfer-encoding', 'chunked']);
      expect(unchunked(body)).toBe(text.endsWith('\r\n\r\n0\r\n\r\n') ? '' : EVENTS);
    }
  },
);

test('an answer without a length reaches an HTTP/1.0 client unchunked, and ends with its connection', async () => {
  wire = `${TEXT_STREAM}\r\n${EVENTS}`;
  const got = await exchange(new URL(rawUrl).origin, streamed('1.0'));
  const [head = '', body] = got.split(/\r\n\r\n(.*)/s);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(head).not.toMatch(/transfer-encoding/i);
  expect(body).toBe(EVENTS);
});

/** The content of a chunked body (RFC 9112 §7.1). Throws if it is framed wrongly. */
function unchunked(body: string): string {
  let content = '';
  for (let rest = body; ; ) {
    const [, size = ''] = /^([0-9a-f]+)\r\n/.exec(rest) ?? [];
    const start = size.length + 2;
    const end = start + Number.parseInt(size, 16);
    if (size === '' || rest.slice(end, end + 2) !== '\r\n') throw new Error(`no chunk: ${rest}`);
    if (end === start) return content;
    content += rest.slice(start, end);
    rest = rest.slice(end + 2);
  }
}
