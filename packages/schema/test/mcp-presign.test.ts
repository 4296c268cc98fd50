import { describe, expect, test } from 'vitest';
import {
  invalidRequest,
  type McpPresignRequest,
  mcpBundle,
  mcpPresignAnswer,
  mcpPresignRequest,
} from '../src/index.ts';

const one = { name: 'docs', url: 'https://mcp.example.com/sse' };

/** The request as read, or `field: what was expected`. */
function read(body: unknown): McpPresignRequest | string {
  const result = mcpPresignRequest.safeParse(body);
  if (result.success) return result.data;
  const refusal = invalidRequest(result.error);
  expect(refusal.code).toBe('invalid_request');
  const param = refusal.param ?? 'The body';
  expect(refusal.message?.startsWith(`${param}: `), refusal.message).toBe(true);
  expect(refusal.message).toMatch(/[^.]\.$/);
  return refusal.message ?? '';
}
const withFields = (fields: object) => read({ servers: [one], ...fields });
/** A second server with these fields, so that the error names its place. */
const withServer = (fields: object) => read({ servers: [one, { ...one, name: 'second', ...fields }] });
const second = (result: McpPresignRequest | string) =>
  typeof result === 'string' ? result : result.servers[1];
const MAX = Number.MAX_SAFE_INTEGER;

describe('defaults', () => {
  test('a request with only the required fields has the documented defaults', () => {
    expect(read({ servers: [one] })).toEqual({
      servers: [{ ...one, transport: 'sse', auth: { type: 'none' } }],
      expires_in: 3600,
      max_uses: -1,
    });
  });

  test.each([
    'expires_in',
    'max_uses',
    'cost_limit',
    'external_session',
    'external_user',
    'session_id',
    'metadata',
  ])('null for %s means omitted', (field) => {
    expect(withFields({ [field]: null })).toEqual(withFields({}));
  });

  test.each(['transport', 'auth_type', 'auth_config', 'pricing', 'tools', 'arguments'])(
    'null for servers[].%s means omitted',
    (field) => expect(withServer({ [field]: null })).toEqual(withServer({})),
  );
});

describe('numbers', () => {
  test.each([
    ['expires_in', [60, 3600, 86_400], [59, 86_401, -1, 0, 60.5, '3600', true, [60]]],
    ['max_uses', [-1, 1, MAX], [0, -2, 1.5, '1', MAX + 1, false]],
    ['cost_limit', [0, 1, MAX], [-1, 0.5, '0', MAX + 1, true]],
  ])('%s accepts its bounds and nothing beyond, and the error states the bounds', (field, good, bad) => {
    for (const value of good) expect(withFields({ [field]: value })).toHaveProperty(field, value);
    for (const value of bad)
      expect(withFields({ [field]: value })).toMatch(new RegExp(`^${field}: expected .*whole`));
  });
});

describe('an unknown field is refused and named', () => {
  test.each<[string, object, string?]>([
    ['cost_limt', { servers: [one], cost_limt: 5 }, 'cost_limit'],
    ['client_api_key', { servers: [one], client_api_key: 'sk' }],
    ['servers[0].tool', { servers: [{ ...one, tool: ['a'] }] }, 'tools'],
    ['servers[0].nam', { servers: [{ nam: 'docs', url: one.url }] }, 'name'],
    [
      'servers[0].auth_config.tokn',
      { servers: [{ ...one, auth_type: 'bearer', auth_config: { tokn: 'a' } }] },
      'token',
    ],
    ['servers[0].pricing.defalt', { servers: [{ ...one, pricing: { defalt: 5 } }] }, 'default'],
    [
      'servers[0].auth_config.expires_in',
      { servers: [{ ...one, auth_type: 'oauth', auth_config: { access_token: 'a', expires_in: 5 } }] },
    ],
  ])('%s', (field, body, meant) => {
    const hint = meant === undefined ? '' : ` (did you mean ${meant}?)`;
    expect(read(body)).toBe(`${field}: this field is not known${hint}.`);
  });
});

