import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Driven, drive, type Generation } from './clients-drive.ts';
import { type HeldServer, startHeldServer } from './clients-held-server.ts';
import { openRoad } from './clients-road.ts';
import { callTool, textOf } from './clients-scenario.ts';
import { at, toolCall, urlOf } from './holder.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(() => stack?.close());

/** A client of a URL with one call at once, over two gateways in turn. */
async function driveOne(server: HeldServer, generation: Generation) {
  const servers = [{ name: 'a', url: server.url, transport: 'http' }];
  const url = urlOf(await stack.issueMcp({ servers, concurrent_calls: 1 }), 'a');
  const driven = await drive({ generation, transport: 'http', url, road: openRoad(stack.gatewayUrls) });
  return { driven, url };
}
const isRefused = (work: Promise<unknown>) =>
  work.then(
    () => false,
    () => true,
  );
const runsAnother = (driven: Driven) =>
  eventually(async () => (await callTool(driven, 'other').then(textOf, () => '')) === 'other');

/** Gives a call up once its server has it. */
async function cancels(driven: Driven, { called }: HeldServer) {
  const abort = new AbortController();
  const work = callTool(driven, 'wait', {}, { signal: abort.signal });
  await Promise.race([work, eventually(async () => called.includes('wait'))]);
  abort.abort('called off');
  return work;
}

describe.each([
  ['v1', 'streams', false],
  ['v1', 'JSON', true],
  ['v2', 'streams', false],
  ['v2', 'JSON', true],
] as const)('a server of the %s SDK that answers with %s', (generation, _form, isJson) => {
  test.each(['v1', 'v2'] as const)(
    'has a free place again after a call that a client of %s cancels',
    async (client) => {
      const server = await startHeldServer(generation, isJson);
      const { driven } = await driveOne(server, client);
      expect(await isRefused(cancels(driven, server))).toBe(true);
      await runsAnother(driven);
      await driven.close();
      server.close();
    },
  );

  test('has a free place again after a batch with a call and its cancellation', async () => {
    const server = await startHeldServer(generation, isJson);
    const { driven, url } = await driveOne(server, 'v1');
    const { sessionId = '' } = driven.transport as { sessionId?: string };
    const cancellation = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'b' } };
    const headers = {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      'mcp-session-id': sessionId,
    };
    const body = JSON.stringify([toolCall('wait', 'b'), cancellation]);
    const leaving = new AbortController();
    const { signal } = leaving;
    const heard = request(at(stack, 1, url), { method: 'POST', headers, body, signal }).catch(() => {});
    await eventually(async () => server.called.includes('wait'));
    await runsAnother(driven);
    leaving.abort();
    await heard;
    await driven.close();
    server.close();
  });
});

test.each(['v1', 'v2'] as const)(
  'a server has a free place again after a call that a client of %s abandons',
  async (client) => {
    // On a busy machine the time may be over before the server has the call.
    for (let timeout = 500, isThere = false; !isThere; timeout *= 2) {
      const server = await startHeldServer('v1');
      const { driven } = await driveOne(server, client);
      await callTool(driven, 'other');
      expect(await isRefused(callTool(driven, 'wait', {}, { timeout }))).toBe(true);
      isThere = server.called.includes('wait');
      if (isThere) await runsAnother(driven);
      await driven.close();
      server.close();
    }
  },
);
