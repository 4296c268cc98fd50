import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { ASKING } from './clients-asking.ts';
import { type DriveOptions, drive } from './clients-drive.ts';
import { figuresOf } from './clients-figures.ts';
import { openRoad } from './clients-road.ts';
import type { Scenario } from './clients-scenario.ts';
import { TELLING } from './clients-telling.ts';
import { type Everything, startEverything } from './everything.ts';

let stack: Stack;
let servers: Record<'http' | 'sse', Everything>;

beforeAll(async () => {
  const [http, sse, started] = await Promise.all([
    startEverything('http'),
    startEverything('sse'),
    startStack({ providers: {}, gateways: 2 }),
  ]);
  servers = { http, sse };
  stack = started;
});
afterAll(async () => {
  await stack?.close();
  await Promise.all(Object.values(servers ?? {}).map((server) => server.close()));
});

/** An operator's price of a call where none is set. */
const PRICE = 1_000;

async function play(scenario: Scenario, options: DriveOptions): Promise<unknown> {
  const driven = await drive(options);
  try {
    return await scenario.run(driven);
  } finally {
    await driven.close();
  }
}

describe.concurrent.each(['http', 'sse'] as const)('over %s', (transport) => {
  describe.each(['v1', 'v2'] as const)(
    'the %s client gets the same results through two gateways in turn',
    (generation) => {
      const own = [...ASKING, ...TELLING].filter((each) => (each.generation ?? generation) === generation);

      test.each(own.map((scenario) => [scenario.feature, scenario] as const))(
        '%s',
        async (_feature, scenario) => {
          const { url } = servers[transport];
          const issued = await stack.issueMcp({ servers: [{ name: 'all', url, transport }], max_uses: 100 });
          const road = openRoad(stack.gatewayUrls);
          const through = { generation, transport, url: issued.servers.all?.url ?? '', road };
          const [direct, outcome] = await Promise.all([
            play(scenario, { generation, transport, url, road: openRoad() }),
            play(scenario, through),
          ]);
          expect(direct).toEqual(scenario.outcome);
          expect(outcome).toEqual(scenario.through ?? direct);
          const { uses } = scenario;
          expect(await figuresOf(stack, issued.session_id)).toEqual({ used: uses, spent: uses * PRICE });
          expect(new Set(road.exchanges.map(({ origin }) => origin))).toEqual(new Set(stack.gatewayUrls));
        },
      );
    },
  );
});

test('a v2 client that tries the newest revision first falls back to the older one, through the gateway too', async () => {
  const { url } = servers.http;
  const issued = await stack.issueMcp({ servers: [{ name: 'all', url, transport: 'http' }] });
  const found = async (at: string, origins: readonly string[]) => {
    const road = openRoad(origins);
    const driven = await drive({ generation: 'v2', transport: 'http', url: at, road, negotiate: 'auto' });
    const { client } = driven;
    const version = client instanceof ClientV2 && client.getNegotiatedProtocolVersion();
    await driven.close();
    return { version, statuses: road.exchanges.slice(0, 2).map(({ method, status }) => [method, status]) };
  };
  const direct = await found(url, []);
  expect(direct).toEqual({
    version: '2025-11-25',
    statuses: [
      ['server/discover', 400],
      ['initialize', 200],
    ],
  });
  expect(await found(issued.servers.all?.url ?? '', stack.gatewayUrls)).toEqual(direct);
});
