import type { McpPresignAnswer } from '@presign/schema';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startStack } from '../harness/stack.ts';
import { ask, at, post, send, toolCall, urlOf } from './holder.ts';
import { listen } from './listen.ts';
import {
  FORMS,
  handsOut,
  holder,
  issueShared,
  type Message,
  notification,
  request,
  result,
  type World,
} from './shared-credential.ts';
import { eventOf, startMcpUpstream } from './upstream.ts';

let world: World;

beforeAll(async () => {
  const [stack, upstream] = await Promise.all([
    startStack({ providers: {}, gateways: 2 }),
    startMcpUpstream(),
  ]);
  world = { stack, upstream };
});
afterAll(async () => {
  await world.stack.close();
  await world.upstream.close();
});
beforeEach(() => {
  world.upstream.behaves = undefined;
});

const RELATED = 'io.modelcontextprotocol/related-task';
const TASK = { status: 'working', ttl: 60_000 };

describe('the id of an event', () => {
  const events =
    'id: 0\nretry: 300\ndata: \n\nid:s1_1\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\r\n\r\n';
  const streams = (text: string) => {
    world.upstream.behaves = (_, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text) && true;
  };
  const idsIn = (text: string) => [...text.matchAll(/^id: ?(.*?)\r?$/gm)].map(([, id]) => id ?? '');
  const after = (answer: McpPresignAnswer, id: string, gateway = 1) =>
    send(at(world.stack, gateway, urlOf(answer, 'a')), 'GET', { 'last-event-id': id });

  test('is sealed for its holder: another holder who has or guesses it is refused and reaches no server', async () => {
    const [mine, others] = await Promise.all([issueShared(world, 'sse'), issueShared(world, 'sse')]);
    streams(events);
    const { text } = await post(urlOf(mine, 'a'), toolCall('run', 1));
    const ids = idsIn(text);
    expect(ids).toHaveLength(2);
    expect(text.replace(`id: ${ids[0]}`, 'id: 0').replace(`id: ${ids[1]}`, 'id:s1_1')).toBe(events);
    for (const [i, own] of ['0', 's1_1'].entries()) {
      expect((await after(mine, ids[i] ?? '')).status).toBe(200);
      expect(world.upstream.arrived.at(-1)?.headers['last-event-id']).toBe(own);
      expect(idsIn((await after(mine, ids[i] ?? '')).text)).toEqual(ids);
    }
    const before = world.upstream.arrived.length;
    for (const id of ['0', 's1_1', ids[0] ?? '', `${ids[0]}, ${ids[0]}`]) {
      const heard = await after(others, id);
      expect([heard.status, heard.messages[0]?.error?.code]).toEqual([400, -32600]);
      const posted = await post(urlOf(others, 'a'), toolCall('run'), { 'last-event-id': id });
      expect(posted.status).toBe(400);
    }
    expect((await after(mine, '0')).status).toBe(400);
    expect(world.upstream.arrived).toHaveLength(before);
  });

  test('that is too long for a header is omitted, and one of 1,024 characters is kept', async () => {
    const mine = await issueShared(world, 'sse');
    streams(`id: ${'x'.repeat(1_024)}\ndata: \n\nid: ${'x'.repeat(1_025)}\ndata: \n\n`);
    const { text } = await post(urlOf(mine, 'a'), toolCall('run', 1));
    const ids = idsIn(text);
    expect(ids).toHaveLength(1);
    expect((await after(mine, ids[0] ?? '')).status).toBe(200);
    expect(world.upstream.arrived.at(-1)?.headers['last-event-id']).toBe('x'.repeat(1_024));
  });
});

describe('tasks/list', () => {
  const mine = { taskId: 'task-1', ...TASK };
  const listing = { tasks: [mine, { ...mine, taskId: 'task-2' }], nextCursor: 'task-2' };

  test.each(FORMS.slice(0, 3))('of a server without sessions is empty (%s)', async (form) => {
    const { say } = await holder(world, form, await issueShared(world, form));
    handsOut(world, form, result(listing));
    expect((await say(ask('tasks/list'))).messages.flat()[0]).toEqual(result({ tasks: [] }));
  });

  test('of a server without sessions never passes unread', async () => {
    const { say } = await holder(world, 'json', await issueShared(world, 'json'));
    const large = { ...listing, _meta: { text: 'x'.repeat(2 * 1024 * 1024) } };
    for (const form of ['json', 'sse'] as const) {
      handsOut(world, form, result(large));
      const heard = await say(ask('tasks/list'));
      expect(heard.text).not.toContain('task-1');
      expect(heard.messages[0]?.error?.data?.code).toBe('upstream_unreachable');
    }
  });

  test.each(FORMS)('of a server with sessions is empty too, and has no further page (%s)', async (form) => {
    const answer = await issueShared(world, form);
    const { say } = await holder(world, form, answer);
    const first = form === 'legacy' ? undefined : await say(ask('initialize'));
    const session: Record<string, string> = first
      ? { 'mcp-session-id': String(first.headers['mcp-session-id']) }
      : {};
    for (const listed of [listing, { tasks: [], nextCursor: 'task-2' }]) {
      handsOut(world, form, result(listed));
      expect((await say(ask('tasks/list'), 0, session)).messages.flat()[0]).toEqual(result({ tasks: [] }));
    }
    const before = world.upstream.arrived.length;
    const foreign = await say(request('tasks/list', { cursor: 'task-2' }, 7), 1, session);
    expect(foreign.messages.flat().find(({ id }) => id === 7)?.error?.code).toBe(-32602);
    expect(world.upstream.arrived).toHaveLength(before);
  });
});

