import { expect, test } from 'vitest';
import { invalidRequest, mcpAuth, mcpPresignRequest } from '../src/index.ts';

const one = { name: 'docs', url: 'https://mcp.example.com/sse' };

/** The second of two servers as read, or `field: what was expected`. */
function withServer(fields: object) {
  const result = mcpPresignRequest.safeParse({ servers: [one, { ...one, name: 'second', ...fields }] });
  return result.success ? result.data.servers[1] : (invalidRequest(result.error).message ?? '');
}
const withAuth = (auth_type: unknown, auth_config?: unknown) => withServer({ auth_type, auth_config });

const token_url = 'https://id.example.com/token';
const client = { token_url, client_id: 'id' };

test.each([
  ['api_key', { key: 'k', header: null, query: null }, { type: 'api_key', key: 'k' }],
  [
    'oauth',
    { access_token: 'a', token_url: null, client_id: null, client_secret: null, refresh_token: null },
    { type: 'oauth', access_token: 'a' },
  ],
])('null in an optional field of an auth_config of %s means omitted', (type, config, auth) => {
  expect(withAuth(type, config)).toHaveProperty('auth', auth);
});

test.each<[string, unknown]>([
  ['none', undefined],
  ['none', {}],
  ['bearer', { token: 't' }],
  ['bearer', { token: '~'.repeat(8192) }],
  ['api_key', { key: 'k' }],
  ['bearer', { token: 't', scheme: 'Basic' }],
  ['bearer', { token: 't', headers: { 'X-Version': '1' } }],
  ['api_key', { key: 'k', header: 'Authorization' }],
  ['api_key', { key: 'ApiKey abc', header: 'Authorization' }],
  ['api_key', { key: 'k', header: 'DD_API_KEY', headers: { DD_APPLICATION_KEY: 'a b' } }],
  ['api_key', { key: 'k', query: 'key', headers: { 'X-API-Key': 'k', Authorization: 'Basic a' } }],
  ['oauth', { access_token: 'a', headers: { 'X-Tenant': 't' } }],
  ['oauth', { ...client, client_secret: 's', resource: 'https://a.example/mcp' }],
  ['oauth', { ...client, client_secret: 's', resource: false, headers: { 'X-Tenant': 't' } }],
  ['api_key', { key: 'k', query: 'api_key' }],
  ['oauth', { access_token: 'a' }],
  ['oauth', { ...client, client_secret: 's' }],
  ['oauth', { ...client, client_secret: 's', scope: 'read write', audience: 'https://a.example' }],
  ['oauth', { ...client, refresh_token: 'r' }],
  ['oauth', { ...client, refresh_token: 'r', client_secret: 's' }],
])('%s takes %j, and what is stored of it reads the same', (type, config) => {
  const auth = { type, ...(config as object) };
  expect(withAuth(type, config)).toHaveProperty('auth', auth);
  expect(mcpAuth.parse(JSON.parse(JSON.stringify(auth)))).toEqual(auth);
});

test.each<[string, unknown, string]>([
  ['bearer', undefined, 'token'],
  ['bearer', null, 'token'],
  ['bearer', {}, 'token'],
  ['api_key', {}, 'key'],
  ['api_key', { header: 'X-Key' }, 'key'],
  ['oauth', {}, 'access_token'],
  ['oauth', { client_secret: 's' }, 'access_token'],
  ['oauth', { client_id: 'i', client_secret: 's' }, 'token_url'],
  ['oauth', { client_id: 'i', refresh_token: 'r' }, 'token_url'],
  ['oauth', { token_url, client_secret: 's' }, 'client_id'],
  ['oauth', { token_url, refresh_token: 'r' }, 'client_id'],
  ['oauth', client, 'client_secret'],
])('%s with %j: what is missing is named', (type, config, field) => {
  expect(withAuth(type, config)).toMatch(
    new RegExp(`^servers\\[1\\]\\.auth_config\\.${field}: this field is required`),
  );
});

