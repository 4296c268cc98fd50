import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, openSocket, statusOf } from './holder.ts';
import { eventsOf, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

const MB = 1024 * 1024;

let provider: ResponsesProvider;
let serve: ResponsesProvider['serve'];
/** Its peers have as long as a test needs. */
let stack: Stack;
/** The address of a gateway that finds peers soon that are gone. */
let quick: string;
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
  stack = await startStack({
    providers: { openai: { base_url: provider.url } },
    gateway: { socketBounds: { beatMs: 3_600_000 } },
  });
  quick = await stack.addGateway({ socketBounds: { beatMs: 300 } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.serve = serve;
});

const issue = async (more: object = {}) => {
  const ask = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
  const { url, grant_id } = await stack.issue({ ...ask, ...more });
  return { url, quickUrl: url.replace(stack.gatewayUrls[0] ?? '', quick), grant_id };
};
const rowOf = (grantId: string) =>
  eventually(async () => {
    const answer = await fetch(`${stack.issuerUrl}/v1/calls?grant_id=${grantId}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    return ((await answer.json()) as { data: Record<string, unknown>[] }).data[0];
  });
/** Opens a socket, and resolves with both of its ends. */
async function openBoth(url: string) {
  const before = provider.sockets.length;
  const holder = await openSocket(url);
  const { socket } = await eventually(async () => provider.sockets[before]);
  return { holder, upstream: socket };
}

/** Sends so many MB between the beginning and the end of a response. */
const pour =
  (megabytes: number): ResponsesProvider['serve'] =>
  (event, { socket }) => {
    const [created, , last] = eventsOf(event);
    const delta = { type: 'response.output_text.delta', item_id: 'm', delta: 'x'.repeat(MB / 8) };
    const text = JSON.stringify(delta);
    socket.send(JSON.stringify(created));
    for (let i = 0; i < megabytes * 8; i++) socket.send(text);
    socket.send(JSON.stringify(last));
  };

/** Resolves with a figure once it stays the same for two seconds. */
async function settledFigure(read: () => number): Promise<number> {
  let last = { value: Number.NaN, at: 0 };
  return eventually(async () => {
    if (read() !== last.value) last = { value: read(), at: performance.now() };
    return performance.now() - last.at > 2_000 ? last.value : undefined;
  });
}

describe('a holder that does not read', () => {
  test('pauses its provider, and loses nothing when it reads again', async () => {
    const { url, grant_id } = await issue({ cost_limit: 100_000 });
    const { holder, upstream } = await openBoth(url);
    provider.serve = pour(100);
    holder.send(CREATE);
    await holder.next('response.created');
    holder.socket.pause();
    const before = holder.events.length;
    const waiting = await settledFigure(() => upstream.bufferedAmount);
    // The rest is in buffers of the system, and a megabyte in the gateway.
    expect(waiting + (before * MB) / 8).toBeGreaterThan(60 * MB);
    holder.socket.resume();
    await holder.next('response.completed', 60_000);
    expect(holder.events).toHaveLength(100 * 8);
    expect(await rowOf(grant_id)).toMatchObject({ outcome: 'passed', output_tokens: 5 });
    holder.socket.close();
  });

  test('is disconnected after some heartbeats, and its turn is charged what it has used', async () => {
    const { quickUrl, grant_id } = await issue({ cost_limit: 100_000 });
    const { holder, upstream } = await openBoth(quickUrl);
    provider.serve = pour(100);
    holder.send(CREATE);
    await holder.next('response.created');
    holder.socket.pause();
    expect(await rowOf(grant_id)).toMatchObject({ failure: 'holder_left', output_tokens: 5 });
    await eventually(async () => upstream.readyState > 1);
    holder.socket.terminate();
  });
});

describe('a provider that does not read', () => {
  const TURNS = 30;
  const turn = (i: number) => ({ ...CREATE, stream_id: `s${i}`, input: 'x'.repeat(900_000) });

  test('pauses its holder, and gets all turns when it reads again', async () => {
    const { url } = await issue();
    const { holder, upstream } = await openBoth(url);
    upstream.pause();
    for (let i = 0; i < TURNS; i++) holder.send(turn(i));
    const waiting = await settledFigure(() => holder.socket.bufferedAmount);
    expect(waiting).toBeGreaterThan(5 * MB);
    expect((await statusOf(url)).used).toBeLessThan(TURNS);
    upstream.resume();
    for (let i = 0; i < TURNS; i++) await holder.next('response.completed', 60_000);
    expect((await statusOf(url)).used).toBe(TURNS);
    holder.socket.close();
  });

  test('is disconnected after some heartbeats, and its turns cost their hold', async () => {
    const { url, quickUrl } = await issue({ cost_limit: 1_000_000_000 });
    const { holder, upstream } = await openBoth(quickUrl);
    upstream.pause();
    for (let i = 0; i < TURNS; i++) holder.send(turn(i));
    expect(await holder.closed).toMatchObject({ code: 1011 });
    const { spent, used } = await eventually(async () => {
      const status = await statusOf(url);
      return status.held === 0 ? status : undefined;
    });
    expect(used).toBeGreaterThan(0);
    expect(spent).toBeGreaterThan(0);
    upstream.resume();
  });
});
