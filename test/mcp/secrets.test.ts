import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '@presign/gateway/test/authorization-server.ts';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, outcomes, post, send, tokenIn, toolCall, urlOf } from './holder.ts';
import { openSession } from './listen.ts';
import { redisKeys } from './redis-keys.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

/** In every secret that goes through here: credentials, tokens, arguments, answers. */
const MARK = 'Zm4rkedZ';

let upstream: McpUpstream;
let authorization: AuthorizationServer;
let stack: Stack;
/** Secrets that came about on the way: issued tokens, sealed endpoints and sessions. */
const issued: string[] = [];
/** All that holders were answered. */
const answered: string[] = [];
/** All of Redis, again and again: what is drained is gone from it. */
const dumps: string[] = [];
/** A part of the entry that a call leaves in Redis. */
const USAGE = '"tol\\":\\"run';

beforeAll(async () => {
  upstream = await startMcpUpstream();
  authorization = await startAuthorizationServer();
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  authorization.close();
});
beforeEach(() => {
  upstream.behaves = undefined;
});

const oauth = () => ({ token_url: authorization.url, client_id: `c-${MARK}`, client_secret: `s-${MARK}` });
const auths = () => ({
  none: {},
  bearer: { token: `b-${MARK}` },
  api_key: { key: `k-${MARK}` },
  oauth: { ...oauth(), refresh_token: authorization.refreshToken },
});

async function issue(
  type: keyof ReturnType<typeof auths>,
  config: object = auths()[type],
  server: object = {},
) {
  const answer = await stack.issueMcp({
    servers: [
      { name: type, url: upstream.url, transport: 'http', auth_type: type, auth_config: config, ...server },
    ],
    max_uses: 8,
  });
  const url = urlOf(answer, type);
  issued.push(answer.bundle_token, tokenIn(url));
  return { answer, url };
}
const keep = async (asking: ReturnType<typeof post>) => {
  const heard = await asking;
  answered.push(heard.text, JSON.stringify(heard.headers));
  return heard;
};

test('each kind of credential is used, in both transports, with calls of every outcome', async () => {
  authorization.refreshToken = `refresh-${MARK}`;
  authorization.extra.access_token = `access-${MARK}`;
  authorization.extra.refresh_token = `rotated-${MARK}`;
  const secretCall = (name: string) => toolCall(name, 1, { password: `arg-${MARK}` });
  const kinds = [
    await issue('none'),
    await issue('bearer'),
    await issue('api_key'),
    await issue('api_key', { key: `q-${MARK}`, query: 'key' }),
    await issue('oauth'),
    await issue('oauth', oauth()),
    await issue('oauth', { access_token: `own-${MARK}` }),
  ];
  for (const { answer, url } of kinds) {
    const begun = await keep(post(url, ask('initialize')));
    const session = String(begun.headers['mcp-session-id']);
    issued.push(session);
    expect(
      outcomes(await keep(post(at(stack, 1, url), secretCall('run'), { 'mcp-session-id': session }))),
    ).toEqual(['ran']);
    await keep(post(url, secretCall('error-32602')));
    await keep(post(url, `{"secret":"arg-${MARK}`));
    await keep(post(url, { ...secretCall('run'), Method: `arg-${MARK}` }));
    await keep(
      send(url, 'DELETE', { 'mcp-session-id': `raw-${MARK}`, authorization: `Bearer holder-${MARK}` }),
    );
    await keep(send(`${answer.bundle_url}?format=cursor`, 'HEAD'));
    upstream.behaves = (_arrived, response) => response.writeHead(401).end(`their-${MARK}`);
    expect((await keep(post(url, secretCall('run')))).status).toBe(502);
    upstream.behaves = (_arrived, _response, request) => request.socket.destroy();
    expect((await keep(post(url, secretCall('run')))).status).toBe(502);
    upstream.behaves = undefined;
    // The ledger takes what a call leaves, soon.
    const whileThere = async () => {
      await keep(post(url, secretCall('run')));
      const dump = await dumpRedis();
      return dump.includes(USAGE) ? dump : undefined;
    };
    dumps.push(await eventually(whileThere));
  }
  expect(authorization.requests.length).toBeGreaterThanOrEqual(2);
  expect(JSON.stringify(authorization.requests)).toContain(`refresh-${MARK}`);
  const carried = JSON.stringify(upstream.arrived);
  for (const each of ['b', 'k', 'q', 'access', 'own', 'arg']) expect(carried).toContain(`${each}-${MARK}`);
});