test.each<[string, unknown, string]>([
  ['bearer', { token: 5 }, 'token'],
  ['bearer', { token: null }, 'token'],
  ['bearer', { token: '' }, 'token'],
  ['bearer', { token: 'a b' }, 'token'],
  ['bearer', { token: 'a\r\nx: y' }, 'token'],
  ['bearer', { token: 'é' }, 'token'],
  ['bearer', { token: '~'.repeat(8193) }, 'token'],
  ['api_key', { key: 'k', header: 'X-Key', query: 'key' }, 'query'],
  ['api_key', { key: 'k', header: 'Host' }, 'header'],
  ['api_key', { key: 'k', header: 'content-length' }, 'header'],
  ['api_key', { key: 'k', header: 'Mcp-Session-Id' }, 'header'],
  ['api_key', { key: 'k', header: 'Cookie' }, 'header'],
  ['api_key', { key: 'k', header: 'a b' }, 'header'],
  ['api_key', { key: 'k', header: 'a:b' }, 'header'],
  ['api_key', { key: 'k', query: 'a&b' }, 'query'],
  ['api_key', { key: 'k', query: '' }, 'query'],
  ['api_key', { key: 'a\nb' }, 'key'],
  ['api_key', { key: ' a' }, 'key'],
  ['api_key', { key: 'k', headers: { 'x-api-key': 'k' } }, 'headers'],
  ['api_key', { key: 'k', headers: { Host: 'a.example' } }, 'headers.Host'],
  ['api_key', { key: 'k', headers: { 'Transfer-Encoding': 'chunked' } }, 'headers.Transfer-Encoding'],
  ['api_key', { key: 'k', headers: { 'X-Presign-Cost': '1' } }, 'headers.X-Presign-Cost'],
  ['api_key', { key: 'k', headers: { a: 'x', A: 'y' } }, 'headers'],
  ['api_key', { key: 'k', headers: { a: 'x\r\nb: c' } }, 'headers.a'],
  [
    'api_key',
    { key: 'k', headers: Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`h${i}`, 'v'])) },
    'headers',
  ],
  ['bearer', { token: 't', headers: { authorization: 'a' } }, 'headers'],
  ['bearer', { token: 't', scheme: 'a b' }, 'scheme'],
  ['oauth', { access_token: 'a', headers: { Authorization: 'a' } }, 'headers'],
  ['oauth', { access_token: 'a', resource: false }, 'resource'],
  ['oauth', { ...client, client_secret: 's', resource: true }, 'resource'],
  ['oauth', { ...client, client_secret: 's', resource: 'https://a.example/#b' }, 'resource'],
  ['oauth', { access_token: 'a', refresh_token: 'r' }, 'refresh_token'],
  ['oauth', { access_token: 'a', scope: 'read' }, 'scope'],
  ['oauth', { ...client, token_url: 'ftp://a.example', client_secret: 's' }, 'token_url'],
  ['oauth', { ...client, client_secret: 's', scope: 'a\nb' }, 'scope'],
  ['oauth', { ...client, client_secret: 's', audience: 'a b' }, 'audience'],
])('%s with %j is refused by its field', (type, config, field) => {
  expect(withAuth(type, config)).toMatch(new RegExp(`^servers\\[1\\]\\.auth_config\\.${field}: `));
});

test.each([[5], ['token'], [['token']], [true]])('an auth_config that is %j is refused', (config) => {
  for (const type of ['none', 'bearer', 'api_key', 'oauth'])
    expect(withAuth(type, config)).toMatch(/^servers\[1\]\.auth_config: expected /);
});

test('an auth_config without an auth_type that needs it is refused', () => {
  for (const type of [undefined, null, 'none'])
    expect(withAuth(type, { token: 't' })).toMatch(/^servers\[1\]\.auth_config: .*auth_type/);
});

test.each(['', 'Bearer', 'basic', 'constructor', 'toString', 5])('an auth_type %j is refused', (type) => {
  expect(withAuth(type, { token: 't' })).toMatch(/^servers\[1\]\.auth_type: expected one of none, /);
});

test('a query parameter that the url already has is refused', () => {
  const server = { url: 'https://a.example/?key=x', auth_type: 'api_key' };
  const result = withServer({ ...server, auth_config: { key: 'k', query: 'key' } });
  expect(result).toMatch(/^servers\[1\]\.auth_config\.query: /);
  expect(withServer({ ...server, auth_config: { key: 'k', query: 'key2' } })).toHaveProperty('auth');
});
