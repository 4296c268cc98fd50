import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { type ResponsesProvider, startResponsesProvider } from '../sockets/responses-provider.ts';

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
const CREATE = { type: 'response.create', model: 'gpt-4.1-mini', input: 'Hi.', max_output_tokens: 20 };

describe.skipIf(!hasChromium)('the socket of a page of another origin', () => {
  let provider: ResponsesProvider;
  let site: Upstream;
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  let origin: string;

  beforeAll(async () => {
    provider = await startResponsesProvider();
    stack = await startStack({ providers: { openai: { base_url: provider.url } } });
    site = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>A site</title>');
    });
    browser = await openChromium();
    page = await browser.newPage();
    await page.goto(site.url);
    origin = new URL(site.url).origin;
  });
  afterAll(async () => {
    await leaveChromium();
    await stack.close();
    await site.close();
    await provider.close();
  });

  /** The browser's own WebSocket sees these types of events in a turn, and the code with which it closes. */
  const turnOn = (url: string, protocols: readonly string[] = []) =>
    page.evaluate(
      ({ address, offered, event }) =>
        new Promise<{ types: string[]; protocol: string; code: number }>((resolve) => {
          const socket = new WebSocket(address, offered);
          const types: string[] = [];
          socket.onopen = () => socket.send(event);
          socket.onmessage = ({ data }) => {
            const { type } = JSON.parse(data) as { type: string };
            types.push(type);
            if (type === 'response.completed') socket.close(1000);
          };
          socket.onclose = ({ code }) => resolve({ types, protocol: socket.protocol, code });
        }),
      { address: url.replace(/^http/, 'ws'), offered: [...protocols], event: JSON.stringify(CREATE) },
    );

  test('runs a turn, and the provider gets no origin and no cookie', async () => {
    const { url } = await stack.issue(ASK);
    expect(await turnOn(url)).toMatchObject({
      types: expect.arrayContaining(['response.created', 'response.completed']),
      code: 1000,
    });
    const { headers } = provider.sockets.at(-1)?.request ?? {};
    expect(headers).toMatchObject({ authorization: 'Bearer sk-real' });
    for (const name of ['origin', 'cookie', 'referer']) expect(headers).not.toHaveProperty(name);
  });

  test('opens only for a page of a bound origin, and the page can read what is left', async () => {
    const { url } = await stack.issue({ ...ASK, max_uses: 5, bind: { origins: [origin] } });
    expect((await turnOn(url)).code).toBe(1000);
    const left = await page.evaluate(
      async (address) => ((await (await fetch(address)).json()) as { used: number }).used,
      url.replace('/v1/responses', ''),
    );
    expect(left).toBe(1);
    const other = await stack.issue({ ...ASK, bind: { origins: ['https://other.example'] } });
    const sockets = provider.sockets.length;
    expect(await turnOn(other.url)).toEqual({ types: ['error'], protocol: '', code: 4400 });
    expect(provider.sockets).toHaveLength(sockets);
    await eventually(async () => stack.logs.some((line) => line.includes('"code":"origin_not_allowed"')));
  });

  test('may send a key as a subprotocol, as SDKs do, and the provider gets only the real key', async () => {
    const { url } = await stack.issue(ASK);
    // A browser closes a socket whose server chooses none of the protocols that it offers.
    const chosen = await turnOn(url, ['realtime', 'openai-insecure-api-key.sk-placeholder']);
    const { headers } = provider.sockets.at(-1)?.request ?? {};
    expect(headers?.['sec-websocket-protocol']).toBe('realtime');
    expect(chosen).toMatchObject({ protocol: 'realtime', code: 1000 });
    expect(JSON.stringify(headers)).not.toContain('sk-placeholder');
  });
});