test('the older transport is used, and every kind of refusal', async () => {
  const { url } = await issue('bearer', { token: `sse-${MARK}` }, { url: upstream.sseUrl, transport: 'sse' });
  upstream.endpoint = `/messages?session=ep-${MARK}`;
  const { stream, endpoint } = await openSession(stack, url);
  issued.push(new URL(endpoint).searchParams.get('ep') ?? '');
  for (let i = 0; i < 10; i++)
    await keep(post(at(stack, 1, endpoint), toolCall('run', i, { password: `arg-${MARK}` })));
  const all = await stream.reached(10);
  expect(JSON.stringify(all)).toContain('uses_exhausted');
  answered.push(stream.text().replaceAll(issued.at(-1) ?? '', ''));
  dumps.push(await dumpRedis());
  stream.leave();
  authorization.misbehaves = (_request, response) => response.writeHead(500).end(`their-${MARK}`);
  const failing = await issue('oauth', { ...oauth(), client_id: `other-${MARK}` });
  await keep(post(failing.url, toolCall('run')));
  const closed = await issue('bearer', { token: `gone-${MARK}` }, { url: 'http://127.0.0.1:1/mcp' });
  await keep(post(closed.url, toolCall('run')));
  for (const target of [`${url}x`, url.replace('url=', 'URL='), `${url}&token=x`])
    await keep(post(target, ask('ping')));
  for (const fields of [{ token: [MARK] }, { token: `a b-${MARK}` }, { tokn: MARK }]) {
    const servers = [{ name: 'a', url: upstream.url, auth_type: 'bearer', auth_config: fields }];
    const refused = await stack.mcpPresign({ servers });
    expect(refused.status).toBe(400);
    answered.push(await refused.text());
  }
});

test('no answer quotes a secret', () => {
  expect(answered.length).toBeGreaterThan(70);
  expect(answered.filter((text) => text.includes(MARK))).toEqual([]);
});

test('no log line contains a secret', () => {
  expect(stack.logs.filter((line) => line.includes('"kind":"mcp"')).length).toBeGreaterThan(20);
  expect(stack.logs.filter(holdsSecret)).toEqual([]);
});

test('no key of Redis contains a secret in plain text', async () => {
  const all = [...dumps, await dumpRedis()].join();
  for (const each of ['credential:', 'listening:', USAGE]) expect(all).toContain(each);
  expect(holdsSecret(all)).toBe(false);
});

test('no table of Postgres contains a secret in plain text', async () => {
  await stack.issuer.ledger.drainAll();
  const found: string[] = [];
  const tables = await stack.db
    .select({ name: sql<string>`tablename` })
    .from(sql`pg_tables`)
    .where(sql`schemaname = 'public'`);
  for (const { name } of tables) {
    const rows = await stack.db.execute(sql`select t::text as row from ${sql.identifier(name)} t`);
    const text = JSON.stringify(rows);
    if (holdsSecret(text)) found.push(name);
    if (name === 'ledger') expect(text).toContain('error-32602');
    if (name === 'oauth_tokens') expect(text).toMatch(/\bt[0-9a-f]{6}\./);
  }
  expect(tables.length).toBeGreaterThan(9);
  expect(found).toEqual([]);
});

/** A part of a token is as bad: who logs a path cut off after 100 characters logs half a token. */
const holdsSecret = (text: string): boolean =>
  text.includes(MARK) ||
  issued.some((each) => text.includes(each.slice(12, 60)) || text.includes(each.slice(-40)));

async function dumpRedis(): Promise<string> {
  const parts: string[] = [];
  for (const key of await redisKeys(stack.redis, '*')) {
    const type = await stack.redis.type(key);
    if (type === 'hash') parts.push(key, JSON.stringify(Object.entries(await stack.redis.hgetall(key))));
    if (type === 'stream') parts.push(key, JSON.stringify(await stack.redis.xrange(key, '-', '+')));
    if (type === 'zset') parts.push(key, JSON.stringify(await stack.redis.zrange(key, '0', '-1')));
    if (type === 'string') parts.push(key, (await stack.redis.get(key)) ?? '');
  }
  return parts.join('\n');
}
