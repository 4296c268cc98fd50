import {
  type AuthorizationServer,
  DESCRIPTION,
  startAuthorizationServer,
} from '@presign/gateway/test/authorization-server.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, outcomes, post, sumOf, tally, toolCall, urlOf } from './holder.ts';
import { listen } from './listen.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let authorization: AuthorizationServer;
let stack: Stack;
let aheadMs = 0;
/** Access tokens that the MCP server takes; undefined: all that look like one. */
let accepted: ReadonlySet<string> | undefined;

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(async () => {
  aheadMs = 0;
  accepted = undefined;
  authorization = await startAuthorizationServer();
  upstream.behaves = ({ headers }, response) => {
    const token = headers.authorization?.replace(/^Bearer /, '') ?? '';
    if (accepted ? accepted.has(token) : token.startsWith('access-token-')) return false;
    return response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
  };
  return () => authorization.close();
});

const client = () => ({ token_url: authorization.url, client_id: 'c1', client_secret: 's1' });
const issue = (auth: object, policy: object = {}, url = upstream.url) =>
  stack.issueMcp({
    servers: [{ name: 'a', url, transport: 'http', auth_type: 'oauth', auth_config: auth }],
    ...policy,
  });
const parallel = (url: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, i) => post(at(stack, i % 2, url), toolCall('run', i))));
const carried = () => upstream.arrived.at(-1)?.headers.authorization;

test('an access token from the issue request is sent, and a server that refuses it gets no second request', async () => {
  const answer = await issue({ access_token: 'access-token-own' }, { max_uses: 1 });
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, ask('ping')))).toEqual(['ran']);
  expect(carried()).toBe('Bearer access-token-own');
  accepted = new Set();
  const before = upstream.arrived.length;
  const heard = await post(url, toolCall('run'));
  expect([heard.status, ...outcomes(heard)]).toEqual([502, 'upstream_auth_failed']);
  expect(upstream.arrived).toHaveLength(before + 1);
  expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
});

describe.each([
  ['client credentials', () => client(), 'client_credentials', 2],
  ['a refresh token', () => ({ ...client(), refresh_token: 'refresh-token-0' }), 'refresh_token', 1],
])('with %s', (_what, auth, grantType, mostAtOnce) => {
  test('many parallel calls over two gateways fetch one access token, and keep it', async () => {
    const url = urlOf(await issue(auth()), 'a');
    expect(tally(await parallel(url, 40))).toEqual({ ran: 40 });
    // A client's own token is each gateway's; a refresh is one over all.
    expect(authorization.requests.length).toBeLessThanOrEqual(mostAtOnce);
    expect(tally(await parallel(url, 20))).toEqual({ ran: 20 });
    expect(authorization.requests.length).toBeLessThanOrEqual(mostAtOnce);
    expect(authorization.requests[0]).toMatchObject({
      headers: { authorization: `Basic ${Buffer.from('c1:s1').toString('base64')}` },
      form: { grant_type: grantType },
    });
    expect(upstream.arrived.at(-1)?.headers['x-api-key']).toBeUndefined();
  });

  test('an access token is renewed before it expires', async () => {
    authorization.expiresIn = 900;
    const url = urlOf(await issue(auth()), 'a');
    await post(url, ask('ping'));
    const first = carried();
    aheadMs = 880_000;
    expect(outcomes(await post(url, ask('ping')))).toEqual(['ran']);
    expect(authorization.requests).toHaveLength(2);
    expect(carried()).not.toBe(first);
  });

  test('a server that answers 401 gets one more request with a new token, and the call is charged once', async () => {
    const answer = await issue(auth(), { max_uses: 1 });
    const url = urlOf(answer, 'a');
    await post(url, ask('ping'));
    accepted = new Set(['access-token-2']);
    const before = upstream.arrived.length;
    expect(outcomes(await post(url, toolCall('run', 'x', { a: 'ü' })))).toEqual(['ran']);
    const [first, second] = upstream.arrived.slice(before);
    expect(second?.body).toBe(first?.body);
    expect([first, second].map((each) => each?.headers.authorization)).toEqual([
      'Bearer access-token-1',
      'Bearer access-token-2',
    ]);
    expect(upstream.arrived).toHaveLength(before + 2);
    expect(authorization.requests).toHaveLength(2);
    expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 1_000 });
  });

  test('many simultaneous calls with 401 fetch at most one new token at each gateway', async () => {
    const url = urlOf(await issue(auth()), 'a');
    await parallel(url, 2);
    const known = authorization.requests.length;
    const next = [1, 2].map((i) => `access-token-${known + i}`);
    accepted = new Set(next);
    expect(tally(await parallel(url, 30))).toEqual({ ran: 30 });
    expect(authorization.requests.length - known).toBeLessThanOrEqual(mostAtOnce);
  });

  test('a server that refuses the new token too gets no third request, and nothing is charged', async () => {
    const answer = await issue(auth(), { max_uses: 1 });
    accepted = new Set();
    const before = upstream.arrived.length;
    const heard = await post(urlOf(answer, 'a'), toolCall('run', 'x'));
    expect([heard.status, heard.messages[0]?.id, ...outcomes(heard)]).toEqual([
      502,
      'x',
      'upstream_auth_failed',
    ]);
    expect(heard.headers['www-authenticate']).toBeUndefined();
    expect(upstream.arrived).toHaveLength(before + 2);
    expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
  });

  test('without an access token nothing reaches the server, nothing is charged, and nothing is quoted', async () => {
    const answer = await issue(auth(), { max_uses: 1 });
    authorization.misbehaves = (_request, response) =>
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: 'invalid_grant', error_description: DESCRIPTION }));
    const before = upstream.arrived.length;
    const heard = await post(urlOf(answer, 'a'), toolCall('run'));
    expect([heard.status, ...outcomes(heard)]).toEqual([502, 'upstream_auth_failed']);
    expect(JSON.stringify(heard)).not.toContain(DESCRIPTION);
    expect(upstream.arrived).toHaveLength(before);
    authorization.misbehaves = undefined;
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['ran']);
    expect((await sumOf(stack, answer)).uses).toBe(1);
  });

  test('a stream of the older transport gets a new token, too', async () => {
    const url = urlOf(await issue(auth(), {}, upstream.sseUrl), 'a');
    await post(url, ask('ping'));
    accepted = new Set(['access-token-2']);
    const stream = await listen(url);
    expect(stream.status).toBe(200);
    expect(carried()).toBe('Bearer access-token-2');
    stream.leave();
  });
});

test('a rotated refresh token is shared by gateways and bundles, and an old one is never used again', async () => {
  const auth = { ...client(), refresh_token: 'refresh-token-0' };
  const url = urlOf(await issue(auth), 'a');
  for (const [i, gateway] of [0, 1, 0, 1].entries()) {
    aheadMs = i * 900_000;
    authorization.expiresIn = 900;
    expect(outcomes(await post(at(stack, gateway, url), ask('ping')))).toEqual(['ran']);
  }
  // The same refresh token handed in again: its chain has moved on.
  const again = urlOf(await issue(auth), 'a');
  expect(outcomes(await post(again, ask('ping')))).toEqual(['ran']);
  const used = authorization.requests.map(({ form }) => form.refresh_token);
  expect(used).toEqual(['refresh-token-0', 'refresh-token-1', 'refresh-token-2', 'refresh-token-3']);
});
