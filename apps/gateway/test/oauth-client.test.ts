import { afterEach, beforeEach, expect, test } from 'vitest';
import type { McpCredential } from '../src/mcp/auth/authorize.ts';
import {
  type AuthorizationServer,
  answerJson,
  DESCRIPTION,
  type Misbehaviour,
  startAuthorizationServer,
} from './authorization-server.ts';
import { clock, credentialWith, noDatabase, type OauthGateway, oauthGateway } from './oauth-gateway.ts';

let server: AuthorizationServer;
let gateway: OauthGateway;
let credential: McpCredential;
beforeEach(async () => {
  server = await startAuthorizationServer();
  gateway = oauthGateway(noDatabase);
  credential = clientCredentials();
});
afterEach(() => server.close());

const clientCredentials = (more: object = {}) =>
  credentialWith({
    type: 'oauth',
    token_url: server.url,
    client_id: 'client-0',
    client_secret: 'client-secret-0',
    ...more,
  });

const times = <T>(count: number, run: () => T | Promise<T>) =>
  Promise.all(Array.from({ length: count }, run));

const GOOD = { access_token: 'a', token_type: 'Bearer' };

const carrying = (token: string) => ({
  authorization: { headers: [['Authorization', `Bearer ${token}`]], token },
});

test.each<[string, object, object]>([
  ['none', { type: 'none' }, { headers: [] }],
  ['bearer', { type: 'bearer', token: 'secret-0' }, { headers: [['Authorization', 'Bearer secret-0']] }],
  ['api_key', { type: 'api_key', key: 'secret-0' }, { headers: [['X-API-Key', 'secret-0']] }],
  [
    'api_key in a header of its own',
    { type: 'api_key', key: 'secret-0', header: 'X-Key' },
    { headers: [['X-Key', 'secret-0']] },
  ],
  [
    'api_key in the query',
    { type: 'api_key', key: 'a+b&c=d', query: 'key' },
    { headers: [], query: 'key=a%2Bb%26c%3Dd' },
  ],
  [
    'bearer with another scheme, and further headers',
    { type: 'bearer', token: 'secret-0', scheme: 'Basic', headers: { 'X-Version': '1 of 2' } },
    {
      headers: [
        ['Authorization', 'Basic secret-0'],
        ['X-Version', '1 of 2'],
      ],
    },
  ],
  [
    'api_key with a second key',
    { type: 'api_key', key: 'key-1', header: 'DD_API_KEY', headers: { DD_APPLICATION_KEY: 'key-2' } },
    {
      headers: [
        ['DD_API_KEY', 'key-1'],
        ['DD_APPLICATION_KEY', 'key-2'],
      ],
    },
  ],
  [
    'an access token as it was handed in, which cannot be renewed',
    { type: 'oauth', access_token: 'secret-0' },
    { headers: [['Authorization', 'Bearer secret-0']] },
  ],
])('what a call carries: %s', async (_name, auth, authorization) => {
  expect(await gateway.authorize(credentialWith(auth))).toEqual({ authorization });
});

test('50 parallel calls fetch one token', async () => {
  const answers = await times(50, () => gateway.authorize(credential));
  expect(answers).toEqual(Array.from({ length: 50 }, () => carrying('access-token-1')));
  expect(server.requests).toHaveLength(1);
});

test('a client authenticates with HTTP Basic, and each part is form-encoded (RFC 6749 §2.3.1)', async () => {
  await gateway.authorize(
    clientCredentials({
      client_id: 'client:0',
      client_secret: 'p%ss&w0rd+',
      scope: 'tools:read tools:call',
      audience: 'https://mcp.example',
    }),
  );
  expect(server.requests[0]?.headers.authorization).toBe(`Basic ${btoa('client%3A0:p%25ss%26w0rd%2B')}`);
  expect(server.requests[0]?.form).toEqual({
    grant_type: 'client_credentials',
    scope: 'tools:read tools:call',
    audience: 'https://mcp.example',
    resource: 'https://mcp.example.com/mcp',
  });
});

test.each([
  ['the URL of the server without its query', {}, 'https://mcp.example.com/mcp'],
  ['the one that is named', { resource: 'https://api.example.com/' }, 'https://api.example.com/'],
  ['none, if it is to be none', { resource: false }, undefined],
])('the resource parameter of a token request is %s (RFC 8707)', async (_name, more, resource) => {
  await gateway.authorize(clientCredentials(more));
  expect(server.requests[0]?.form.resource).toBe(resource);
});

test('the resource parameter of a server at the root has no trailing slash', async () => {
  await gateway.authorize({ ...credential, serverUrl: 'https://MCP.example.com:443/' });
  expect(server.requests[0]?.form.resource).toBe('https://mcp.example.com');
});

