import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { codeOf, type RefusedHandshake, statusOf } from './holder.ts';
import { begins, createsOf, PROTOCOLS, type Served } from './protocols.ts';

/** A moment, and much longer than it. */
const SHORT_MS = 1_500;
const MESSAGE_BYTES = 2_000;
const LONG = 'x'.repeat(MESSAGE_BYTES);

describe.each(PROTOCOLS)('$name', (protocol) => {
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
    served.provider.sockets.length = 0;
  });

  type Bounds = Parameters<Stack['addGateway']>[0];
  /** Issues a URL, and leads it to a gateway with these bounds. */
  const urlAt = async (bounds: Bounds, more: object = {}) => {
    const other = await stack.addGateway(bounds);
    const asked = { ...protocol.asked, client_api_key: 'sk-real', cost_limit: protocol.muchMoney, ...more };
    const { url } = await stack.issue(asked);
    return { url: url.replace(stack.gatewayUrls[0] ?? '', other), status: () => statusOf(url) };
  };
  const upstream = () => served.provider.sockets.at(-1)?.socket;

  test.each([
    ['its URL', { perUrl: 1 }, 'rate_limited'],
    ['its account', { perAccount: 1 }, 'rate_limited'],
    ['the gateway', { perGateway: 1 }, 'overloaded'],
  ])('a socket beyond the number of %s is refused until another one closes', async (_of, bounds, code) => {
    const { url } = await urlAt({ socketBounds: bounds });
    const first = await protocol.open(url);
    await expect(protocol.open(url)).rejects.toMatchObject({ code });
    expect(served.provider.sockets).toHaveLength(1);
    first.socket.close();
    await first.closed;
    const second = await eventually(() => protocol.open(url).catch((_: RefusedHandshake) => undefined));
    second.socket.close();
  });

  test('a socket whose time is over closes, and the turn under way is charged its hold', async () => {
    const { url, status } = await urlAt({ upstreamTimeoutMs: SHORT_MS });
    served.holdBack();
    const holder = await protocol.open(url);
    holder.send(protocol.create());
    await begins(protocol, holder);
    const { held } = await status();
    expect(held).toBeGreaterThan(0);
    expect(codeOf(await holder.next('error'))).toBe('upstream_timeout');
    expect(await holder.closed).toMatchObject({ code: 1001 });
    await eventually(async () => (upstream()?.readyState ?? 0) > 1);
    expect(await status()).toMatchObject({ used: 1, spent: held, held: 0 });
  });

  test('an idle socket whose time is over closes on both sides, and costs nothing', async () => {
    const { url, status } = await urlAt({ upstreamTimeoutMs: SHORT_MS });
    const holder = await protocol.open(url);
    expect(await holder.closed).toMatchObject({ code: 1001, reason: 'upstream_timeout' });
    await eventually(async () => (upstream()?.readyState ?? 0) > 1);
    expect(await status()).toMatchObject({ used: 0, spent: 0, held: 0 });
  });

  test('a message of a holder that is too long reaches no provider, and closes the socket with 1009', async () => {
    const { url, status } = await urlAt({ socketBounds: { holderMessageBytes: MESSAGE_BYTES } });
    const holder = await protocol.open(url);
    holder.send(protocol.create(undefined, { instructions: LONG }));
    expect(codeOf(await holder.next('error'))).toBe('body_too_large');
    expect(await holder.closed).toEqual({ code: 1009, reason: 'body_too_large' });
    expect(createsOf(served)).toEqual([]);
    expect(await status()).toMatchObject({ used: 0, spent: 0, held: 0 });
  });

  test('a message of an upstream that is too long closes the socket with 1011, and the turn is charged its hold', async () => {
    const { url, status } = await urlAt({ socketBounds: { upstreamMessageBytes: MESSAGE_BYTES } });
    served.holdBack();
    const holder = await protocol.open(url);
    holder.send(protocol.create());
    await begins(protocol, holder);
    const { held } = await status();
    upstream()?.send(JSON.stringify({ type: 'response.output_text.delta', delta: LONG }));
    expect(codeOf(await holder.next('error'))).toBe('upstream_unreachable');
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await status()).toMatchObject({ used: 1, spent: held, held: 0 });
  });
});
