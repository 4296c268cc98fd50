import { get } from 'node:http';
import { revokeGrant } from '@presign/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { grantIn } from '../mcp/holder.ts';
import { openSocket, type RefusedHandshake } from './holder.ts';
import { type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

const ORIGIN = 'https://app.example';
const PER_URL = 3;

let provider: ResponsesProvider;
let stack: Stack;
let aheadMs = 0;
beforeAll(async () => {
  provider = await startResponsesProvider();
  stack = await startStack({
    providers: { openai: { base_url: provider.url } },
    gateway: { now: () => Date.now() + aheadMs, socketBounds: { perUrl: PER_URL } },
  });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

const issue = async (more: object = {}) => {
  const asked = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
  return (await stack.issue({ ...asked, ...more })).url;
};
const fromPage = (url: string, protocols: string[] = []) =>
  openSocket(url, { headers: { origin: ORIGIN }, protocols });
const byHttp = (url: string, headers = {}) =>
  openSocket(url, { headers }).then(
    () => undefined,
    ({ status, headers: answered }: RefusedHandshake) => [status, answered['x-presign-code']],
  );

/** The refusals of a handshake: its URL, its code, and the codes of the socket and of HTTP. */
const REFUSALS: readonly [code: string, socket: number, http: number, url: () => Promise<string>][] = [
  ['sockets_not_allowed', 4400, 426, () => issue({ sockets: undefined })],
  ['origin_not_allowed', 4400, 403, () => issue({ bind: { origins: ['https://other.example'] } })],
  [
    'grant_revoked',
    4403,
    403,
    async () => {
      const url = await issue();
      await revokeGrant(stack.redis, grantIn(url.slice(url.indexOf('v4.public'), url.indexOf('/v1/'))));
      return url;
    },
  ],
  [
    'uses_exhausted',
    4402,
    403,
    async () => {
      const url = await issue({ max_uses: 1 });
      const { turn, socket } = await openSocket(url);
      await turn();
      socket.close();
      return url;
    },
  ],
];

describe('a refused handshake of a page', () => {
  test.each(REFUSALS)(
    'with %s is accepted, gets the reason, and is closed',
    async (code, socket, http, urlOf) => {
      const url = await urlOf();
      const opened = provider.sockets.length;
      if (code !== 'origin_not_allowed') expect(await byHttp(url)).toEqual([http, code]);
      const page = await fromPage(url, ['realtime', 'openai-insecure-api-key.x']);
      expect(await page.next()).toMatchObject({ type: 'error', error: { code } });
      expect(page.headers['sec-websocket-protocol']).toBe('realtime');
      expect(await page.closed).toEqual({ code: socket, reason: code });
      expect(provider.sockets).toHaveLength(opened);
    },
  );

  test('because its URL has expired gets that reason', async () => {
    const url = await issue({ expires_in: 60 });
    aheadMs = 61_000;
    try {
      const page = await fromPage(url);
      expect(await page.next()).toMatchObject({ error: { code: 'token_expired' } });
      expect(await page.closed).toEqual({ code: 4401, reason: 'token_expired' });
    } finally {
      aheadMs = 0;
    }
  });

  test('by the provider: the page gets the provider’s status', async () => {
    provider.refuse = () => ({ status: 401, body: '{"error":"sk-real"}' });
    const page = await fromPage(await issue());
    provider.refuse = undefined;
    const { error } = (await page.next()) as { error: { message: string } };
    expect(error.message).toContain('status 401');
    expect(JSON.stringify(page.events)).not.toContain('sk-real');
    expect((await page.closed).code).toBe(4400);
  });

  test('for a forged URL is answered over HTTP, so that a request without a valid token opens no socket', async () => {
    const url = (await issue()).replace(/v4\.public\.[^/]+/, 'v4.public.none');
    expect(await byHttp(url, { origin: ORIGIN })).toEqual([401, 'token_invalid']);
  });

  test('because its URL has its maximum of sockets can be retried', async () => {
    const url = await issue();
    const open = await Promise.all(Array.from({ length: PER_URL }, () => openSocket(url)));
    const page = await fromPage(url);
    expect(await page.next()).toMatchObject({ error: { code: 'rate_limited' } });
    expect(await page.closed).toEqual({ code: 1013, reason: 'rate_limited' });
    for (const { socket } of open) socket.terminate();
  });

  test('and malformed is answered over HTTP', async () => {
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { origin: ORIGIN, connection: 'Upgrade', upgrade: 'websocket' };
      const more = { 'sec-websocket-version': '8', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
      void issue().then((url) =>
        get(url, { headers: { ...headers, ...more } }, ({ statusCode }) => resolve(statusCode)).on(
          'error',
          reject,
        ),
      );
    });
    expect(answer).toBe(400);
  });

  test('frees its place even if the page does not answer', async () => {
    const url = await issue({ sockets: undefined });
    for (let i = 0; i < 10; i++) {
      const { socket } = await eventually(() => fromPage(url).catch(() => undefined));
      socket.pause();
    }
  });

  test('sends nothing to the provider, even if the page keeps sending', async () => {
    const url = await issue({ sockets: undefined });
    const { socket, closed } = await openSocket(url, { headers: { origin: ORIGIN } });
    for (let i = 0; i < 1_000 && socket.readyState === 1; i++) socket.send('{}');
    await closed;
    expect(provider.frames()).toEqual(provider.frames().filter(({ type }) => type === 'response.create'));
  });
});