describe('servers', () => {
  const many = (n: number) => Array.from({ length: n }, (_, i) => ({ ...one, name: `s${i}` }));

  test('are 1 to 50', () => {
    expect(read({ servers: many(1) })).toHaveProperty('servers.length', 1);
    expect(read({ servers: many(50) })).toHaveProperty('servers.length', 50);
    expect(read({ servers: [] })).toMatch(/^servers: expected at least one/);
    expect(read({ servers: many(51) })).toMatch(/^servers: expected at most 50/);
  });

  test.each([[undefined], [null], ['x'], [{}], [{ docs: one }], [5]])('cannot be %j', (servers) => {
    expect(read({ servers })).toMatch(/^servers: (this field is required|expected an array)/);
  });

  test.each<[unknown, string]>([
    [null, 'servers[0]'],
    ['https://mcp.example.com', 'servers[0]'],
    [{ url: one.url }, 'servers[0].name'],
    [{ name: 'a' }, 'servers[0].url'],
  ])('an entry %j is refused by its place', (entry, field) => {
    expect(read({ servers: [entry] })).toMatch(new RegExp(`^${field.replace(/[.[\]]/g, '\\$&')}: `));
  });

  test.each([undefined, null, 5, 'x', []])('a body that is %j is refused', (body) => {
    expect(read(body)).toMatch(/^The body: /);
  });
});

describe('servers[].name', () => {
  test.each([
    'a',
    'Docs & Müller 😀',
    '😀'.repeat(128),
    ' ',
    '.',
    '0',
    'constructor',
    'toString',
    'hasOwnProperty',
    'prototype',
  ])('may be %j', (name) => expect(second(withServer({ name }))).toHaveProperty('name', name));

  test.each(['', '😀'.repeat(129), 'a\nb', 'a\0', '\u007f', '\u0085', '\ud800', '__proto__', 5])(
    'may not be %j',
    (name) => expect(withServer({ name })).toMatch(/^servers\[1\]\.name: expected /),
  );

  // U+FDFA is 18 characters in NFKD. A syllable of Hangul is three.
  test.each(['\ufdfa'.repeat(28), '각'.repeat(128), `a${'\u0301'.repeat(30)}`])('may be %j', (name) =>
    expect(second(withServer({ name }))).toHaveProperty('name', name),
  );

  test.each([
    ['\ufdfa'.repeat(29), 'characters in Unicode'],
    [`a${'\u0301'.repeat(31)}`, 'combining marks in a row'],
    [`${'\u1e69'.repeat(2)}${'\u0323'.repeat(30)}`, 'combining marks in a row'],
  ])('may not be %j, because the gateway compares every spelling of it', (name, why) => {
    expect(withServer({ name })).toMatch(new RegExp(`^servers\\[1\\]\\.name: expected at most \\d+ ${why}`));
    expect(withServer({ tools: [name] })).toMatch(/^servers\[1\]\.tools\[0\]: expected at most/);
    expect(withServer({ pricing: { tools: { [name]: 1 } } })).toMatch(/^servers\[1\]\.pricing\.tools/);
    expect(withServer({ arguments: { [name]: { a: { equals: 1 } } } })).toMatch(/^servers\[1\]\.arguments/);
  });

  test('is unique: the error names the second of two', () => {
    expect(withServer({ name: 'docs' })).toBe(
      'servers[1].name: expected a name that no other server of the bundle has.',
    );
    expect(second(withServer({ name: 'Docs' }))).toHaveProperty('name', 'Docs');
    // A composed name and a decomposed one differ: keys of JSON are compared code point by code point.
    const twins = {
      servers: [
        { ...one, name: '\u00e9' },
        { ...one, name: 'e\u0301' },
      ],
    };
    expect(read(twins)).toHaveProperty('servers.length', 2);
  });
});

describe('servers[].url', () => {
  const long = (bytes: number) => `https://a.example/${'a'.repeat(bytes - 18)}`;

  test.each([
    'https://mcp.example.com',
    'HTTP://EXAMPLE.COM/MCP',
    'http://127.0.0.1:3001/sse',
    'http://[::1]:3001/mcp?a=b&c=%20#'.slice(0, -1),
    long(1536),
  ])('may be %s, and is not changed', (url) =>
    expect(second(withServer({ url }))).toHaveProperty('url', url),
  );

  test.each([
    '',
    'mcp.example.com',
    '/mcp',
    'ftp://a.example',
    'ws://a.example',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'https://',
    'https://user@a.example/',
    'https://user:secret@a.example/',
    'https://:@a.example:x/',
    'https://a.example/#fragment',
    'https://a.example/\\b',
    'https:\\\\a.example',
    'https://a.example/a b',
    'https://a.example/\n',
    'https://ü.example/',
    'https://[::1',
    long(1537),
    5,
  ])('may not be %j', (url) => expect(withServer({ url })).toMatch(/^servers\[1\]\.url: expected /));
});

