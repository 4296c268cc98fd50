import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { RELATED_TASK, type Server2026, startServer2026 } from './clients-2026-server.ts';
import { type Driven, type DriveOptions, drive } from './clients-drive.ts';
import { figuresOf } from './clients-figures.ts';
import { openRoad } from './clients-road.ts';
import { callTool, codeOf, textOf } from './clients-scenario.ts';

let stack: Stack;
let server: Server2026;

beforeAll(async () => {
  [server, stack] = await Promise.all([startServer2026(), startStack({ providers: {}, gateways: 2 })]);
});
afterAll(async () => {
  await stack?.close();
  await server?.close();
});

const REVISION = '2026-07-28';
type Result = Awaited<ReturnType<typeof callTool>> & { readonly _meta?: Readonly<Record<string, unknown>> };
type Client = Pick<DriveOptions, 'generation' | 'negotiate'>;
const MODERN: Client = { generation: 'v2', negotiate: { pin: REVISION } };

/** The same done straight and through two gateways in turn. */
async function bothWays<T>(client: Client, run: (driven: Driven) => Promise<T>) {
  const issued = await stack.issueMcp({
    servers: [{ name: 'modern', url: server.url, transport: 'http' }],
    max_uses: 100,
  });
  const play = async (url: string, origins: readonly string[]) => {
    const driven = await drive({ ...client, transport: 'http', url, road: openRoad(origins) });
    const outcome = await run(driven);
    await driven.close();
    return outcome;
  };
  const direct = await play(server.url, []);
  const before = server.seen.length;
  const outcome = await play(issued.servers.modern?.url ?? '', stack.gatewayUrls);
  const { used } = await figuresOf(stack, issued.session_id);
  return { direct, outcome, used, seen: server.seen.slice(before) };
}

/** The features that both revisions have. */
async function common(driven: Driven) {
  const { client } = driven;
  const { tools } = await client.listTools();
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const { prompts } = await client.listPrompts();
  const ref = { type: 'ref/prompt' as const, name: 'greet' };
  const completed = await client.complete({ ref, argument: { name: 'name', value: 'Al' } });
  return {
    lists: [tools.length, resources.length, resourceTemplates.length, prompts.length],
    called: textOf(await callTool(driven, 'where', { region: 'ulm' })),
    failed: (await callTool(driven, 'fail')).isError,
    read: (await client.readResource({ uri: 'notes://7' })).contents.length,
    prompt: (await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } })).messages.length,
    completed: completed.completion.values,
    unknown: await codeOf(client.getPrompt({ name: 'none' })),
  };
}
const COMMON = {
  lists: [7, 1, 1, 2],
  called: 'ulm',
  failed: true,
  read: 1,
  prompt: 1,
  completed: ['Alan'],
  unknown: -32602,
};

