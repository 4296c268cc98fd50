import { createHash } from 'node:crypto';
import { budgets, credentials, grants, idempotencyKeys, sessions } from '@presign/schema/tables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey, ownAccount } from './accounts.ts';
import { refused, send } from './ask.ts';
import {
  bundleClaims,
  issueMcp,
  sendMcp,
  server,
  serverClaims,
  serverToken,
  unsealed,
  writtenBundle,
} from './ask-mcp.ts';
import { startOwnIssuer } from './own-issuer.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const counts = async () => ({
  grants: await stack.db.$count(grants),
  sessions: await stack.db.$count(sessions),
  budgets: await stack.db.$count(budgets),
  credentials: await stack.db.$count(credentials),
  keys: await stack.db.$count(idempotencyKeys),
});
/** Checks that whatever runs here writes nothing. */
async function writesNothing(run: () => Promise<unknown>): Promise<void> {
  const before = await counts();
  await run();
  expect(await counts()).toEqual(before);
}
const two = [
  { ...server, name: 'zebra' },
  { name: 'constructor', url: 'https://b.example/mcp?a=1&b=%20+u', transport: 'http' },
];

describe('the answer', () => {
  test('has exactly the documented fields, the grant and the claims of its token', async () => {
    const before = Math.floor(Date.now() / 1000);
    const answer = await issueMcp(stack);
    expect(Object.keys(answer)).toEqual([
      ...['bundle_url', 'bundle_token', 'expires_at', 'session_id', 'servers', 'grant_id', 'claims'],
    ]);
    const { grant_id, session_id, claims } = answer;
    expect(claims).toMatchObject({ jti: grant_id, sub: session_id, knd: 'mcp_bundle' });
    const body = Buffer.from(answer.bundle_token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
    expect(JSON.parse(String(body))).toEqual(claims);
    expect(answer.bundle_url).toBe(`${stack.gatewayUrls[0]}/mcp/bundle/${answer.bundle_token}`);
    expect(answer.session_id).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(answer.expires_at - before - 3600).toBeGreaterThanOrEqual(0);
    expect(answer.expires_at).toBeLessThanOrEqual(Math.floor(Date.now() / 1000) + 3600);
  });

  test('has the servers by name, in the order of the request, each with url and transport alone', async () => {
    const { servers } = await issueMcp(stack, { servers: two });
    expect(Object.keys(servers)).toEqual(['zebra', 'constructor']);
    for (const { name, url, transport = 'sse' } of two.map((each) => ({ transport: undefined, ...each }))) {
      const entry = servers[name];
      expect(Object.keys(entry ?? {}).sort()).toEqual(['transport', 'url']);
      expect(entry?.transport).toBe(transport);
      const prefix = `${stack.gatewayUrls[0]}/mcp/mcp?url=${encodeURIComponent(url)}&token=v4.public.`;
      expect(entry?.url.startsWith(prefix), entry?.url).toBe(true);
      expect(new URL(entry?.url ?? '').searchParams.get('url')).toBe(url);
    }
  });

  test('of 50 servers has 50 URLs, no two with the same token', async () => {
    const servers = Array.from({ length: 50 }, (_, i) => ({ ...server, name: `server ${i}` }));
    const answer = await issueMcp(stack, { servers });
    expect(Object.keys(answer.servers)).toEqual(servers.map(({ name }) => name));
    expect(new Set(servers.map(({ name }) => serverToken(answer, name))).size).toBe(50);
  });
});

describe('the tokens', () => {
  test('contain grant, session, times, addresses, partition and kind, and a server’s token its URL; nothing else', async () => {
    const answer = await issueMcp(stack, { servers: two, expires_in: 60 });
    const { own, byName } = await writtenBundle(stack, answer);
    const common = {
      sub: answer.session_id,
      iat: own.grants.issuedAt.toISOString(),
      exp: new Date(answer.expires_at * 1000).toISOString(),
      iss: stack.issuerUrl,
      aud: stack.gatewayUrls[0],
      prt: own.budgets.partition,
    };
    const bundle = bundleClaims(stack, answer);
    expect(bundle).toEqual({ ...common, jti: own.grants.id, knd: 'mcp_bundle' });
    expect(Date.parse(bundle.exp) - Date.parse(bundle.iat)).toBe(60_000);
    for (const { name, url } of two) {
      const srv = createHash('sha256').update(url).digest('base64url');
      const jti = byName(name).grants.id;
      expect(serverClaims(stack, answer, name)).toEqual({ ...common, jti, knd: 'mcp', srv });
    }
  });

  test('of the longest URL have at most 3,072 characters, and its issued URL at most 6,144', async () => {
    const url = `https://a.example/%41${'&'.repeat(1515)}`;
    expect(url).toHaveLength(1536);
    const answer = await issueMcp(stack, { servers: [{ ...server, url }] });
    expect(serverToken(answer, 'docs').length).toBeLessThanOrEqual(3072);
    expect(answer.servers.docs?.url.length).toBeGreaterThan(4608);
    expect(answer.servers.docs?.url.length).toBeLessThanOrEqual(6144);
  });

  test.each([
    ['URL', `https://${'g'.repeat(1000)}.example`, /issued URL would have \d+ characters, at most 6144/],
    ['token', `https://${'g'.repeat(2500)}.example`, /its token would have more than 3072/],
  ])(
    'a %s that would make a token too long is a 400 that names the server, and nothing is written',
    async (_what, gatewayUrl, problem) => {
      const issuer = await startOwnIssuer(stack, { gatewayUrl });
      const servers = [server, { name: 'long', url: `https://a.example/${'&'.repeat(1518)}` }];
      await writesNothing(async () => {
        const sent = await sendMcp(issuer, { servers });
        const field = /token/.test(String(problem)) ? 'servers[0].url' : 'servers[1].url';
        expect(refused(sent, 'invalid_request', field)).toMatch(problem);
      });
      await issuer.close();
    },
  );
});

describe('the written rows', () => {
  test('have one budget for all servers, with the requested limits', async () => {
    const answer = await issueMcp(stack, { servers: two, max_uses: 3, cost_limit: 0 });
    const { own, ofServers } = await writtenBundle(stack, answer);
    expect(ofServers).toHaveLength(2);
    expect(new Set([own, ...ofServers].map((row) => row.budgets.id)).size).toBe(1);
    expect(own.budgets).toMatchObject({ maxUses: 3, costLimitMicrousd: 0, used: 0, settledMicrousd: 0 });
    const unlimited = await writtenBundle(stack, await issueMcp(stack));
    expect(unlimited.own.budgets).toMatchObject({ maxUses: null, costLimitMicrousd: null });
  });

  test('have every field as it was sent', async () => {
    const pricing = { default: 7, tools: { search: 0, constructor: 5 } };
    const auth = { auth_type: 'api_key', auth_config: { key: 'k1', query: 'key' } };
    const tools = ['search', 'constructor'];
    const servers = [{ ...server, transport: 'http', pricing, tools, ...auth }, two[1]];
    const ids = { external_session: 'order 7 – ü😀', external_user: 'e\u0301' };
    const metadata = { tags: ['a', null, 1.5], text: 'NUL \0 and \ud800' };
    const answer = await issueMcp(stack, { servers, ...ids, metadata });
    const { own, ofServers, byName } = await writtenBundle(stack, answer);
    const account = await ownAccount(stack);
    for (const row of [own, ...ofServers]) {
      expect(row.grants).toMatchObject({
        accountId: account,
        sessionId: answer.session_id,
        provider: 'mcp',
        method: null,
        paths: null,
        externalSession: ids.external_session,
        externalUser: ids.external_user,
        revokedAt: null,
      });
      expect(row.grants.expiresAt.getTime()).toBe(answer.expires_at * 1000);
    }
    expect(own.grants).toMatchObject({ kind: 'mcp_bundle', server: null, bundleId: null, metadata });
    expect(byName('docs').grants).toMatchObject({ kind: 'mcp', bundleId: own.grants.id, metadata: null });
    expect(byName('docs').grants.server).toEqual({
      ...server,
      transport: 'http',
      pricing,
      tools,
    });
    expect(byName('constructor').grants.server).toEqual(two[1]);
    expect(unsealed(stack, byName('docs').credentials)).toEqual({ type: 'api_key', key: 'k1', query: 'key' });
    expect(unsealed(stack, byName('constructor').credentials)).toEqual({ type: 'none' });
  });

  test('have the document of the bundle sealed', async () => {
    const answer = await issueMcp(stack, { servers: two });
    const { own } = await writtenBundle(stack, answer);
    expect(unsealed(stack, own.credentials)).toEqual({ mcpServers: answer.servers });
    expect(own.credentials.sealed).not.toContain('v4.public');
  });
});

describe('the API key', () => {
  test('the scope presign or admin is needed', async () => {
    const account = await ownAccount(stack);
    const withScope = async (scope: string) => ({
      issuerUrl: stack.issuerUrl,
      apiKey: await addApiKey(stack, account, { scopes: [scope] }),
    });
    expect((await sendMcp(await withScope('presign'))).status).toBe(200);
    await writesNothing(async () => {
      refused(await sendMcp(await withScope('read')), 'forbidden');
      const body = { servers: [server] };
      refused(await send(stack, { path: '/v2/mcp-presign', apiKey: undefined, body }), 'unauthenticated');
      refused(await send(stack, { path: '/v2/mcp-presign', apiKey: 'wrong', body }), 'unauthenticated');
    });
  });

  test('an undocumented request gets the name of its wrong field, and leaves no rows', async () => {
    await writesNothing(async () => {
      const cases: [object, string][] = [
        [
          { servers: [server, { ...server, name: 'b', auth_type: 'bearer' }] },
          'servers[1].auth_config.token',
        ],
        [{ servers: [server, server] }, 'servers[1].name'],
        [{ cost_limt: 5 }, 'cost_limt'],
        [{ expires_in: -1 }, 'expires_in'],
        [{ max_uses: 0 }, 'max_uses'],
      ];
      for (const [fields, field] of cases) refused(await sendMcp(stack, fields), 'invalid_request', field);
      const twice = '{"servers": [], "servers": []}';
      refused(await send(stack, { path: '/v2/mcp-presign', body: twice }), 'invalid_request', 'servers');
    });
  });
});