test('servers[].transport is exactly sse or http', () => {
  for (const transport of ['sse', 'http'])
    expect(second(withServer({ transport }))).toHaveProperty('transport', transport);
  for (const transport of ['', 'SSE', 'stdio', 'streamable-http', 5, ['sse']])
    expect(withServer({ transport })).toBe('servers[1].transport: expected one of sse, http.');
});

describe('servers[].pricing and tools', () => {
  test('are stored as sent, whatever the name of a tool', () => {
    const tools = { search: MAX, constructor: 5 };
    const sent = { pricing: { default: 0, tools }, tools: ['search', 'constructor'] };
    expect(second(withServer(sent))).toMatchObject(sent);
    expect(second(withServer({ tools: [] }))).toHaveProperty('tools', []);
  });

  test.each<[object, string]>([
    [{ pricing: 5 }, 'pricing'],
    [{ pricing: { default: -1 } }, 'pricing.default'],
    [{ pricing: { default: 0.5 } }, 'pricing.default'],
    [{ pricing: { tools: [] } }, 'pricing.tools'],
    [{ pricing: { tools: { a: '5' } } }, 'pricing.tools.a'],
    [{ pricing: { tools: { a: MAX + 1 } } }, 'pricing.tools.a'],
    [
      { pricing: { tools: Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`t${i}`, 1])) } },
      'pricing.tools',
    ],
    [{ tools: 'search' }, 'tools'],
    [{ tools: [5] }, 'tools[0]'],
    [{ tools: ['ok', ''] }, 'tools[1]'],
    [{ tools: Array.from({ length: 501 }, (_, i) => `t${i}`) }, 'tools'],
  ])('%j is refused by its field', (fields, field) => {
    const name = `servers[1].${field}`.replace(/[.[\]]/g, '\\$&');
    expect(withServer(fields)).toMatch(new RegExp(`^${name}: expected `));
  });
});

describe('servers[].arguments', () => {
  const read = (condition: unknown) => withServer({ arguments: { tool: { field: condition } } });

  test.each([
    ...['', 'x'.repeat(1_000), '🌍'.repeat(1_000), 5, -0.5, MAX, true, false, null].map((equals) => ({
      equals,
    })),
    ...['x', '../', '🌍'.repeat(1_000)].map((prefix) => ({ prefix })),
  ])('%j is stored as sent', (condition) => {
    expect(second(read(condition))).toHaveProperty('arguments', { tool: { field: condition } });
  });

  test.each<[unknown, RegExp]>([
    [{}, /field: expected equals or prefix/],
    [{ equals: 1, prefix: 'x' }, /field: expected equals or prefix/],
    [{ suffix: 'x' }, /field\.suffix: /],
    ['x', /field: expected an object/],
    [{ equals: [] }, /field\.equals: expected a string, a number/],
    [{ equals: {} }, /field\.equals: expected a string, a number/],
    [{ equals: MAX + 1 }, /field\.equals: expected /],
    [{ equals: 'x'.repeat(1_001) }, /field\.equals: expected /],
    [{ equals: '\ud800' }, /field\.equals: expected /],
    [{ equals: '\0' }, /field\.equals: expected /],
    [{ prefix: '' }, /field\.prefix: expected at least one character/],
    [{ prefix: null }, /field\.prefix: expected a string/],
    [{ prefix: 5 }, /field\.prefix: expected a string/],
    [{ prefix: 'x'.repeat(1_001) }, /field\.prefix: expected at most 1000/],
  ])('%j is refused by its field', (condition, message) => {
    expect(read(condition)).toMatch(new RegExp(`^servers\\[1\\]\\.arguments\\.tool\\.${message.source}`));
  });

  const many = (count: number, value: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, value]));
  const is5 = { equals: 5 };

  test('at most 50 tools, and 20 arguments of each', () => {
    const most = { arguments: many(50, many(20, is5)) };
    expect(second(withServer(most))).toMatchObject(most);
    expect(withServer({ arguments: many(51, { a: is5 }) })).toMatch(
      /^servers\[1\]\.arguments: expected at most 50/,
    );
    expect(withServer({ arguments: { a: many(21, is5) } })).toMatch(
      /^servers\[1\]\.arguments\.a: expected at most 20/,
    );
  });

  test('an empty object is refused as a mistake', () => {
    expect(withServer({ arguments: {} })).toMatch(/^servers\[1\]\.arguments: expected at least 1/);
    expect(withServer({ arguments: { a: {} } })).toMatch(/^servers\[1\]\.arguments\.a: expected at least 1/);
  });

  test('of a tool that is not allowed are refused, because the name is probably mistyped', () => {
    const mistyped = { tools: ['search'], arguments: { serach: { a: is5 } } };
    expect(withServer(mistyped)).toBe('servers[1].arguments.serach: expected one of the allowed tools.');
    expect(typeof withServer({ ...mistyped, tools: ['serach'] })).toBe('object');
  });
});