describe('a server of revision 2026-07-28', () => {
  const clients: [string, Client][] = [
    ['the v2 client that insists on it', MODERN],
    ['the v2 client that finds it out', { generation: 'v2', negotiate: 'auto' }],
    ['the v2 client that knows older ones alone', { generation: 'v2' }],
    ['the v1 client, which knows older ones alone', { generation: 'v1' }],
  ];

  test.each(clients)('gives %s tools, resources, prompts and completion', async (_name, client) => {
    const { direct, outcome, used } = await bothWays(client, common);
    expect(direct).toEqual(COMMON);
    expect(outcome).toEqual(direct);
    // The request for an unknown prompt counts: its error is -32602.
    expect(used).toBe(5);
  });

  test('is detected through the gateway as directly', async () => {
    const auto = { generation: 'v2', negotiate: 'auto' } as const;
    const { direct, outcome, used, seen } = await bothWays(auto, async ({ client }) =>
      client instanceof ClientV2 ? client.getNegotiatedProtocolVersion() : undefined,
    );
    expect(direct).toBe(REVISION);
    expect(outcome).toBe(direct);
    expect(used).toBe(0);
    expect(seen.map((headers) => headers['mcp-method'])).toEqual(['server/discover']);
  });

  test('gets the headers that repeat the body, and no session id', async () => {
    const { direct, outcome, used, seen } = await bothWays(MODERN, async (driven) => {
      await driven.client.listTools();
      await driven.client.readResource({ uri: 'notes://7' });
      const { messages } = await driven.client.getPrompt({ name: 'grüße' });
      const where: Result = await callTool(driven, 'where', { region: 'ulm' });
      const task = { method: 'tasks/get', params: where._meta?.[RELATED_TASK] as { taskId: string } };
      const { status } = await (driven.client as ClientV2).request(
        task,
        z.looseObject({ status: z.string() }),
      );
      return [messages.length, status, textOf(where)];
    });
    expect(direct).toEqual([1, 'working', 'ulm']);
    expect(outcome).toEqual(direct);
    expect(used).toBe(3);
    expect(seen.slice(-4).map((headers) => [headers['mcp-method'], headers['mcp-name']])).toEqual([
      ['resources/read', 'notes://7'],
      ['prompts/get', `=?base64?${Buffer.from('grüße').toString('base64')}?=`],
      ['tools/call', 'where'],
      ['tasks/get', 't1'],
    ]);
    expect(seen.at(-2)?.['mcp-param-region']).toBe('ulm');
    expect(seen.every((headers) => headers['mcp-protocol-version'] === REVISION)).toBe(true);
    expect(seen.some((headers) => 'mcp-session-id' in headers)).toBe(false);
  });

  test('requests input of its client in an answer: a repeated call counts as another, unless it returns the state', async () => {
    const { direct, outcome, used } = await bothWays(MODERN, async (driven) => ({
      elicited: textOf(await callTool(driven, 'ask')),
      sampled: textOf(await callTool(driven, 'sample')),
      booked: textOf(await callTool(driven, 'book', { seat: 1 })),
      asked: driven.asked,
    }));
    expect(direct).toEqual({
      elicited: 'Ada',
      sampled: 'sampling',
      booked: 'Ada in 1',
      asked: ['elicitation/create', 'sampling/createMessage', 'elicitation/create', 'elicitation/create'],
    });
    expect(outcome).toEqual(direct);
    // Two for each of the first two, and one for the three rounds of the last.
    expect(used).toBe(5);
  });

  test('reports progress while it works', async () => {
    const { direct, outcome, used } = await bothWays(MODERN, async (driven) => {
      const steps: number[] = [];
      const onprogress = ({ progress }: { progress: number }) => {
        steps.push(progress);
      };
      const counted = textOf(await callTool(driven, 'count', {}, { onprogress }));
      const { text = '' } = driven.road.exchanges.findLast(({ method }) => method === 'tools/call') ?? {};
      return { counted, isHeard: steps.length > 0, came: text.match(/"notifications\/progress"/g)?.length };
    });
    expect(direct).toEqual({ counted: 'counted', isHeard: true, came: 3 });
    expect(outcome).toEqual(direct);
    expect(used).toBe(1);
  });

  test('is notified that a call was cancelled, and the call counts', async () => {
    const { direct, outcome, used } = await bothWays(MODERN, async (driven) => {
      const before = server.cancelled();
      const abort = new AbortController();
      const onprogress = () => abort.abort('called off');
      const called = callTool(driven, 'wait', {}, { signal: abort.signal, onprogress });
      const isRejected = await called.then(
        () => false,
        () => true,
      );
      await eventually(async () => server.cancelled() > before || undefined);
      return isRejected;
    });
    expect(direct).toBe(true);
    expect(outcome).toBe(true);
    expect(used).toBe(1);
  });

  test('has its only place free at once after an abandoned call, and during a subscription', async () => {
    const servers = [{ name: 'modern', url: server.url, transport: 'http' }];
    const issued = await stack.issueMcp({ servers, concurrent_calls: 1 });
    const [url, road] = [issued.servers.modern?.url ?? '', openRoad(stack.gatewayUrls)];
    const driven = await drive({ ...MODERN, transport: 'http', url, road });
    if (!(driven.client instanceof ClientV2)) throw new Error('older clients do not listen');
    const listening = await driven.client.listen({ resourceSubscriptions: ['note://1'] });
    const abort = new AbortController();
    const onprogress = () => abort.abort('called off');
    for (const options of [{ timeout: 300 }, { signal: abort.signal, onprogress }]) {
      expect(await codeOf(callTool(driven, 'wait', {}, options))).not.toBe('succeeded');
      const calls = () => callTool(driven, 'where', { region: 'ulm' }).then(textOf, () => undefined);
      expect(await eventually(calls)).toBe('ulm');
    }
    await listening.close();
    await driven.close();
  });

  test('refuses a header, and the client repeats its call automatically on a URL of one use', async () => {
    const servers = [{ name: 'modern', url: server.url, transport: 'http' }];
    const issued = await stack.issueMcp({ servers, max_uses: 1 });
    const [url, road] = [issued.servers.modern?.url ?? '', openRoad(stack.gatewayUrls)];
    const driven = await drive({ ...MODERN, transport: 'http', url, road });
    const before = server.seen.length;
    // It does not know yet that the tool takes its region from a header.
    expect(textOf(await callTool(driven, 'where', { region: 'ulm' }))).toBe('ulm');
    const regions = server.seen
      .slice(before)
      .filter(({ 'mcp-method': method }) => method === 'tools/call')
      .map((headers) => headers['mcp-param-region']);
    expect(regions).toEqual([undefined, 'ulm']);
    expect((await figuresOf(stack, issued.session_id)).used).toBe(1);
    await driven.close();
  });

  test('notifies a subscriber that a resource has changed, without cost', async () => {
    const { direct, outcome, used } = await bothWays(MODERN, async (driven) => {
      const { client, heard } = driven;
      if (!(client instanceof ClientV2)) throw new Error('older clients do not listen');
      const listening = await client.listen({ resourceSubscriptions: ['note://1'] });
      server.update('note://2');
      server.update('note://1');
      await eventually(async () => heard.find(({ method }) => method.endsWith('/updated')));
      await listening.close();
      return heard.map(({ method, params }) => [method, params?.uri]);
    });
    expect(direct).toEqual([['notifications/resources/updated', 'note://1']]);
    expect(outcome).toEqual(direct);
    expect(used).toBe(0);
  });
});
