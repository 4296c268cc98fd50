import { generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import { connectRedis, type RedisClient } from '@presign/limits';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type HolderSocket, type RefusedHandshake, statusOf } from './holder.ts';
import { begins, ends, PROTOCOLS, type Served } from './protocols.ts';
import type { Json } from './responses-provider.ts';

const ORIGIN = 'https://app.example';

describe.each(PROTOCOLS)('$name', (protocol) => {
  let served: Served;
  let stack: Stack;
  let redis: RedisClient;
  beforeAll(async () => {
    served = await protocol.start();
    stack = await startStack({ providers: { openai: { base_url: served.provider.url } } });
    redis = connectRedis(stack.redisUrl, () => {}, stack.redisTimeouts);
  });
  afterAll(async () => {
    await stack.close();
    redis.disconnect();
    await served.provider.close();
  });
  beforeEach(() => served.endAtOnce());

  /** Issues a URL, and leads it to a gateway of its own. */
  const urlAtOwn = async (changed: Parameters<Stack['addGateway']>[0] = {}) => {
    const other = await stack.addGateway(changed);
    const gateway = stack.gateways.at(-1);
    const asked = { ...protocol.asked, client_api_key: 'sk-real', cost_limit: protocol.muchMoney };
    const { url } = await stack.issue(asked);
    const stop = (graceMs: number) => gateway?.close({ drainMs: 0, graceMs });
    return { url: url.replace(stack.gatewayUrls[0] ?? '', other), stop };
  };
  /** The code and the cause of a close, as the line of the socket has them. */
  const closeOf = ({ headers }: HolderSocket) =>
    eventually(async () => {
      const id = headers['x-presign-request-id'];
      const lines = stack.logs.map((line) => JSON.parse(line) as Json);
      const own = lines.find(({ msg, request_id }) => msg === 'call' && request_id === id);
      return own && [own.close_code, own.close_cause];
    });

  describe('the line of a socket says why it closed', () => {
    test('at the end of the grace of a gateway, whose turns may be sent again', async () => {
      const { url, stop } = await urlAtOwn();
      const pending = served.holdBack();
      const holder = await protocol.open(url);
      holder.send(protocol.create());
      await begins(protocol, holder);
      await eventually(async () => pending.length > 0);
      const stopped = stop(500);
      const { error } = (await holder.next('error')) as { readonly error: Json };
      expect(error).toMatchObject({ code: 'overloaded', retry_after: 1 });
      expect(error.message).toContain('This gateway is closing.');
      expect(await holder.closed).toEqual({ code: 1001, reason: 'overloaded' });
      expect(await closeOf(holder)).toEqual([1001, 'gateway_stopping']);
      await stopped;
    });

    test('when its holder leaves in the last turn', async () => {
      const { url, stop } = await urlAtOwn();
      const pending = served.holdBack();
      const [idle, holder] = [await protocol.open(url), await protocol.open(url)];
      holder.send(protocol.create());
      await begins(protocol, holder);
      const stopped = stop(60_000);
      expect(await idle.closed).toMatchObject({ code: 1001 });
      holder.socket.close(1000);
      await holder.closed;
      // One event loop runs all of them, and has read the end of that connection before it has this answer.
      await statusOf(url.replace(new URL(url).origin, stack.gatewayUrls[0] ?? ''));
      pending[0]?.();
      expect(await closeOf(holder)).toEqual([1000, 'holder']);
      expect(await closeOf(idle)).toEqual([1001, 'gateway_stopping']);
      await stopped;
    });

    test('when its time is over, and when the key of its URL was rotated', async () => {
      const old = await protocol.open((await urlAtOwn({ upstreamTimeoutMs: 1_000 })).url);
      expect(await closeOf(old)).toEqual([1001, 'time_over']);
      const headers = { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' };
      const ask = (path: string, body: object) =>
        fetch(`${stack.issuerUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      const made = await ask('/v1/virtual-keys', { name: 'k', provider: 'openai', key: 'sk-real' });
      const { id } = (await made.json()) as { readonly id: string };
      const { url } = await stack.issue({ ...protocol.asked, virtual_key: id });
      const holder = await protocol.open(url);
      expect((await ask(`/v1/virtual-keys/${id}/rotate`, { key: 'sk-new' })).status).toBe(200);
      holder.send(protocol.create());
      expect(await ends(protocol, holder)).toBe('overloaded');
      expect(await closeOf(holder)).toEqual([1001, 'key_rotated']);
    });
  });

  /** A Redis that does not answer where a handshake reads the key of its provider. */
  const withoutKeys = () =>
    new Proxy(redis, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const isOfKey = name === 'hmget' && String(args[0]).includes(':credential:');
          return isOfKey ? Promise.reject(new Error('no answer')) : value.apply(target, args);
        };
      },
    });

  test.each<[string, number, string | undefined, () => Parameters<Stack['addGateway']>[0]]>([
    ['limits_unavailable', 503, '1', () => ({ redis: withoutKeys() })],
    [
      'internal_error',
      500,
      undefined,
      () => ({ encryptionKeys: readEncryptionKeys(generateEncryptionKey('other')) }),
    ],
  ])(
    'a handshake that fails with %s may pass later, which a page reads from its close',
    async (code, status, retryAfter, changed) => {
      const { url } = await urlAtOwn(changed());
      // Redis has the URL, and this gateway reads its key there.
      const known = await protocol.open(url.replace(new URL(url).origin, stack.gatewayUrls[0] ?? ''));
      known.socket.close();
      const refused = await protocol.open(url).catch((error: RefusedHandshake) => error);
      expect(refused).toMatchObject({ status, code });
      expect(refused.headers['retry-after']).toBe(retryAfter);
      const page = await protocol.open(url, { origin: ORIGIN });
      expect(await page.closed).toEqual({ code: 1013, reason: code });
    },
  );
});
