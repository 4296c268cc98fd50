import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Driven, type DriveOptions, drive, type Transport } from './clients-drive.ts';
import { figuresOf } from './clients-figures.ts';
import { openRoad } from './clients-road.ts';
import { callTool, textOf } from './clients-scenario.ts';
import { type Everything, startEverything } from './everything.ts';

let stack: Stack;
let servers: Record<Transport, Everything>;

beforeAll(async () => {
  const [http, sse, started] = await Promise.all([
    startEverything('http'),
    startEverything('sse'),
    startStack({ providers: {}, gateways: 3 }),
  ]);
  servers = { http, sse };
  stack = started;
});
afterAll(async () => {
  await stack?.close();
  await Promise.all(Object.values(servers ?? {}).map((server) => server.close()));
});

const GENERATIONS = ['v1', 'v2'] as const;
type Way = Pick<DriveOptions, 'url' | 'road'> & { readonly sessionId: string | undefined };

/** The same done straight and through two gateways in turn; `sessionId` is the one that calls are counted for. */
async function bothWays<T>(transport: Transport, run: (way: Way) => Promise<T>) {
  const { url } = servers[transport];
  const issued = await stack.issueMcp({ servers: [{ name: 'all', url, transport }], max_uses: 100 });
  const through = issued.servers.all?.url ?? '';
  const [direct, outcome] = await Promise.all([
    run({ url, road: openRoad(), sessionId: undefined }),
    run({ url: through, road: openRoad(stack.gatewayUrls.slice(0, 2)), sessionId: issued.session_id }),
  ]);
  const { used } = await figuresOf(stack, issued.session_id);
  return { direct, outcome, used };
}

/** The reference server says in its log what was subscribed to: on its own stream, not as an answer. */
const say = ({ client }: Driven, uri: string) => client.subscribeResource({ uri });
const told = ({ heard }: Driven, uri: string) =>
  eventually(async () => heard.find(({ params }) => JSON.stringify(params ?? {}).includes(`URI: ${uri}`)));
const resumed = ({ road }: Driven) =>
  road.exchanges.filter(({ verb, headers }) => verb === 'GET' && headers.has('last-event-id')).length;

describe.concurrent.each(GENERATIONS)('a session of the %s client over http', (generation) => {
  const transport = 'http';

  test('resumes a call whose answer was cut, and is charged for it once', async () => {
    const { direct, outcome, used } = await bothWays(transport, async ({ url, road }) => {
      // The reference server sends nothing more on a stream that was taken up before the work was done.
      const driven = await drive({ generation, transport, url, road, reconnectMs: 4_000 });
      let cuts = 0;
      const onprogress = () => {
        if (cuts === 0) road.cut();
        cuts += 1;
      };
      const work = { duration: 2, steps: 4 };
      const answer = textOf(await callTool(driven, 'trigger-long-running-operation', work, { onprogress }));
      const result = {
        isDone: answer.startsWith('Long running operation completed'),
        resumed: resumed(driven) > 0,
      };
      await driven.close();
      return result;
    });
    expect(direct).toEqual({ isDone: true, resumed: true });
    expect(outcome).toEqual(direct);
    expect(used).toBe(1);
  });

  test("gets the events that it missed while the server's stream was cut", async () => {
    const { direct, outcome, used } = await bothWays(transport, async ({ url, road }) => {
      const driven = await drive({ generation, transport, url, road });
      await say(driven, 'demo://before');
      await told(driven, 'demo://before');
      road.cut();
      await say(driven, 'demo://meanwhile');
      await told(driven, 'demo://meanwhile');
      const result = { resumed: resumed(driven) > 0 };
      await driven.close();
      return result;
    });
    expect(direct).toEqual({ resumed: true });
    expect(outcome).toEqual(direct);
    expect(used).toBe(0);
  });

  test('continues with its id until it is deleted', async () => {
    const { direct, outcome, used } = await bothWays(transport, async ({ url, road }) => {
      const first = await drive({ generation, transport, url, road });
      const { sessionId = '' } = first.transport as { sessionId?: string };
      const goOn = async () => {
        const next = await drive({ generation, transport, url, road, sessionId });
        const sum = await callTool(next, 'get-sum', { a: 1, b: 2 }).then(textOf, () => 'failed');
        await next.client.close();
        return [sum, road.exchanges.findLast(({ method }) => method === 'tools/call')?.status];
      };
      const before = await goOn();
      await first.close();
      const deleted = road.exchanges.findLast(({ verb }) => verb === 'DELETE')?.status;
      return { before, deleted, after: await goOn() };
    });
    expect(direct).toEqual({
      before: ['The sum of 1 and 2 is 3.', 200],
      deleted: 200,
      after: ['failed', 400],
    });
    expect(outcome).toEqual(direct);
    // The server answers a call in a deleted session with 400, which keeps its charge.
    expect(used).toBe(2);
  });
});

describe.concurrent.each(GENERATIONS)('the stream of the %s client over sse', (generation) => {
  test('is opened again after it was cut, and calls continue', async () => {
    const { direct, outcome, used } = await bothWays('sse', async ({ url, road }) => {
      const driven = await drive({ generation, transport: 'sse', url, road });
      const before = textOf(await callTool(driven, 'get-sum', { a: 1, b: 2 }));
      road.cut();
      await opened(driven, 2);
      const after = textOf(await callTool(driven, 'get-sum', { a: 3, b: 4 }));
      await driven.close();
      return [before, after];
    });
    expect(direct).toEqual(['The sum of 1 and 2 is 3.', 'The sum of 3 and 4 is 7.']);
    expect(outcome).toEqual(direct);
    expect(used).toBe(2);
  });
});

