import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, codeOf, openSocket, statusOf } from './holder.ts';
import { eventsOf, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

/** Peers that are gone are found after two to three beats. */
const BEAT_MS = 300;

let provider: ResponsesProvider;
let toProvider: Tunnel;
let toGateway: Tunnel;
let stack: Stack;
let serve: ResponsesProvider['serve'];
/** Ends the response under way. */
let end = () => {};
const holdBack: ResponsesProvider['serve'] = (event, { socket }) => {
  const [created, ...rest] = eventsOf(event);
  socket.send(JSON.stringify(created));
  end = () => {
    for (const each of rest) socket.send(JSON.stringify(each));
  };
};
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
});
afterAll(() => provider.close());
beforeEach(async () => {
  provider.serve = serve;
  provider.sockets.length = 0;
  toProvider = await openTunnel(Number(new URL(provider.url).port));
  stack = await startStack({
    providers: { openai: { base_url: `http://127.0.0.1:${toProvider.port}` } },
    gateway: { socketBounds: { beatMs: BEAT_MS } },
  });
  toGateway = await openTunnel(Number(new URL(stack.gatewayUrls[0] ?? '').port));
  return async () => {
    for (const each of [toGateway, toProvider]) each.close();
    await stack.close();
  };
});

const issue = async (more: object = {}) => {
  const ask = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
  const { url, grant_id } = await stack.issue({ ...ask, ...more });
  const far = Object.assign(new URL(url), { port: String(toGateway.port) }).href;
  return { url, far, grant_id };
};
const rowOf = (grantId: string) =>
  eventually(async () => {
    const answer = await fetch(`${stack.issuerUrl}/v1/calls?grant_id=${grantId}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    return ((await answer.json()) as { data: Record<string, unknown>[] }).data[0];
  });
const isGone = () => (provider.sockets[0]?.socket.readyState ?? 0) > 1;

describe('a peer that vanishes without closing', () => {
  test('as a holder: its turn is charged what it has used, and its place becomes free', async () => {
    const { url, far, grant_id } = await issue({ cost_limit: 100_000, concurrent_calls: 1 });
    provider.serve = holdBack;
    const holder = await openSocket(far);
    holder.send(CREATE);
    await holder.next('response.created');
    toGateway.silence();
    // The gateway ends its side of the line, and awaits the turn.
    await holder.closed;
    expect(isGone()).toBe(false);
    end();
    expect(await rowOf(grant_id)).toMatchObject({ failure: 'holder_left', output_tokens: 5 });
    await eventually(async () => isGone());
    expect((await statusOf(url)).held).toBe(0);
    provider.serve = serve;
    const again = await eventually(() => openSocket(url).catch(() => undefined));
    expect(codeOf(await again.turn())).toBe('response.completed');
    again.socket.close();
  });

  test('as a holder without a turn: the socket of its provider ends', async () => {
    await openSocket((await issue()).far);
    toGateway.silence();
    await eventually(async () => isGone());
  });

  test('as a provider: the turn costs its hold, and the holder is notified', async () => {
    const { url } = await issue({ cost_limit: 100_000 });
    provider.serve = holdBack;
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    const { held } = await statusOf(url);
    toProvider.silence();
    expect(codeOf(await holder.next('error', 60_000))).toBe('upstream_unreachable');
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
  });

  test('as a provider without a turn: the socket closes', async () => {
    const holder = await openSocket((await issue()).url);
    toProvider.silence();
    expect(await holder.closed).toMatchObject({ code: 1011 });
  });

  test('a peer that answers pings stays connected', async () => {
    const holder = await openSocket((await issue()).far);
    let pings = 0;
    holder.socket.on('ping', () => pings++);
    await eventually(async () => pings > 6);
    expect(codeOf(await holder.turn())).toBe('response.completed');
    holder.socket.close();
  });
});