test('a stream without a session omits the tasks of others, and passes everything else', async () => {
  const stream = await listen(urlOf(await issueShared(world, 'sse'), 'a'));
  await eventually(async () => world.upstream.streams.size > 0 || undefined);
  const about = { _meta: { [RELATED]: { taskId: 'task-1' } } };
  for (const open of world.upstream.streams) {
    open.write(eventOf(notification('notifications/tasks/status', { taskId: 'task-1', ...TASK })));
    open.write(eventOf(request('elicitation/create', { message: 'Pay?', ...about }, 1)));
    open.write(eventOf(notification('notifications/tools/list_changed', {})));
  }
  expect(await stream.reached(1)).toEqual([notification('notifications/tools/list_changed', {})]);
  expect(stream.text()).not.toContain('task');
  stream.leave();
});

test("a client's own tasks and requests keep their ids", async () => {
  const answer = await issueShared(world, 'sse');
  const { say } = await holder(world, 'sse', answer);
  handsOut(world, 'sse', request('tasks/result', { taskId: 'own-1' }, 4));
  const asked = (await say(toolCall('run', 'mine'))).messages[0] as unknown as Message;
  expect(asked.params).toEqual({ taskId: 'own-1' });
  world.upstream.behaves = undefined;
  const own = { task: { taskId: 'own-1', ...TASK }, _meta: { [RELATED]: { taskId: 'own-1' } } };
  await say(result(own, asked.id));
  expect(JSON.parse(world.upstream.arrived.at(-1)?.body ?? '')).toEqual(result(own, 4));
  for (const message of [
    notification('notifications/cancelled', { requestId: 'mine' }),
    notification('notifications/tasks/status', { taskId: 'own-1', ...TASK }),
    request('tools/list', { cursor: 'page 2', _meta: { progressToken: 1 } }),
  ]) {
    await say(message);
    expect(JSON.parse(world.upstream.arrived.at(-1)?.body ?? '')).toEqual(message);
  }
});

test("the header Mcp-Name gets the server's own id of the task", async () => {
  const answer = await issueShared(world, 'json');
  const { say } = await holder(world, 'json', answer);
  for (const id of ['task-1', 'größe 1']) {
    handsOut(world, 'json', result({ resultType: 'task', taskId: id }));
    const [made] = (await say(toolCall('run', 1))).messages as unknown as { result: { taskId: string } }[];
    const taskId = made?.result.taskId ?? '';
    world.upstream.behaves = undefined;
    const heard = await say(request('tasks/get', { taskId }), 1, {
      'mcp-name': taskId,
      'mcp-method': 'tasks/get',
    });
    expect(heard.status).toBe(200);
    const sent = id === 'task-1' ? id : `=?base64?${Buffer.from(id).toString('base64')}?=`;
    expect(world.upstream.arrived.at(-1)?.headers['mcp-name']).toBe(sent);
    const before = world.upstream.arrived.length;
    const other = await say(request('tasks/get', { taskId }), 1, { 'mcp-name': id === 'task-1' ? id : 'x' });
    expect(other.messages[0]?.error?.code).toBe(-32020);
    expect(world.upstream.arrived).toHaveLength(before);
  }
});

test.each([
  ['another case', '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"TaskId":"task-1"}}'],
  ['two ids', '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"task-1","taskId":"task-1"}}'],
  [
    'another case of its metadata',
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","_meta":{"${RELATED.toUpperCase()}":{"taskId":"task-1"}}}}`,
  ],
  ['a number', '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":1}}'],
])('a message with %s reaches no server', async (_, body) => {
  const before = world.upstream.arrived.length;
  const heard = await post(urlOf(await issueShared(world, 'json'), 'a'), body);
  expect(heard.messages[0]?.error).toBeDefined();
  expect(world.upstream.arrived).toHaveLength(before);
});
