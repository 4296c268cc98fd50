import { findGrant, revokeGrant } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { at, urlOf } from '../mcp/holder.ts';
import { listen } from '../mcp/listen.ts';
import { eventOf, type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

let upstream: Upstream;
let mcpUpstream: McpUpstream;
let stack: Stack;

/** Provider whose answers begin and never end, or never begin when `x-behave` says so. */
beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    if (seen.headers['x-behave'] === 'silent') return;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n');
  });
  mcpUpstream = await startMcpUpstream();
  const pricing = { 'model-1': { input: 150_000, output: 600_000 } };
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url, pricing } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await mcpUpstream.close();
});

const body =
  '{"model":"model-1","stream":true,"max_tokens":1000,"messages":[{"role":"user","content":"Hi"}]}';

async function issue(fields: object = {}) {
  const ask = {
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: 'sk-real',
    cost_limit: 10_000,
    ...fields,
  };
  const { url, session_id } = await stack.issue(ask);
  const [payload = ''] = (url.split('/t/v4.public.')[1] ?? '').split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').subarray(0, -64).toString()) as {
    jti: string;
    prt: number;
    exp: string;
  };
  return { url, session_id, id: claims.jti, partition: claims.prt, expiresAtMs: Date.parse(claims.exp) };
}

const call = (url: string, behave = 'begin') =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', 'x-behave': behave }, body });

const settledRow = (id: string) =>
  eventually(async () => {
    await stack.issuer.ledger.drainAll();
    return (await stack.db.select().from(ledger).where(eq(ledger.grantId, id)))[0];
  });

test('a revocation cuts an open stream at any gateway, and the call is settled at its hold', async () => {
  const grant = await issue();
  const second = grant.url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');
  const answer = await call(second);
  const reader = answer.body?.getReader();
  await reader?.read();
  await revokeGrant(stack.redis, grant);
  await expect(reader?.read()).rejects.toThrow();
  const row = await settledRow(grant.id);
  expect(row?.uses).toBe(1);
  // 1,000 tokens of output at $0.60 per million, and the input at its most.
  expect(row?.costMicrousd).toBeGreaterThan(600);
  expect((await call(grant.url)).status).toBe(403);
});

test('a revocation cuts a call that has no answer yet, and the error says why', async () => {
  const grant = await issue();
  const waiting = call(grant.url, 'silent');
  await eventually(
    async () => (await findGrant(stack.redis, grant.partition, grant.id)) && upstream.seen.at(-1),
  );
  await revokeGrant(stack.redis, grant);
  const answer = await waiting;
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ error: { code: 'grant_revoked' } });
});

/** A call whose answer has begun, and what becomes of the rest. */
async function open(url: string) {
  const reader = (await call(url)).body?.getReader();
  await reader?.read();
  return {
    cut: (reader?.read() ?? Promise.resolve()).then(
      () => 'went on',
      () => 'cut',
    ),
    leave: () => reader?.cancel(),
  };
}
const remove = async (path: string) => {
  const headers = { authorization: `Bearer ${stack.apiKey}` };
  expect((await fetch(`${stack.issuerUrl}/v1/${path}`, { method: 'DELETE', headers })).status).toBe(204);
};

test.each(['session', 'grant', 'external_user'])(
  'DELETE of a %s cuts its open LLM streams at every gateway, and no others',
  async (what) => {
    const external_user = crypto.randomUUID();
    const grant = await issue({ external_user });
    const other = await open((await issue()).url);
    const streams = await Promise.all([0, 1].map((gateway) => open(at(stack, gateway, grant.url))));
    const paths = {
      session: `sessions/${grant.session_id}`,
      grant: `grants/${grant.id}`,
      external_user: `sessions?external_user=${external_user}`,
    };
    await remove(paths[what as keyof typeof paths]);
    expect(await Promise.all(streams.map(({ cut }) => cut))).toEqual(['cut', 'cut']);
    expect(await Promise.race([other.cut, 'open'])).toBe('open');
    await other.leave();
  },
);

test('DELETE of a session ends the open streams of its MCP servers at every gateway, and no others', async () => {
  const issueServers = () =>
    stack.issueMcp({
      servers: [
        { name: 'http', url: mcpUpstream.url, transport: 'http' },
        { name: 'sse', url: mcpUpstream.sseUrl },
      ],
    });
  const [answer, other] = [await issueServers(), await issueServers()];
  const beside = await listen(urlOf(other, 'http'));
  const streams = await Promise.all(
    ['http', 'sse'].flatMap((name) =>
      [0, 1].map((gateway) => listen(at(stack, gateway, urlOf(answer, name)))),
    ),
  );
  await remove(`sessions/${answer.session_id}`);
  expect(await Promise.all(streams.map(({ over }) => over))).toEqual(['ended', 'ended', 'ended', 'ended']);
  for (const each of mcpUpstream.streams) each.write(eventOf({ still: 'here' }));
  expect(await beside.reached(1)).toEqual([{ still: 'here' }]);
  beside.leave();
});

test('DELETE of a grant cuts a call that has no answer yet, and the error says why', async () => {
  const grant = await issue();
  const before = upstream.seen.length;
  const waiting = call(grant.url, 'silent');
  await eventually(async () => (upstream.seen.length > before ? true : undefined));
  await remove(`grants/${grant.id}`);
  expect(await (await waiting).json()).toMatchObject({ error: { code: 'grant_revoked' } });
});
