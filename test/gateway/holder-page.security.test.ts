import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { revokeGrant } from '@presign/limits';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { grantIn, tokenIn, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';
import { codesIn, textIn } from './holder-page.ts';
import { OK, type Providers, startProviders } from './providers.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const PATH = '/v1/chat/completions';
/** A name that would run, if a page had it as it is. */
const HOSTILE = `</code><script>alert(1)</script>"'><img/src=x/onerror=alert(1)>`;

let providers: Providers;
let mcp: McpUpstream;
let stack: Stack;
let aheadMs = 0;

beforeAll(async () => {
  [providers, mcp] = await Promise.all([startProviders(), startMcpUpstream()]);
  stack = await startStack({ providers: providers.file, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(async () => {
  await stack.close();
  await providers.close();
  await mcp.close();
});
beforeEach(() => {
  aheadMs = 0;
  providers.answer = OK;
});

const issueWhole = async (policy: object = {}) =>
  (await stack.issue({ provider: 'openai', path: PATH, client_api_key: 'sk-real', ...policy })).url;
const issue = async (policy: object = {}) => (await issueWhole(policy)).replace(PATH, '');
const issueMcp = (policy: object = {}, name = 'files') =>
  stack.issueMcp({ servers: [{ name, url: mcp.url, transport: 'http', tools: ['add'] }], ...policy });

async function open(url: string, accept?: string, method: 'GET' | 'HEAD' = 'GET') {
  const answer = await request(url, { method, headers: accept === undefined ? {} : { accept } });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

/** The URLs that have a page, and a token that must not be in it. */
async function urls(): Promise<[kind: string, url: string, token: string][]> {
  const [llm, whole] = [await issue(), await issueWhole()];
  const bundle = await issueMcp();
  const server = urlOf(bundle, 'files');
  return [
    ['llm', llm, llm.slice(llm.lastIndexOf('/') + 1)],
    ['llm as issued', whole, whole.replace(PATH, '').slice(whole.indexOf('/llm/t/') + '/llm/t/'.length)],
    ['bundle', bundle.bundle_url, bundle.bundle_token],
    ['server', server, tokenIn(server)],
  ];
}

describe('content negotiation of the status page', () => {
  const PROGRAMS = [
    undefined,
    '*/*',
    'application/json',
    'application/json, text/plain, */*',
    'application/json, text/html',
    'text/*, */*',
    'text/html;q=0',
    'text/plain',
    'text/html;q=0.5, application/json;q=0.9',
  ];

  test.each(PROGRAMS)('Accept %s gets the JSON of a URL and of a bundle', async (accept) => {
    const bundle = await issueMcp();
    for (const url of [await issue(), bundle.bundle_url]) {
      const { status, headers, text } = await open(url, accept);
      expect([status, headers['content-type']]).toEqual([200, 'application/json']);
      expect(JSON.parse(text)).toEqual(expect.any(Object));
    }
  });

  test.each([BROWSER, 'text/html', 'TEXT/HTML, */*;q=0.1', 'text/html;level=1'])(
    'Accept %s gets a page, and HEAD its headers alone',
    async (accept) => {
      for (const [, url] of await urls()) {
        const page = await open(url, accept);
        expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
        expect(page.text).toMatch(/^<!doctype html>/);
        const head = await open(url, accept, 'HEAD');
        expect([head.status, head.headers['content-type'], head.text]).toEqual([
          200,
          'text/html; charset=utf-8',
          '',
        ]);
      }
    },
  );

  test('a stream of an MCP client reaches its server, and so does a POST of a browser', async () => {
    const url = urlOf(await issueMcp(), 'files');
    const before = mcp.arrived.length;
    await open(url, 'text/html');
    expect(mcp.arrived.length).toBe(before);
    const asked = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const headers = {
      accept: `${BROWSER}, application/json, text/event-stream`,
      'content-type': 'application/json',
    };
    const answer = await request(url, { method: 'POST', headers, body: JSON.stringify(asked) });
    await answer.body.dump();
    expect(mcp.arrived.length).toBe(before + 1);
    const stream = await request(url, { headers: { accept: 'application/json, text/event-stream' } });
    stream.body.destroy();
    expect(stream.headers['content-type']).not.toContain('html');
  });

  test('a bundle format is JSON in a browser, too', async () => {
    const { bundle_url: url } = await issueMcp();
    const { headers, text } = await open(`${url}?format=cursor`, BROWSER);
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(text)).toHaveProperty('mcpServers.files.url');
  });
});

describe('a browser that opens an issued URL', () => {
  test.each([PATH, `${PATH}?a=1`, `${PATH}/`, '/v1/models', '/', '/a//b', '/%00%0d%0a'])(
    'gets the page of the URL at %s',
    async (path) => {
      const url = await issue({ max_uses: 3 });
      const { status, headers, text } = await open(`${url}${path}`, BROWSER);
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      expect(textIn(text)).toContain('3 of 3 left');
      expect(codesIn(text)).toEqual(codesIn((await open(url, BROWSER)).text));
    },
  );

  test('makes the call that a URL for GET allows, and gets the page elsewhere', async () => {
    const url = (await issueWhole({ path: '/v1/models', method: 'GET' })).replace('/v1/models', '');
    const before = providers.seen.length;
    expect((await open(`${url}/v1/models`, BROWSER)).headers['content-type']).toBe('application/json');
    expect(providers.seen.length).toBe(before + 1);
    expect((await open(`${url}/v1/files`, BROWSER)).headers['content-type']).toContain('text/html');
    expect(providers.seen.length).toBe(before + 1);
  });

  test('does not change the refusal of a program that sends GET', async () => {
    const answer = await open(await issueWhole(), 'application/json, text/html');
    expect([answer.status, answer.headers['x-presign-code']]).toEqual([403, 'method_not_allowed']);
    expect(answer.headers['content-type']).toBe('application/json');
  });

  test('gets no page for a POST', async () => {
    const answer = await request(await issueWhole(), {
      method: 'POST',
      headers: { accept: BROWSER, 'content-type': 'application/json' },
      body: '{"model":"gpt-4o-mini","max_tokens":1,"messages":[]}',
    });
    await answer.body.dump();
    expect(answer.headers['content-type']).not.toContain('html');
  });
});

describe('the page', () => {
  test('loads nothing, runs nothing, and is neither stored, indexed nor framed', async () => {
    for (const [kind, url] of await urls()) {
      const { headers, text } = await open(url, BROWSER);
      const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? '';
      const hash = createHash('sha256').update(style).digest('base64');
      expect(headers['content-security-policy'], kind).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox`,
      );
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-robots-tag': 'noindex, nofollow',
        'cross-origin-opener-policy': 'same-origin',
      });
      expect(headers['set-cookie']).toBeUndefined();
      expect(text).not.toMatch(
        /<(script|img|link|iframe|object|embed|form|base)\b|\son\w+=|\ssrc=|https?:\/\//i,
      );
      expect(text.length).toBeLessThan(12_000);
    }
  });

  test('contains no token and no secret', async () => {
    for (const [kind, url, token] of await urls()) {
      const { text } = await open(url, BROWSER);
      expect(text, kind).not.toContain(token);
      expect(text, kind).not.toMatch(/v4\.public|sk-real/);
    }
  });

  test('says what is allowed, what is left and when the URL ends, and costs no use', async () => {
    const url = await issue({
      max_uses: 3,
      cost_limit: 50_000,
      calls_per_minute: 7,
      models: ['gpt-4o-mini'],
      expires_in: 600,
    });
    for (let i = 0; i < 4; i++) {
      const shown = textIn((await open(url, BROWSER)).text);
      expect(shown).toContain('3 of 3 left');
      expect(shown).toContain('$0.05 of $0.05 left');
      expect(shown).toContain('7 a minute');
      expect(shown).toContain(`POST ${PATH}`);
      expect(shown).toContain('gpt-4o-mini');
      expect(shown).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    }
    const status = JSON.parse((await open(url)).text) as { used: number };
    expect(status.used).toBe(0);
    await request(`${url}${PATH}`, {
      method: 'POST',
      body: '{"model":"gpt-4o-mini","max_tokens":1,"messages":[]}',
    }).then(({ body }) => body.dump());
    expect(textIn((await open(url, BROWSER)).text)).toContain('2 of 3 left');
  });

  test('states its conditions in words', async () => {
    const url = await issue({
      ...{
        max_body_bytes: 2_000,
        allowed_fields: ['model', 'messages'],
        sockets: true,
        path: '/v1/responses',
      },
      bind: { ip_ranges: ['127.0.0.0/8'] },
    });
    const shown = textIn((await open(url, BROWSER)).text);
    for (const words of ['at most 2,000 bytes', 'model, messages', 'as a WebSocket', '127.0.0.0/8'])
      expect(shown).toContain(words);
  });

  test.each([
    ['openai', PATH, '"model":"gpt-5.4-mini"'],
    ['anthropic', '/v1/messages', '"model":"claude-haiku-4-5"'],
  ])('of %s for any model has a program with a real model', async (provider, path, model) => {
    const url = (await issueWhole({ provider, path })).replace(path, '');
    const [curl] = codesIn((await open(url, BROWSER)).text);
    expect(curl).toContain(model);
  });

  test('of a bundle and of its server show the same remaining limits', async () => {
    const bundle = await issueMcp({ max_uses: 5 });
    for (const url of [bundle.bundle_url, urlOf(bundle, 'files')])
      expect(textIn((await open(url, BROWSER)).text)).toContain('5 of 5 left');
    const server = textIn((await open(urlOf(bundle, 'files'), BROWSER)).text);
    expect(server).toContain('add');
    expect(server).toContain(new URL(mcp.url).host);
  });
});

describe('text of other people', () => {
  test('is escaped: names of models, servers and tools', async () => {
    const models = await issue({
      models: [HOSTILE],
      metadata: { note: 'own-note' },
      external_user: 'own-user',
    });
    const servers = [{ name: HOSTILE, url: mcp.url, transport: 'http', tools: [HOSTILE] }];
    const bundle = await stack.issueMcp({ servers });
    for (const url of [models, bundle.bundle_url, urlOf(bundle, HOSTILE)]) {
      const { status, text } = await open(url, BROWSER);
      expect(status).toBe(200);
      expect(text).not.toMatch(/<script|<img/i);
      expect(textIn(text)).toContain('<script>alert(1)</script>');
    }
    // The issuer's own notes about a holder are not for the holder.
    expect((await open(models, BROWSER)).text).not.toMatch(/own-(note|user)/);
  });

  test('runs no command when a reader pastes an example', async () => {
    const model = `';echo${'$'}(id);'x`;
    const [curl = ''] = codesIn((await open(await issue({ models: [model] }), BROWSER)).text);
    const script = `curl() { printf '%s\\n' "$@"; }\n${curl}`;
    const printed = execFileSync('sh', ['-c', script], {
      encoding: 'utf8',
      env: { PRESIGN_URL: 'http://u' },
    });
    expect(printed.split('\n')).toEqual([
      `http://u${PATH}`,
      '-H',
      'Content-Type: application/json',
      '-d',
      JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
      '',
    ]);
  });
});

describe('a refused URL', () => {
  /** A page has the status of the JSON, and its code. */
  async function expectRefused(url: string, code: string): Promise<void> {
    const [json, page] = [await open(url), await open(url, BROWSER)];
    expect([page.status, page.headers['x-presign-code']]).toEqual([json.status, code]);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.headers['cache-control']).toBe('no-store');
    expect(page.headers['www-authenticate']).toBeUndefined();
    expect(textIn(page.text)).toContain(code);
  }

  test('is refused on a page with the status and code of the JSON', async () => {
    for (const path of ['', PATH])
      await expectRefused(`${stack.gatewayUrls[0]}/llm/t/v4.public.none${path}`, 'token_invalid');
    await expectRefused(`${stack.gatewayUrls[0]}/mcp/bundle/v4.public.none`, 'token_invalid');
    const [url, bundle] = [await issue({ expires_in: 600 }), await issueMcp({ expires_in: 600 })];
    const revoked = await issueMcp();
    await revokeGrant(stack.redis, grantIn(revoked.bundle_token));
    await expectRefused(revoked.bundle_url, 'grant_revoked');
    aheadMs = 700_000;
    await expectRefused(url, 'token_expired');
    await expectRefused(`${url}${PATH}`, 'token_expired');
    await expectRefused(bundle.bundle_url, 'token_expired');
  });

  test('of an MCP server never gets 401, so that no client starts a login', async () => {
    const url = urlOf(await issueMcp({ expires_in: 600 }), 'files');
    aheadMs = 700_000;
    expect((await open(url, BROWSER)).status).toBe(403);
    const other = url.replace(/url=[^&]*/, `url=${encodeURIComponent('http://127.0.0.1:1/')}`);
    expect((await open(other, BROWSER)).status).toBe(403);
  });

  test('that is bound to an origin has no page for a browser that opens it', async () => {
    await expectRefused(await issue({ bind: { origins: ['https://app.example'] } }), 'origin_not_allowed');
  });

  test('cannot show endless pages: they count as free requests', async () => {
    const url = await issue();
    const statuses = new Set<number>();
    for (let i = 0; i < 100 && !statuses.has(429); i++) {
      const asked = Array.from({ length: 50 }, (_, j) => open(url, j % 2 ? BROWSER : undefined));
      for (const { status } of await Promise.all(asked)) statuses.add(status);
    }
    expect(statuses).toContain(429);
  });
});

test('no log line has a token of a page', async () => {
  const opened = await urls();
  for (const [, url] of opened) await open(url, BROWSER);
  const lines = stack.logs.join('\n');
  for (const [, , token] of opened) expect(lines).not.toContain(token);
});
