import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Driven, drive, type Transport } from './clients-drive.ts';
import { startHeldServer } from './clients-held-server.ts';
import { openRoad } from './clients-road.ts';
import { callTool, codeOf, textOf } from './clients-scenario.ts';
import { grantIn, tokenIn, urlOf } from './holder.ts';

let stack: Stack;
let aheadMs = 0;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(() => stack?.close());
beforeEach(() => {
  aheadMs = 0;
});

const end = (url: string) => {
  aheadMs = grantIn(tokenIn(url)).expiresAtMs - Date.now() + 1_000;
};

describe.each(['v1', 'v2'] as const)('a client of %s whose URL ends during a call', (generation) => {
  async function driven(transport: Transport) {
    const server = await startHeldServer('v1');
    const servers = [{ name: 'a', url: transport === 'http' ? server.url : server.sseUrl, transport }];
    const url = urlOf(await stack.issueMcp({ servers, max_uses: 2 }), 'a');
    const road = openRoad(transport === 'http' ? stack.gatewayUrls : []);
    return { server, url, driven: await drive({ generation, transport, url, road, reconnectMs: 100 }) };
  }
  /** No other call begins. */
  async function isOver({ driven, close }: { driven: Driven; close: () => void }) {
    expect(await codeOf(callTool(driven, 'other'))).not.toBe('succeeded');
    await driven.close();
    close();
  }

  test.each(['http', 'sse'] as const)(
    "answers the server's request, and gets its result (%s)",
    async (transport) => {
      const { server, url, driven: client } = await driven(transport);
      const call = callTool(client, 'ask');
      await eventually(async () => server.called.includes('ask'));
      end(url);
      server.go();
      expect(textOf(await call)).toContain('"accept"');
      await isOver({ driven: client, close: server.close });
    },
  );

  test.each(['http', 'sse'] as const)('gets a result that arrives later (%s)', async (transport) => {
    const { server, url, driven: client } = await driven(transport);
    const call = callTool(client, 'hold');
    await eventually(async () => server.called.includes('hold'));
    end(url);
    server.go();
    expect(textOf(await call)).toBe('hold');
    await isOver({ driven: client, close: server.close });
  });

  test('resumes the stream that its server has closed', async () => {
    const { server, url, driven: client } = await driven('http');
    const call = callTool(client, 'poll');
    await eventually(async () => server.called.includes('poll'));
    end(url);
    const resumed = () =>
      client.road.exchanges.filter(({ verb, headers }) => verb === 'GET' && headers.has('last-event-id'));
    await eventually(async () => resumed().some(({ status }) => status === 200));
    server.go();
    expect(textOf(await call)).toBe('poll');
    await isOver({ driven: client, close: server.close });
  });
});
