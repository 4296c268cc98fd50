import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { codeOf, type RefusedHandshake, statusOf } from './holder.ts';
import { begins, createsOf, ends, PROTOCOLS, type Served } from './protocols.ts';
import type { Json } from './responses-provider.ts';

/** The time of a socket, and of a turn. A turn begins in it on a busy machine, too. */
const SOCKET_MS = 3_000;
/** The same for two turns, of which one begins in its second half. */
const LONG_MS = 8_000;
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

  test('a socket whose time is over begins no turn, and closes after the turns under way', async () => {
    const { url, status } = await urlAt({ upstreamTimeoutMs: LONG_MS });
    const pending = served.holdBack();
    const openedAt = Date.now();
    const holder = await protocol.open(url);
    const endsAt = Date.now() + LONG_MS;
    const late = protocol.create('late');
    holder.send(protocol.create('early'));
    await begins(protocol, holder, 'early');
    const hold = (await status()).held;
    await eventually(async () => Date.now() > openedAt + LONG_MS / 2);
    holder.send(late);
    await begins(protocol, holder, 'late');
    await eventually(async () => Date.now() > endsAt);
    // Only a turn that has taken as long as one may is the provider's fault.
    expect(await ends(protocol, holder, 'early')).toBe('upstream_timeout');
    holder.send(protocol.create('later'));
    const refused = await holder.next((event) => codeOf(event) === 'overloaded');
    expect((refused.error as Json).message).toContain('This socket has been open for 8 seconds.');
    pending[1]?.();
    expect(await ends(protocol, holder, 'late')).toBe('done');
    expect(await holder.closed).toEqual({ code: 1001, reason: 'overloaded' });
    await eventually(async () => (upstream()?.readyState ?? 0) > 1);
    expect(createsOf(served)).toHaveLength(2);
    const { used, spent, held } = await status();
    expect({ used, held }).toEqual({ used: 2, held: 0 });
    expect(spent).toBeGreaterThan(hold);
    expect(spent).toBeLessThan(2 * hold);
  });

  test('a turn that takes longer than a call may is charged its hold, and its socket closes', async () => {
    const { url, status } = await urlAt({ upstreamTimeoutMs: SOCKET_MS });
    served.holdBack();
    const holder = await protocol.open(url);
    holder.send(protocol.create());
    await begins(protocol, holder);
    const { held } = await status();
    expect(held).toBeGreaterThan(0);
    expect(codeOf(await holder.next('error'))).toBe('upstream_timeout');
    expect(await holder.closed).toEqual({ code: 1001, reason: 'overloaded' });
    await eventually(async () => (upstream()?.readyState ?? 0) > 1);
    expect(await status()).toMatchObject({ used: 1, spent: held, held: 0 });
  });

  test('an idle socket whose time is over closes on both sides with a refusal of its own, and costs nothing', async () => {
    const { url, status } = await urlAt({ upstreamTimeoutMs: SOCKET_MS });
    const holder = await protocol.open(url);
    const { error } = (await holder.next('error')) as { readonly error: Json };
    expect(error).toMatchObject({
      code: 'overloaded',
      message: 'overloaded: This socket has been open for 3 seconds. Open another one.',
    });
    expect(await holder.closed).toEqual({ code: 1001, reason: 'overloaded' });
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