/** Waits until the older transport's stream has named an endpoint so many times. */
const opened = ({ road }: Driven, times: number) =>
  eventually(async () => {
    const named = road.exchanges.filter(
      ({ verb, text }) => verb === 'GET' && text.includes('event: endpoint'),
    );
    return named.length >= times || undefined;
  });

describe.concurrent("another holder's session", () => {
  test.each(GENERATIONS)(
    'is not found or ended by the %s client, and nothing is counted',
    async (generation) => {
      const [owner, twin, stranger] = await threeHolders('http');
      const own = await drive({ generation, transport: 'http', url: owner.url, road: openRoad() });
      const { sessionId = '' } = own.transport as { sessionId?: string };
      for (const { url } of [twin, stranger]) {
        const road = openRoad(stack.gatewayUrls);
        const other = await drive({ generation, transport: 'http', url, road, sessionId });
        await expect(other.client.ping()).rejects.toThrow();
        await expect(callTool(other, 'get-sum', { a: 1, b: 2 })).rejects.toThrow();
        await other.close();
        await road.fetch(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': sessionId } });
        expect(road.exchanges.map(({ status }) => status)).toEqual(road.exchanges.map(() => 404));
        expect(new Set(road.exchanges.map(({ verb }) => verb))).toEqual(new Set(['POST', 'GET', 'DELETE']));
      }
      expect(textOf(await callTool(own, 'get-sum', { a: 1, b: 2 }))).toBe('The sum of 1 and 2 is 3.');
      await own.close();
      expect((await figuresOf(stack, owner.session)).used).toBe(1);
      expect((await figuresOf(stack, stranger.session)).used).toBe(0);
    },
  );

  test("is not found with the server's own id, which no holder gets", async () => {
    const [owner] = await threeHolders('http');
    const own = await drive({ generation: 'v1', transport: 'http', url: owner.url, road: openRoad() });
    const said = textOf(await callTool(own, 'toggle-simulated-logging'));
    const id = /for session ([0-9a-f-]{36})/.exec(said)?.[1] ?? '';
    expect(id).not.toBe('');
    expect((own.transport as { sessionId?: string }).sessionId).not.toContain(id);
    expect((await post(owner.url, { 'mcp-session-id': id })).status).toBe(404);
    await own.close();
  });

  test('is not found over sse with its endpoint', async () => {
    const [owner, twin, stranger] = await threeHolders('sse');
    const road = openRoad();
    const own = await drive({ generation: 'v1', transport: 'sse', url: owner.url, road });
    const endpoint = road.exchanges.find(({ verb }) => verb === 'POST')?.url.searchParams.get('ep') ?? '';
    const at = (url: string) => post(`${url}&ep=${encodeURIComponent(endpoint)}`);
    expect((await at(twin.url)).status).toBe(404);
    expect((await at(stranger.url)).status).toBe(404);
    expect((await at(owner.url)).status).toBe(202);
    await own.close();
  });
});

/** Two grants of one bundle and one of another, all for the same server. */
async function threeHolders(transport: Transport) {
  const { url } = servers[transport];
  const [bundle, other] = await Promise.all([
    stack.issueMcp({ servers: ['own', 'twin'].map((name) => ({ name, url, transport })) }),
    stack.issueMcp({ servers: [{ name: 'own', url, transport }] }),
  ]);
  const holder = ({ servers: all, session_id }: typeof bundle, name: string) => ({
    url: all[name]?.url ?? '',
    session: session_id,
  });
  return [holder(bundle, 'own'), holder(bundle, 'twin'), holder(other, 'own')] as const;
}

const post = (url: string, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });

/** Resolves when a client has opened its stream at a gateway. */
const streamAt = ({ road }: Driven, origin: string) =>
  eventually(async () =>
    road.exchanges.find((each) => each.verb === 'GET' && each.origin === origin && each.status === 200),
  );

test('clients of each kind continue through another gateway when the one with their streams stops', async () => {
  const [staying = '', , going = ''] = stack.gatewayUrls;
  const kinds = GENERATIONS.flatMap((generation) =>
    (['http', 'sse'] as const).map((transport) => ({ generation, transport })),
  );
  const clients = await Promise.all(
    kinds.map(async ({ generation, transport }) => {
      const [{ url }] = await threeHolders(transport);
      const origins = [going];
      // On a busy machine the server frees a client's first stream late, and answers 409 until then.
      const driven = await drive({
        generation,
        transport,
        url,
        road: openRoad(origins),
        reconnectMs: 1_500,
      });
      await callTool(driven, 'get-sum', { a: 1, b: 2 });
      await streamAt(driven, going);
      return { driven, transport, origins };
    }),
  );
  for (const { origins } of clients) origins.splice(0, 1, staying);
  await stack.gateways[2]?.close({ graceMs: 2_000 });
  for (const { driven, transport } of clients) {
    if (transport === 'sse') await opened(driven, 2);
    await streamAt(driven, staying);
    expect(textOf(await callTool(driven, 'get-sum', { a: 3, b: 4 }))).toBe('The sum of 3 and 4 is 7.');
    await driven.close();
  }
});
