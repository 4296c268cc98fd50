import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { codeOf, openSocket, type RefusedHandshake, statusOf } from './holder.ts';
import { begins, PROTOCOLS, type Served, turn } from './protocols.ts';
import type { Json } from './responses-provider.ts';

describe.each(PROTOCOLS)('a refusal of $name', (protocol) => {
  const { path } = protocol.asked;
  let served: Served;
  let stack: Stack;
  beforeAll(async () => {
    served = await protocol.start();
    stack = await startStack({ providers: { openai: { base_url: served.provider.url } } });
  });
  afterAll(async () => {
    await stack.close();
    await served.provider.close();
  });
  beforeEach(() => {
    served.endAtOnce();
    served.provider.refuse = undefined;
  });

  const urlOf = async (more: object = {}) =>
    (await stack.issue({ ...protocol.asked, client_api_key: 'sk-real', ...more })).url;
  const errorOf = (event: Json) => event.error as Json;

  describe('reaches a page that opens', () => {
    const free = { path: '/v1/models', method: 'GET', sockets: undefined };
    test.each([
      ['another path', () => urlOf(), (url: string) => url.replace(path, '/v1/chat/completions')],
      ['a longer path', () => urlOf(), (url: string) => `${url}/x`],
      ['a path with a slash at its end', () => urlOf(), (url: string) => `${url}/`],
      ['its URL without the path', () => urlOf(), (url: string) => url.replace(path, '')],
      ['a URL for another method', () => urlOf(free), (url: string) => url],
    ])('%s', async (_what, issued, change) => {
      const url = change(await issued());
      const page = await openSocket(url, { headers: { origin: 'https://app.example' } });
      const event = await page.next('error');
      const isFree = url.endsWith('/models');
      const code = isFree ? 'method_not_allowed' : 'path_not_allowed';
      expect(codeOf(event)).toBe(code);
      // The error is written as the API of the URL's own path writes its errors.
      expect(event).toHaveProperty(protocol.name === 'Realtime' && !isFree ? 'event_id' : 'status');
      if (!isFree && !url.endsWith('/')) expect(errorOf(event).message).toContain(`allows ${path}, not `);
      expect(await page.closed).toEqual({ code: 4400, reason: code });
    });
  });

  test('by the provider has one content type, and its body', async () => {
    const body = JSON.stringify({ error: { message: 'No.' } });
    served.provider.refuse = () => ({ status: 403, body });
    const refused: RefusedHandshake = await protocol.open(await urlOf()).then(
      () => expect.unreachable(),
      (error) => error,
    );
    expect(refused).toMatchObject({ status: 403, body });
    expect(refused.headers['content-type']).toBe('application/json');
  });

  test.each([204, 302, 799])(
    'by the provider with status %i, which refuses nothing, is a 502',
    async (status) => {
      served.provider.refuse = () => ({ status, body: '' });
      const open = protocol.open(await urlOf());
      await expect(open).rejects.toMatchObject({ status: 502 });
    },
  );

  test.each(['a,,b', ',', 'a b', '"x"', 'a, a'])(
    'of the subprotocols %j is an error of the gateway, and opens no socket at the provider',
    async (list) => {
      const before = served.provider.sockets.length;
      const refused = await protocol.open(await urlOf(), { 'sec-websocket-protocol': list }).then(
        () => expect.unreachable(),
        (error: RefusedHandshake) => error,
      );
      expect(refused).toMatchObject({ status: 400, code: 'invalid_request' });
      expect(refused.body).toContain('Sec-WebSocket-Protocol');
      expect(served.provider.sockets).toHaveLength(before);
    },
  );

  describe('says in its event how long to wait', () => {
    test('for a rate', async () => {
      const holder = await protocol.open(await urlOf({ calls_per_minute: 1 }));
      expect(await turn(protocol, holder)).toBe('done');
      holder.send(protocol.create());
      const error = errorOf(await holder.next('error'));
      expect(error).toMatchObject({ code: 'rate_limited', retry_after: expect.any(Number) });
      expect(error.retry_after).toBeGreaterThan(0);
      holder.socket.close();
    });

    test('for money that another turn holds, whose amount it does not mistake', async () => {
      const most = await urlOf({ cost_limit: protocol.muchMoney });
      const pending = served.holdBack();
      const first = await protocol.open(most);
      first.send(protocol.create('a'));
      await begins(protocol, first, 'a');
      const { held } = await statusOf(most);
      const costLimit = Math.ceil(held * 1.2);
      const holder = await protocol.open(await urlOf({ cost_limit: costLimit }));
      holder.send(protocol.create('a'));
      await begins(protocol, holder, 'a');
      holder.send(protocol.create('b'));
      const error = errorOf(await holder.next('error'));
      expect(error).toMatchObject({ code: 'cost_held', retry_after: expect.any(Number) });
      expect(error.message).toContain(`hold too much of the ${costLimit} microdollars`);
      for (const end of pending) end();
      for (const { socket } of [first, holder]) socket.close();
    });

    test('and not where waiting does not help', async () => {
      const holder = await protocol.open(await urlOf({ max_uses: 1 }));
      expect(await turn(protocol, holder)).toBe('done');
      holder.send(protocol.create());
      const error = errorOf(await holder.next('error'));
      expect(error).toMatchObject({ code: 'uses_exhausted' });
      expect(error).not.toHaveProperty('retry_after');
      expect(await holder.closed).toMatchObject({ code: 4402 });
    });
  });
});
