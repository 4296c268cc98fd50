import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { drive, type Generation, type Transport } from './clients-drive.ts';
import { openRoad } from './clients-road.ts';
import { callTool } from './clients-scenario.ts';
import { type Everything, startEverything } from './everything.ts';

let stack: Stack;
let servers: Record<Transport, Everything>;

beforeAll(async () => {
  const [http, sse, started] = await Promise.all([
    startEverything('http'),
    startEverything('sse'),
    startStack({ providers: {} }),
  ]);
  servers = { http, sse };
  stack = started;
});
afterAll(async () => {
  await stack?.close();
  await Promise.all(Object.values(servers ?? {}).map((server) => server.close()));
});

const CLIENTS: readonly (readonly [Generation, Transport])[] = [
  ['v1', 'http'],
  ['v1', 'sse'],
  ['v2', 'http'],
  ['v2', 'sse'],
];

describe.each(CLIENTS)('the official client %s over %s', (generation, transport) => {
  test('shows the code, the reason and the wait of a rate limit, and its session continues', async () => {
    const { url } = servers[transport];
    // Few: on a busy machine a call may take seconds.
    const perMinute = 4;
    const issued = await stack.issueMcp({
      servers: [{ name: 'all', url, transport }],
      calls_per_minute: perMinute,
    });
    const road = openRoad();
    const driven = await drive({ generation, transport, url: issued.servers.all?.url ?? '', road });
    const echo = () => callTool(driven, 'echo', { message: 'hi' });
    let thrown: unknown;
    for (let calls = 0; thrown === undefined && calls <= perMinute; calls++) {
      await echo().catch((error: unknown) => {
        thrown = error;
      });
    }
    expect(thrown).toMatchObject({
      code: -32010,
      message: expect.stringMatching(
        /This URL has no calls left \(4 a minute\)\. Try again in \d+ seconds?\./,
      ),
      data: { code: 'rate_limited', limit: perMinute, retry_after: expect.any(Number) },
    });
    const { retry_after } = (thrown as { data: { retry_after: number } }).data;
    expect(retry_after).toBeGreaterThan(0);
    expect(retry_after).toBeLessThanOrEqual(60);
    // The same session, and not a new one: a client that took the refusal for a lost session would connect again.
    await expect(echo()).rejects.toMatchObject({ code: -32010 });
    expect(road.exchanges.filter(({ method }) => method === 'initialize')).toHaveLength(1);
    await driven.close();
  });
});