test.each([200, 201, 203, 400, 500])('a token response with status %i is a success', async (status) => {
  server.misbehaves = (_, response) =>
    answerJson(response, status, { ...GOOD, scope: null, refresh_token: null, expires_in: null });
  expect(await gateway.authorize(credential)).toEqual(carrying('a'));
});

test("the query of a token endpoint's URL is kept", async () => {
  await gateway.authorize(clientCredentials({ token_url: `${server.url}?tenant=a%20b` }));
  expect(server.requests[0]?.url).toBe('/token?tenant=a%20b');
});

test.each<[string, Misbehaviour]>([
  ['says invalid_client', (_, response) => answerJson(response, 401, { error: 'invalid_client' })],
  ['says so with 400', (_, response) => answerJson(response, 400, { error: 'invalid_client' })],
  ['denies access with 401', (_, response) => answerJson(response, 401, { error: 'access_denied' })],
  [
    'misses its id in words of its own',
    (_, response) => answerJson(response, 400, { error: 'no client_id' }),
  ],
  ['answers as frameworks do', (_, response) => answerJson(response, 422, { detail: [{ loc: ['body'] }] })],
  [
    'answers with a page',
    (_, response) => response.writeHead(403, { 'content-type': 'text/html' }).end('no'),
  ],
  ['misses a parameter', (_, response) => answerJson(response, 400, { error: 'invalid_request' })],
  [
    'challenges without a word',
    (_, response) => response.writeHead(401, { 'www-authenticate': 'Basic realm="as"' }).end(),
  ],
])('to a server that %s the secret goes in the body, and from then on at once', async (_name, refuse) => {
  server.misbehaves = (request, response) =>
    request.headers.authorization === undefined ? false : refuse(request, response);
  expect(await gateway.authorize(credential)).toEqual(carrying('access-token-1'));
  expect(await gateway.authorize(credential, 'access-token-1')).toEqual(carrying('access-token-2'));
  expect(server.requests.map(({ headers, form }) => [headers.authorization, form.client_secret])).toEqual([
    [`Basic ${btoa('client%2D0:client%2Dsecret%2D0')}`, undefined],
    [undefined, 'client-secret-0'],
    [undefined, 'client-secret-0'],
  ]);
  expect(server.requests[1]?.form.client_id).toBe('client-0');
});

test.each([
  [400, 'invalid_grant'],
  [400, 'invalid_scope'],
  [400, 'unsupported_grant_type'],
  [404, undefined],
  [429, undefined],
  [500, undefined],
])(
  'an answer of %i with the error %s is final, and the client tries no other way to authenticate',
  async (status, error) => {
    server.misbehaves = (_, response) => answerJson(response, status, { error });
    expect(await gateway.authorize(credential)).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
    expect(server.requests).toHaveLength(1);
  },
);

test('a client that both ways of authentication refuse is not tried a third time', async () => {
  server.misbehaves = (_, response) => answerJson(response, 401, { error: 'invalid_client' });
  expect(await gateway.authorize(credential)).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
  expect(server.requests).toHaveLength(2);
});

test.each([
  ['a minute before its end', 3600, 3540],
  ['a tenth of its life before its end, if that is less than a minute', 60, 54],
  ['an hour, if its life is not reported', undefined, 3600],
  ['not at all, if its life is over at once', 0, 0],
])('an access token is used until %s', async (_name, expiresIn, usableSeconds) => {
  server.expiresIn = expiresIn;
  const began = clock.ms;
  await gateway.authorize(credential);
  if (usableSeconds > 0) {
    clock.ms = began + usableSeconds * 1000 - 1;
    expect(await gateway.authorize(credential)).toEqual(carrying('access-token-1'));
  }
  clock.ms = began + usableSeconds * 1000;
  expect(await gateway.authorize(credential)).toEqual(carrying('access-token-2'));
});

test('two credentials never share a token', async () => {
  expect(await gateway.authorize(credential)).toEqual(carrying('access-token-1'));
  expect(await gateway.authorize({ ...credential, ...clientCredentials() })).toEqual(
    carrying('access-token-2'),
  );
});

test('50 parallel calls with a refused token fetch one new token, and late calls use it', async () => {
  await gateway.authorize(credential);
  const answers = await times(50, () => gateway.authorize(credential, 'access-token-1'));
  expect(answers).toEqual(Array.from({ length: 50 }, () => carrying('access-token-2')));
  expect(await gateway.authorize(credential, 'access-token-1')).toEqual(carrying('access-token-2'));
  expect(server.requests).toHaveLength(2);
});

test('while a refused token is replaced, no other call gets the refused token', async () => {
  await gateway.authorize(credential);
  const release = server.hold();
  const refused = gateway.authorize(credential, 'access-token-1');
  const other = gateway.authorize(credential);
  await server.reached(2);
  release();
  expect(await Promise.all([refused, other])).toEqual([
    carrying('access-token-2'),
    carrying('access-token-2'),
  ]);
});

