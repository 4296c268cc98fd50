import { MCP_TOOLS } from '@presign/client';
import { revokeGrant } from '@presign/limits';
import type { McpPresignAnswer } from '@presign/schema';
import { grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, grantIn, ledgerOf, outcomes, post, send, tokenIn, toolCall, urlOf } from './holder.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
let aheadMs = 0;

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(() => {
  aheadMs = 0;
});

const issue = (policy: object = {}) =>
  stack.issueMcp({
    servers: [
      { name: 'files & more', url: upstream.url, transport: 'http' },
      { name: 'constructor', url: upstream.sseUrl },
    ],
    ...policy,
  });
const revoke = async (token: string) => {
  const grant = grantIn(token);
  await stack.db.update(grants).set({ revokedAt: new Date() }).where(eq(grants.id, grant.id));
  await revokeGrant(stack.redis, grant);
};
const get = (answer: McpPresignAnswer, query = '', gateway = 0) =>
  send(at(stack, gateway, answer.bundle_url) + query, 'GET');
const messageOf = (text: string) =>
  (JSON.parse(text) as { error: { code: string; param: string; message: string } }).error;

test('every gateway returns the issued document, any number of times', async () => {
  const answer = await issue({ max_uses: 1, cost_limit: 0 });
  for (let i = 0; i < 6; i++) {
    const heard = await get(answer, '', i % 2);
    expect(heard.status).toBe(200);
    expect(JSON.parse(heard.text)).toEqual({ mcpServers: answer.servers });
    expect(Object.keys(JSON.parse(heard.text))).toEqual(['mcpServers']);
    expect(heard.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'content-security-policy': 'sandbox',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
  }
  expect(answer.servers).toEqual({
    'files & more': { url: urlOf(answer, 'files & more'), transport: 'http' },
    constructor: { url: urlOf(answer, 'constructor'), transport: 'sse' },
  });
  expect(await ledgerOf(stack, answer)).toEqual([]);
  expect(upstream.arrived).toEqual([]);
});

test('its URLs are those of the answer, and work', async () => {
  const answer = await issue();
  const { mcpServers } = JSON.parse((await get(answer)).text) as {
    mcpServers: Record<string, { url: string }>;
  };
  const heard = await post(mcpServers['files & more']?.url ?? '', ask('initialize'));
  expect(outcomes(heard)).toEqual(['ran']);
});

test('each format fits its client, and the error names an unknown one', async () => {
  const answer = await issue();
  const under = { 'claude-code': 'mcpServers', 'claude-desktop': 'mcpServers', cursor: 'mcpServers' };
  for (const [format, name] of Object.entries({
    ...under,
    windsurf: 'mcpServers',
    cline: 'mcpServers',
    'gemini-cli': 'mcpServers',
    vscode: 'servers',
  })) {
    const heard = await get(answer, `?format=${format}`);
    const body = JSON.parse(heard.text) as Record<string, Record<string, object>>;
    expect([format, heard.status, ...Object.keys(body)]).toEqual([format, 200, name]);
    expect(Object.keys(body[name] ?? {})).toEqual(['files & more', 'constructor']);
    expect(heard.headers['cache-control']).toBe('no-store');
    for (const [each, { url }] of Object.entries(answer.servers)) {
      expect(JSON.stringify(body[name]?.[each])).toContain(url);
    }
  }
  for (const format of ['', 'emacs', '__proto__', 'constructor']) {
    const heard = await get(answer, `?format=${format}`);
    expect([format, heard.status]).toEqual([format, 400]);
    expect(messageOf(heard.text)).toMatchObject({ code: 'invalid_request', param: 'format' });
  }
});

test('the client package configures servers for every client that has a format', async () => {
  const { message } = messageOf((await get(await issue(), '?format=none')).text);
  const formats = message.match(/[a-z-]+(?=[,.])/g);
  expect([...MCP_TOOLS.keys()].sort()).toEqual(formats?.sort());
});

test('the format of Codex is TOML that names both servers', async () => {
  const heard = await get(await issue(), '?format=codex');
  expect(heard.headers['content-type']).toBe('application/toml');
  expect(heard.headers['cache-control']).toBe('no-store');
  expect(heard.text.match(/^\[.*\]$/gm)).toEqual([
    '[mcp_servers."files & more"]',
    '[mcp_servers."constructor"]',
  ]);
});

test('the format of Pydantic AI has a path that selects the older transport, and the path works', async () => {
  const heard = await get(await issue(), '?format=pydantic-ai');
  const { mcpServers } = JSON.parse(heard.text) as { mcpServers: Record<string, { url: string }> };
  const paths = Object.values(mcpServers).map(({ url }) => new URL(url).pathname);
  expect(paths).toEqual(['/mcp/mcp', '/mcp/sse']);
  for (const { url } of Object.values(mcpServers)) {
    expect(outcomes(await post(url, ask('initialize')))).toEqual(['ran']);
  }
});

test('after revocation every gateway answers 403, with nothing that looks like a login', async () => {
  const answer = await issue();
  expect((await get(answer)).status).toBe(200);
  await revoke(answer.bundle_token);
  for (const gateway of [0, 1]) {
    const heard = await get(answer, '', gateway);
    expect([heard.status, messageOf(heard.text).code]).toEqual([403, 'grant_revoked']);
    expect(heard.headers['www-authenticate']).toBeUndefined();
    expect(heard.text).not.toContain('v4.public');
  }
});

test('the document stays available after one of its servers is revoked', async () => {
  const answer = await issue();
  await revoke(tokenIn(urlOf(answer, 'constructor')));
  expect((await get(answer)).status).toBe(200);
  expect(outcomes(await post(urlOf(answer, 'files & more'), toolCall('run')))).toEqual(['ran']);
});

test('a gateway answers 403 after expiry', async () => {
  const answer = await issue({ expires_in: 60 });
  expect((await get(answer)).status).toBe(200);
  aheadMs = 60_000;
  const heard = await get(answer);
  expect([heard.status, messageOf(heard.text).code, heard.headers['www-authenticate']]).toEqual([
    403,
    'token_expired',
    undefined,
  ]);
});

test('a HEAD is answered like a GET without the document, and a POST with the advice to use GET', async () => {
  const answer = await issue();
  const head = await send(answer.bundle_url, 'HEAD');
  expect([head.status, head.text, head.headers['cache-control']]).toEqual([200, '', 'no-store']);
  const posted = await send(answer.bundle_url, 'POST');
  expect([posted.status, messageOf(posted.text).code]).toEqual([403, 'method_not_allowed']);
  expect(posted.headers.allow).toBe('GET, HEAD');
});

test('a browser may use bundle and servers from any page, and a preflight costs nothing', async () => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'files & more');
  const asked = 'authorization, content-type, mcp-protocol-version, mcp-session-id, last-event-id';
  for (const [target, method] of [
    [url, 'POST'],
    [url, 'GET'],
    [url, 'DELETE'],
    [answer.bundle_url, 'GET'],
  ] as const) {
    const { status, headers } = await send(target, 'OPTIONS', {
      origin: 'https://page.example',
      'access-control-request-method': method,
      'access-control-request-headers': asked,
    });
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': method,
      'access-control-allow-headers': asked,
    });
  }
  const before = upstream.arrived.length;
  upstream.behaves = (_arrived, response) => {
    response.setHeader('access-control-allow-origin', 'https://theirs.example');
    response.setHeader('access-control-allow-credentials', 'true');
    return false;
  };
  const ran = await post(url, toolCall('run'), { origin: 'https://page.example' });
  const refused = await post(url, toolCall('run'));
  expect([...outcomes(ran), ...outcomes(refused)]).toEqual(['ran', 'uses_exhausted']);
  expect(upstream.arrived).toHaveLength(before + 1);
  for (const { headers } of [ran, refused]) {
    expect(headers['access-control-allow-origin']).toBe('*');
    expect(headers['access-control-allow-credentials']).toBeUndefined();
    const exposed = String(headers['access-control-expose-headers']).split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining(['mcp-session-id', 'mcp-protocol-version', 'x-request-id', 'retry-after']),
    );
  }
  expect(ran.headers).toMatchObject({ 'x-presign-uses-remaining': '0', 'x-presign-cost': '1000' });
});
