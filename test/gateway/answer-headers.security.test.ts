import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { BUILT_IN_PROVIDERS } from '@presign/providers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchange, readAnswers } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, urlOf } from '../mcp/holder.ts';
import { ACTED_ON, OF_VENDORS, PASSED } from './answer-headers.ts';

/** An upstream of bytes: whatever it gets, it sends `wire` and closes. */
let raw: Server;
let wire = '';
let stack: Stack;
let llm: string;
let listed: string;
let mcp: string;
let bundle: string;
const OF_OPERATOR = ['acme-trace', 'x-acme-quota-left'];

beforeAll(async () => {
  raw = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.from(wire, 'latin1')));
  });
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
  const base_url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}`;
  const acme = { extends: 'openai', base_url, answer_headers: ['Acme-Trace', 'x-acme-*'] };
  stack = await startStack({ providers: { openai: { base_url }, acme } });
  const asked = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
  ({ url: llm } = await stack.issue(asked));
  ({ url: listed } = await stack.issue({ ...asked, provider: 'acme' }));
  const issued = await stack.issueMcp({
    servers: [{ name: 'a', url: `${base_url}/mcp`, transport: 'http', tools: ['one'] }],
  });
  mcp = urlOf(issued, 'a');
  bundle = issued.bundle_url;
});
afterAll(async () => {
  await stack.close();
  raw.close();
});

/** The headers of one answer, byte for byte, their names in lower case. */
async function headersOf(url: string, request: string): Promise<[string, string][]> {
  const { origin, pathname, search } = new URL(url);
  const [line = '', rest = ''] = request.split('\n', 2);
  const [method = '', ...fields] = line.split(' ');
  const extra = fields.length === 0 ? '' : `${fields.join(' ')}\r\n`;
  const text = await exchange(
    origin,
    `${method} ${pathname}${search} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n${extra}` +
      `Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${Buffer.byteLength(rest)}\r\n\r\n${rest}`,
  );
  return (readAnswers(text)[0]?.headers ?? []) as [string, string][];
}

const namesOf = (lines: readonly string[]) =>
  lines.map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
const contentOf = (line: string) => line.slice(line.indexOf(':') + 1).trim();
const answered = (status: number, type: string, body: string, lines: readonly string[]) =>
  `HTTP/1.1 ${status} X\r\nContent-Type: ${type}\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${body}`;

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}}';
const list = `POST\n${JSON.stringify({ ...ask('tools/list'), id: 1 })}`;
const ANSWERS = [
  ['of a provider', () => llm, 'POST\n{}', answered.bind(null, 200, JSON_TYPE, '{"a":1}')],
  ['of a provider that is a page', () => llm, 'POST\n{}', answered.bind(null, 200, 'text/html', '<p>')],
  [
    'of a provider that is a stream',
    () => llm,
    'POST\n{"stream":true}',
    answered.bind(null, 200, EVENTS, 'data: {}\n\n'),
  ],
  [
    'of a provider that is an error',
    () => llm,
    'POST\n{}',
    answered.bind(null, 400, JSON_TYPE, '{"error":{}}'),
  ],
  [
    'of a provider that is a refused key',
    () => llm,
    'POST\n{}',
    answered.bind(null, 401, JSON_TYPE, '{"error":{}}'),
  ],
  ['of a provider that fails', () => llm, 'POST\n{}', answered.bind(null, 503, JSON_TYPE, '{"error":{}}')],
  ['of a provider that is a redirect', () => llm, 'POST\n{}', answered.bind(null, 307, JSON_TYPE, '')],
  ['of a provider of an operator', () => listed, 'POST\n{}', answered.bind(null, 200, JSON_TYPE, '{"a":1}')],
  ['of an MCP server', () => mcp, list, answered.bind(null, 200, JSON_TYPE, RESULT)],
  [
    'of an MCP server that is a stream',
    () => mcp,
    list,
    answered.bind(null, 200, EVENTS, `data: ${RESULT}\n\n`),
  ],
  ['of an MCP server that is an error', () => mcp, list, answered.bind(null, 400, JSON_TYPE, '{"error":{}}')],
  ['of an MCP server that refuses', () => mcp, list, answered.bind(null, 401, JSON_TYPE, '{}')],
] as const;

describe.each(ANSWERS)('an answer %s', (_of, url, request, answer) => {
  test('has no header that a browser or a proxy acts on', async () => {
    wire = answer(ACTED_ON);
    const headers = await headersOf(url(), request);
    expect(headers.map(([name]) => name)).toContain('x-presign-request-id');
    for (const line of [...ACTED_ON, 'X-Hop: 1']) {
      const [name = ''] = namesOf([line]);
      const values = headers.filter(([each]) => each === name).map(([, value]) => value);
      expect(values, name).not.toContain(contentOf(line));
    }
    // The gateway's own instructions to browsers are all there is.
    const own = ['content-security-policy', 'referrer-policy', 'x-content-type-options'];
    const acted = headers.filter(([name]) => namesOf(ACTED_ON).includes(name)).map(([name]) => name);
    expect(acted.toSorted()).toEqual(['access-control-allow-origin', ...own]);
  });
});

test.each([
  ['a provider', () => llm, 'POST\n{}'],
  ['an MCP server', () => mcp, 'POST\n{"jsonrpc":"2.0","id":1,"method":"ping"}'],
])(
  'headers that every API may send pass byte for byte from %s, and duplicates stay',
  async (_of, url, request) => {
    const lines = [
      ...PASSED.map(([name, value]) => `${name}: ${value}`),
      'X-RateLimit-Reset: a',
      'X-RateLimit-Reset: b',
    ];
    wire = `HTTP/1.1 200 Fine\r\n${lines.join('\r\n')}\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}`;
    const headers = await headersOf(url(), request);
    for (const [name, value] of PASSED) expect(headers).toContainEqual([name.toLowerCase(), value]);
    const doubled = headers.filter(([name]) => name === 'x-ratelimit-reset');
    expect(doubled.map(([, value]) => value)).toEqual(['a', 'b']);
  },
);

test('the session and the version of an MCP server pass, with the session sealed', async () => {
  wire = answered(200, JSON_TYPE, RESULT, ['Mcp-Session-Id: s1', 'MCP-Protocol-Version: 2025-11-25']);
  const headers = new Map(await headersOf(mcp, list));
  expect(headers.get('mcp-protocol-version')).toBe('2025-11-25');
  expect(headers.get('mcp-session-id')).toMatch(/./);
  expect(headers.get('mcp-session-id')).not.toBe('s1');
});

test('headers that an operator lists pass from that provider alone', async () => {
  wire = answered(200, JSON_TYPE, '{}', [...OF_OPERATOR.map((name) => `${name}: 1`), 'openai-version: 1']);
  const names = async (url: string) => (await headersOf(url, 'POST\n{}')).map(([name]) => name);
  expect(await names(listed)).toEqual(expect.arrayContaining([...OF_OPERATOR, 'openai-version']));
  const others = await names(llm);
  expect(others).toContain('openai-version');
  for (const name of OF_OPERATOR) expect(others).not.toContain(name);
});

test('the table has headers of every vendor', () => {
  expect(Object.keys(OF_VENDORS).toSorted()).toEqual([...BUILT_IN_PROVIDERS.keys()].toSorted());
});

test('answers of the gateway itself have its own headers alone', async () => {
  const own = [
    /^(access-control-.*|content-security-policy|referrer-policy|x-content-type-options|x-presign-.*)$/,
    /^(content-type|content-length|cache-control|date|connection|keep-alive|retry-after|ratelimit.*|vary|allow)$/,
    /^(x-request-id|request-id|x-should-retry|transfer-encoding)$/,
  ];
  for (const [url, request] of [
    [bundle, 'GET'],
    [`${bundle}x`, 'GET'],
    [llm.replace('/v1/', '/v2/'), 'POST\n{}'],
    [`${llm}x`, 'POST\n{}'],
    [mcp, 'POST\n{'],
    [llm, 'DELETE'],
    [llm, 'OPTIONS'],
  ] as const) {
    const headers = await headersOf(url, request);
    const stray = headers.map(([name]) => name).filter((name) => !own.some((each) => each.test(name)));
    expect(stray, `${request} ${url.slice(0, 40)}`).toEqual([]);
    expect(headers).toContainEqual(['referrer-policy', 'no-referrer']);
  }
});