test('a replacement token that is refused too is replaced after 10 s', async () => {
  await gateway.authorize(credential);
  await gateway.authorize(credential, 'access-token-1');
  const again = () => gateway.authorize(credential, 'access-token-2');
  for (const answer of await times(50, again)) {
    expect(answer).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
  }
  // It is tried meanwhile: the server may have changed its mind.
  expect(await gateway.authorize(credential)).toEqual(carrying('access-token-2'));
  expect(server.requests).toHaveLength(2);
  clock.ms += 10_000;
  expect(await again()).toEqual(carrying('access-token-3'));
});

test('a token endpoint that returns the refused token again is an error', async () => {
  server.extra.access_token = 'access-token-same';
  await gateway.authorize(credential);
  const answers = await times(50, () => gateway.authorize(credential, 'access-token-same'));
  for (const answer of answers) expect(answer).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
  expect(server.requests).toHaveLength(2);
});

test('an ID token is ignored, whoever issued it', async () => {
  server.extra.id_token = 'not.even.one';
  expect(await gateway.authorize(credential)).toEqual(carrying('access-token-1'));
});

test.each<[string, Misbehaviour]>([
  ['refuses', (_, r) => answerJson(r, 400, { error: 'invalid_scope', error_description: DESCRIPTION })],
  ['refuses in words of its own', (_, r) => answerJson(r, 400, { error: 'client-secret-0 is wrong' })],
  ['fails', (_, r) => r.writeHead(500).end(DESCRIPTION)],
  ['answers with a page', (_, r) => r.writeHead(200, { 'content-type': 'text/html' }).end(DESCRIPTION)],
  ['answers with a list', (_, r) => answerJson(r, 200, [GOOD])],
  ['answers without a token', (_, r) => answerJson(r, 200, { token_type: 'Bearer' })],
  ['answers nothing', (_, r) => r.writeHead(200).end()],
  ['answers 204', (_, r) => r.writeHead(204).end()],
  ['hangs up', (_, r) => r.destroy()],
  ['answers too much', (_, r) => answerJson(r, 200, { ...GOOD, padding: ' '.repeat(70_000) })],
  ['wants a proof of possession', (_, r) => answerJson(r, 200, { ...GOOD, token_type: 'DPoP' })],
  [
    'gives a token that breaks a header',
    (_, r) => answerJson(r, 200, { ...GOOD, access_token: 'a\r\nX: y' }),
  ],
])(
  'a token endpoint that %s gives no token, and neither secret nor description is shown',
  async (_name, misbehave) => {
    server.misbehaves = misbehave;
    const answer = await gateway.authorize(credential);
    expect(answer).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
    const told = JSON.stringify(answer) + gateway.logged();
    expect(gateway.logged()).toContain(credential.id);
    for (const secret of ['client-secret-0', btoa('client%2D0:client%2Dsecret%2D0'), DESCRIPTION, 'X: y'])
      expect(told).not.toContain(secret);
    // Nothing of the failure stays.
    server.misbehaves = undefined;
    expect(await gateway.authorize(credential)).toEqual(carrying('access-token-1'));
  },
);

test('the error shows a registered OAuth error code', async () => {
  server.misbehaves = (_, response) => answerJson(response, 400, { error: 'invalid_scope' });
  expect(await gateway.authorize(credential)).toMatchObject({
    refusal: { message: 'The authorization server gave no access token (invalid_scope).' },
  });
});

test.each([301, 302, 303, 307, 308])('a redirect (%i) is not followed', async (status) => {
  const elsewhere = await startAuthorizationServer();
  try {
    server.misbehaves = (_, response) => response.writeHead(status, { location: elsewhere.url }).end();
    expect(await gateway.authorize(credential)).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
    expect(elsewhere.requests).toHaveLength(0);
  } finally {
    elsewhere.close();
  }
});

test.each(['127.0.0.1', 'localhost'])(
  'a token endpoint at a private address (%s) gets no request',
  async (host) => {
    gateway = oauthGateway(noDatabase, { allowPrivate: false });
    const answer = await gateway.authorize(
      clientCredentials({ token_url: server.url.replace('127.0.0.1', host) }),
    );
    expect(answer).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
    expect(gateway.logged()).toContain('ALLOW_PRIVATE_UPSTREAMS');
    expect(server.requests).toHaveLength(0);
  },
);

// Ten seconds: only in `pnpm test:all`.
test.runIf(process.env.TEST_ALL)(
  'a request to a token endpoint that never answers times out',
  { timeout: 30_000 },
  async () => {
    server.hold();
    expect(await gateway.authorize(credential)).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
    expect(gateway.logged()).toContain('TimeoutError');
  },
);