test.each([
  ['of the body', `{"servers": [${JSON.stringify(one)}], "__proto__": 5}`, /^__proto__: /],
  [
    'of a server',
    `{"servers": [{"__proto__": 5, "name": "a", "url": "${one.url}"}]}`,
    /^servers\[0\]\.__proto__: /,
  ],
  [
    'of the prices of tools',
    `{"servers": [{"name": "a", "url": "${one.url}", "pricing": {"tools": {"__proto__": 5}}}]}`,
    /^servers\[0\]\.pricing\.tools: /,
  ],
  [
    'of the arguments of tools',
    `{"servers": [{"name": "a", "url": "${one.url}", "arguments": {"__proto__": {"a": {"equals": 1}}}}]}`,
    /^servers\[0\]\.arguments: /,
  ],
  [
    'of the arguments of a tool',
    `{"servers": [{"name": "a", "url": "${one.url}", "arguments": {"a": {"__proto__": {"equals": 1}}}}]}`,
    /^servers\[0\]\.arguments\.a: /,
  ],
  [
    'of an auth_config',
    `{"servers": [{"name": "a", "url": "${one.url}", "auth_type": "bearer", "auth_config": {"token": "t", "__proto__": 5}}]}`,
    /^servers\[0\]\.auth_config\.__proto__: /,
  ],
])('a field %s named __proto__ is refused, not ignored', (_what, json, message) => {
  expect(read(JSON.parse(json))).toMatch(message);
});

test('of several invalid servers the error names the first, with its position', () => {
  const servers = [one, { ...one, auth_type: 'bearer', auth_config: { token: '' } }, { name: '' }];
  expect(read({ servers })).toMatch(/^servers\[1\]\.auth_config\.token: /);
});

test('the answer has the documented fields with the grant and its claims, and the bundle document has only documented fields', () => {
  const entry = { url: 'https://gateway.example.com/mcp/mcp?url=a&token=b', transport: 'sse' };
  const answer = {
    bundle_url: 'https://gateway.example.com/mcp/bundle/t',
    bundle_token: 't',
    expires_at: 1,
    session_id: '123e4567-e89b-42d3-a456-426614174000',
    servers: { docs: entry, constructor: entry },
    grant_id: '123e4567-e89b-42d3-a456-426614174001',
    claims: {
      ...{ jti: '123e4567-e89b-42d3-a456-426614174001', sub: '123e4567-e89b-42d3-a456-426614174000' },
      ...{ iat: '2026-01-01T00:00:00.000Z', exp: '2026-01-01T01:00:00.000Z', prt: 0, knd: 'mcp_bundle' },
      ...{ iss: 'https://presign.example.com', aud: 'https://gateway.example.com' },
    },
  };
  expect(mcpPresignAnswer.parse(answer)).toEqual(answer);
  expect(mcpPresignAnswer.safeParse({ ...answer, more: 1 }).success).toBe(false);
  const bundle = { mcpServers: answer.servers };
  expect(mcpBundle.parse(bundle)).toEqual(bundle);
  expect(mcpBundle.safeParse({ mcpServers: { docs: { ...entry, auth: 'x' } } }).success).toBe(false);
});
