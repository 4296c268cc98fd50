import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { expectRealKeyAlone, REAL_KEY } from '../sdk/keys.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import { startSandboxUpstream } from '../sdk/upstreams/sandbox.ts';

const CHAT = '/v1/chat/completions';

describe.skipIf(!hasChromium)('in a browser, on a page of another origin', () => {
  let upstream: PacedUpstream;
  let site: Upstream;
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  /** The methods that the browser sent to the gateway, with preflights, which pages do not see. */
  const methods: string[] = [];
  const record = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    if (request.url?.startsWith('/llm/t/')) methods.push(request.method ?? '');
  };

  beforeAll(async () => {
    upstream = await startSandboxUpstream();
    stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
    site = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>A site</title>');
    });
    browser = await openChromium();
    page = await browser.newPage();
    await page.goto(site.url);
    subscribe('http.server.request.start', record);
  });
  afterAll(async () => {
    unsubscribe('http.server.request.start', record);
    await leaveChromium();
    await stack.close();
    await site.close();
    await upstream.close();
  });

  const issue = async (limits: object = {}) => {
    const { url } = await stack.issue({
      provider: 'openai',
      path: CHAT,
      client_api_key: REAL_KEY,
      ...limits,
    });
    return url;
  };
  /** JSON with an Authorization header, as the SDKs send it: never sent without a preflight. */
  const call = (url: string) =>
    page.evaluate(async (target) => {
      const answer = await fetch(target, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer placeholder-key' },
        body: '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}',
      });
      return {
        status: answer.status,
        usesLeft: answer.headers.get('x-presign-uses-remaining'),
        requestId: answer.headers.get('x-presign-request-id'),
        body: await answer.text(),
      };
    }, url);

  test('a call is preflighted and answered, its headers are readable, and the preflight costs no use', async () => {
    const url = await issue({ max_uses: 2 });
    const first = await call(url);
    expect(first.status).toBe(200);
    expect(first.body).toContain('You said: Hello');
    expect(first.requestId).toMatch(/./);
    expect(methods).toEqual(['OPTIONS', 'POST']);
    expect([first.usesLeft, (await call(url)).usesLeft]).toEqual(['1', '0']);
    // The browser remembers the first preflight.
    expect(methods).toEqual(['OPTIONS', 'POST', 'POST']);
    expect(upstream.seen.map((seen) => seen.method)).toEqual(['POST', 'POST']);
  });

  test('the provider gets neither the key nor the origin of the page', async () => {
    await call(await issue());
    const seen = upstream.seen.at(-1);
    expectRealKeyAlone(seen, 'authorization', `Bearer ${REAL_KEY}`);
    const told = Object.keys(seen?.headers ?? {}).filter((name) =>
      /^(origin|referer|cookie|sec-)/.test(name),
    );
    expect(told).toEqual([]);
  });

  test('the page can read a refusal', async () => {
    const url = await issue({ max_uses: 1 });
    await call(url);
    const { status, body } = await call(url);
    expect(status).toBe(403);
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'uses_exhausted' } });
  });

  test('a stream arrives chunk by chunk', async () => {
    const pace = upstream.pace();
    await page.exposeFunction('takeNext', pace.next);
    const pieces = await page.evaluate(
      async (target) => {
        const { takeNext } = globalThis as unknown as { takeNext: () => Promise<void> };
        const answer = await fetch(target, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer placeholder-key' },
          // Usage is asked for, so that every event that the provider sends reaches the page.
          body: '{"model":"sandbox-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello"}]}',
        });
        const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
        const read: string[] = [];
        for (;;) {
          const next = await reader?.read();
          if (!next || next.done) return read;
          read.push(next.value);
          // Only now may the provider send what follows.
          await takeNext();
        }
      },
      await issue(),
    );
    expect(pieces.length).toBe(pace.sent());
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.at(-1)).toBe('data: [DONE]\n\n');
  });
});

test.skipIf(!hasChromium)(
  'an HTML answer of an upstream runs no script, and has an opaque origin',
  async () => {
    const upstream = await startUpstream((_seen, response) => {
      const headers = {
        'content-type': 'text/html',
        'content-security-policy': "script-src 'unsafe-inline'",
      };
      response.writeHead(200, headers).end('<title>still</title><script>document.title = "ran"</script>');
    });
    const stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
    const browser = await openChromium();
    const page = await browser.newPage();
    const { url } = await stack.issue({
      provider: 'openai',
      path: '/v1/models',
      method: 'GET',
      client_api_key: REAL_KEY,
    });
    const { servers } = await stack.issueMcp({
      servers: [{ name: 'a', url: `${upstream.url}/mcp`, transport: 'http' }],
    });
    // To a browser that names HTML, the gateway answers with its own page for the URL of an MCP server.
    await page.route('**', (route) =>
      route.continue({ headers: { ...route.request().headers(), accept: '*/*' } }),
    );
    for (const address of [upstream.url, url, servers['a']?.url ?? '']) {
      const answer = await page.goto(address);
      expect(await answer?.text()).toContain('still');
      const shown = await page.evaluate('[document.title, globalThis.origin]');
      expect(shown).toEqual(address === upstream.url ? ['ran', new URL(address).origin] : ['still', 'null']);
    }
    await leaveChromium();
    await stack.close();
    await upstream.close();
  },
);
