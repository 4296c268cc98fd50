import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { exchange, readAnswers } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';

/** A provider that parses nothing: all bytes it gets are kept, each connection by itself. */
let server: Server;
const received: string[] = [];
const sockets = new Set<Socket>();
let stack: Stack;
let gateway: string;
let path: string;

beforeAll(async () => {
  server = createServer((socket) => {
    const at = received.push('') - 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received[at] += chunk.toString('latin1');
      if (isWhole(received[at] ?? '')) {
        received[at] += '<end>';
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stack = await startStack({ providers: { openai: { base_url: base } } });
  gateway = stack.gatewayUrls[0] ?? '';
  const { url } = await stack.issue({
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: 'sk-real',
  });
  path = new URL(url).pathname;
});
afterAll(async () => {
  await stack.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});
beforeEach(() => {
  received.length = 0;
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

function isWhole(text: string): boolean {
  const request = text.split('<end>').at(-1) ?? '';
  const head = request.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(request.slice(0, head))?.[1];
  if (length !== undefined) return request.length >= head + 4 + Number(length);
  return /\r\ntransfer-encoding:/i.test(request.slice(0, head)) ? request.endsWith('0\r\n\r\n') : true;
}

/** Request lines the provider could find in what it got, wherever they stand. */
const requestLines = () =>
  received.join('\n').match(/(?:GET|POST|DELETE|PUT) \/[^ \r\n]* HTTP\/1\.[01]/g) ?? [];
const answersTo = async (request: string, least = 1) =>
  readAnswers(await exchange(gateway, request, least)).map(({ status }) => status);
const post = (lines: string[], body: string) =>
  [`POST ${path} HTTP/1.1`, 'Host: g', 'Connection: close', ...lines, '', body].join('\r\n');
/** The requests that the provider has received whole before a later call, which this makes. */
async function wholeRequests(): Promise<string[]> {
  expect(await answersTo(post(['Content-Length: 7'], '"later"'))).toEqual([200]);
  const whole = received.flatMap((text) => text.split('<end>').slice(0, -1));
  return whole.filter((text) => !text.endsWith('"later"'));
}
const SMUGGLED = 'DELETE /v1/files/all HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const REFUSED: [string, () => string][] = [
  [
    'Content-Length with Transfer-Encoding',
    () => post(['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${SMUGGLED}`),
  ],
  [
    'Transfer-Encoding with Content-Length',
    () => post(['Transfer-Encoding: chunked', 'Content-Length: 4'], `0\r\n\r\n${SMUGGLED}`),
  ],
  ['two lengths that differ', () => post(['Content-Length: 0', 'Content-Length: 70'], SMUGGLED)],
  ['two lengths that agree', () => post(['Content-Length: 2', 'Content-Length: 2'], '{}')],
  ['a list of lengths', () => post(['Content-Length: 0, 70'], SMUGGLED)],
  ['a signed length', () => post(['Content-Length: +2'], '{}')],
  ['a negative length', () => post(['Content-Length: -1'], '{}')],
  ['a hexadecimal length', () => post(['Content-Length: 0x2'], '{}')],
  ['a length with a space within', () => post(['Content-Length: 2 0'], '{}')],
  ['a length too large for any integer', () => post(['Content-Length: 18446744073709551618'], '{}')],
  ['a space before the colon', () => post(['Content-Length : 2'], '{}')],
  ['a space before the name', () => post([' Content-Length: 2'], '{}')],
  [
    'chunked not as the last coding',
    () => post(['Transfer-Encoding: chunked, identity'], `${chunk('{}')}0\r\n\r\n`),
  ],
  [
    'chunked twice',
    () => post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], `${chunk('{}')}0\r\n\r\n`),
  ],
  [
    'another coding before chunked',
    () => post(['Transfer-Encoding: gzip, chunked'], `${chunk('{}')}0\r\n\r\n`),
  ],
  ['an unknown transfer coding', () => post(['Transfer-Encoding: xchunked'], `${chunk('{}')}0\r\n\r\n`)],
  ['a vertical tab in the coding', () => post(['Transfer-Encoding: \x0bchunked'], `${chunk('{}')}0\r\n\r\n`)],
  ['identity as coding', () => post(['Transfer-Encoding: identity'], '{}')],
  ['a folded header line', () => post(['X-A: 1', ' Transfer-Encoding: chunked', 'Content-Length: 2'], '{}')],
  ['a folded Transfer-Encoding', () => post(['Transfer-Encoding:', ' chunked'], `${chunk('{}')}0\r\n\r\n`)],
  ['a bare line feed after a header', () => `POST ${path} HTTP/1.1\r\nHost: g\nContent-Length: 2\r\n\r\n{}`],
  ['bare line feeds alone', () => `POST ${path} HTTP/1.1\nHost: g\nContent-Length: 2\n\n{}`],
  [
    'a bare carriage return in a header',
    () => post(['X-A: 1\rContent-Length: 9', 'Content-Length: 2'], '{}'),
  ],
  ['a NUL in a header', () => post(['X-A: a\0b', 'Content-Length: 2'], '{}')],
  [
    'a trailer that frames',
    () => post(['Transfer-Encoding: chunked'], `${chunk('{}')}0\r\nContent-Length: 99\r\n\r\n`),
  ],
  ['two Hosts', () => post(['Host: holder', 'Content-Length: 2'], '{}')],
  ['two equal Hosts in other cases', () => post(['HOST: g', 'Content-Length: 2'], '{}')],
  ['HTTP/2.0 in its request line', () => `POST ${path} HTTP/2.0\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}`],
  ['no Host', () => `POST ${path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}`],
  ['a bad Host', () => `POST ${path} HTTP/1.1\r\nHost: a b/c\r\nContent-Length: 2\r\n\r\n{}`],
  ['a space in its target', () => `POST ${path} /x HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}`],
  ['HTTP/2 spoken in clear', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/1.2', () => `POST ${path} HTTP/1.2\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}`],
  ['HTTP/0.9', () => `GET ${path}\r\n\r\n`],
  ['CONNECT', () => 'CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: g\r\n\r\n'],
];

test.each(REFUSED)('a request with %s is refused, and the provider gets nothing', async (_what, request) => {
  const statuses = await answersTo(request());
  expect(statuses.filter((status) => status < 400)).toEqual([]);
  expect(requestLines()).toEqual([]);
});

/** Requests of one whole body in which other readers might see two. */
const ONE: [string, () => string, string][] = [
  ['a request as its body', () => post([`Content-Length: ${SMUGGLED.length}`], SMUGGLED), SMUGGLED],
  [
    'a request as its only chunk',
    () => post(['Transfer-Encoding: chunked'], `${chunk(SMUGGLED)}0\r\n\r\n`),
    SMUGGLED,
  ],
  ['chunk extensions', () => post(['Transfer-Encoding: chunked'], `2;a=b;c="d"\r\n{}\r\n0;x\r\n\r\n`), '{}'],
  [
    'leading zeros in a chunk size',
    () => post(['Transfer-Encoding: chunked'], `0000002\r\n{}\r\n0\r\n\r\n`),
    '{}',
  ],
  [
    'trailers',
    () =>
      post(['Transfer-Encoding: chunked'], `${chunk('{}')}0\r\nX-Late: 1\r\nAuthorization: holder\r\n\r\n`),
    '{}',
  ],
  [
    'many small chunks',
    () => post(['Transfer-Encoding: chunked'], `${'1\r\nx\r\n'.repeat(50)}0\r\n\r\n`),
    'x'.repeat(50),
  ],
  ['TE in capitals', () => post(['TRANSFER-ENCODING: CHUNKED'], `${chunk('{}')}0\r\n\r\n`), '{}'],
  [
    'underscores for dashes',
    () => post(['Content-Length: 2', 'Transfer_Encoding: chunked', 'Content_Length: 0'], '{}'),
    '{}',
  ],
];

test.each(ONE)('a request with %s arrives as one request', async (_what, request, body) => {
  expect(await answersTo(request())).toEqual([200]);
  const text = received.join('');
  const head = text.slice(0, text.indexOf('\r\n\r\n'));
  expect(head.match(/content-length|transfer-encoding/gi)).toHaveLength(1);
  expect(head).not.toMatch(/_/);
  expect(text).not.toContain('holder');
  // One framing, ours, holds it all: parsed by it, nothing is left over.
  expect(payload(text)).toBe(body);
});

function payload(text: string): string {
  const body = text.slice(text.indexOf('\r\n\r\n') + 4).replace('<end>', '');
  if (!/transfer-encoding: chunked/i.test(text)) return body;
  let whole = '';
  for (let rest = body; rest !== '' && !rest.startsWith('0\r\n\r\n'); ) {
    const end = rest.indexOf('\r\n');
    const length = Number.parseInt(rest.slice(0, end), 16);
    whole += rest.slice(end + 2, end + 2 + length);
    rest = rest.slice(end + 4 + length);
  }
  return whole;
}

test.each([
  ['a size that is no number', `g\r\n{}\r\n0\r\n\r\n`],
  ['a negative size', `-2\r\n{}\r\n0\r\n\r\n`],
  ['a size with 0x', `0x2\r\n{}\r\n0\r\n\r\n`],
  ['a size that overflows', `fffffffffffffffff\r\n{}\r\n0\r\n\r\n`],
  ['a bare line feed after the size', `2\n{}\r\n0\r\n\r\n`],
  ['more bytes than its size', `2\r\n{}}}\r\n0\r\n\r\n`],
  ['a bare line feed in its extension', `2;a\n\r\n{}\r\n0\r\n\r\n`],
])('a chunk with %s aborts the call: the provider never gets a whole request', async (_what, body) => {
  const statuses = await answersTo(post(['Transfer-Encoding: chunked'], body));
  expect(statuses.filter((status) => status < 400)).toEqual([]);
  expect(await wholeRequests()).toEqual([]);
});

test('two requests in one packet are two calls, each judged separately', async () => {
  const first = post(['Content-Length: 2'], '{}').replace('Connection: close\r\n', '');
  const statuses = await answersTo(first + SMUGGLED + post(['Content-Length: 2'], '[]'), 3);
  expect(statuses).toEqual([200, 404, 200]);
  expect(requestLines()).toEqual([
    'POST /v1/chat/completions HTTP/1.1',
    'POST /v1/chat/completions HTTP/1.1',
  ]);
});

test('a call over HTTP/1.0 is served, and its connection is closed', async () => {
  for (const host of ['Host: g\r\n', '']) {
    received.length = 0;
    const statuses = await answersTo(`POST ${path} HTTP/1.0\r\n${host}Content-Length: 2\r\n\r\n{}`);
    expect(statuses).toEqual([200]);
    expect(requestLines()).toEqual(['POST /v1/chat/completions HTTP/1.1']);
  }
});

test('bytes after a call over HTTP/1.0 are not a second call', async () => {
  await answersTo(`POST ${path} HTTP/1.0\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}${SMUGGLED}`);
  await wholeRequests();
  expect(requestLines().filter((line) => line.startsWith('DELETE'))).toEqual([]);
});

test.each([
  ['shorter than its length', ['Content-Length: 10'], '{}'],
  ['far shorter than its length', ['Content-Length: 1000000'], '{}'],
  ['in chunks without the last', ['Transfer-Encoding: chunked'], '2\r\n{}\r\n'],
])('a body %s, of a holder who disconnects, never arrives as complete', async (_what, lines, body) => {
  expect(await answersTo(post(lines, body), 0)).toEqual([]);
  expect(await wholeRequests()).toEqual([]);
});

test('half a body that a config must act on is not treated as complete', async () => {
  const ask = {
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: 'sk-real',
    config: { model: 'x' },
  };
  const target = new URL((await stack.issue(ask)).url).pathname;
  for (const framing of ['Content-Length: 10', 'Transfer-Encoding: chunked']) {
    const body = framing.startsWith('C') ? '{}' : '2\r\n{}\r\n';
    await exchange(gateway, `POST ${target} HTTP/1.1\r\nHost: g\r\n${framing}\r\n\r\n${body}`, 0);
  }
  expect(await wholeRequests()).toEqual([]);
  // The request line is that of the later call.
  expect(requestLines()).toHaveLength(1);
});
