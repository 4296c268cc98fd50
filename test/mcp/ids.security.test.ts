import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startStack } from '../harness/stack.ts';
import { sumOf, toolCall } from './holder.ts';
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
import { type Arrived, startMcpUpstream } from './upstream.ts';

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

/** Something that a server hands out and its client hands back. */
type Handed = {
  readonly what: string;
  /** The server's own. */
  readonly id: string | number;
  readonly out: (id: unknown) => Message;
  readonly back: (id: unknown) => Message;
  /** It comes only on a stream. */
  readonly isStreamed?: true;
  /** The JSON-RPC error for a holder who did not receive it. */
  readonly code?: number;
};

const HANDED: readonly Handed[] = [
  {
    what: 'the task of a call',
    id: 'task-1',
    out: (taskId) => result({ task: { taskId, ...TASK }, _meta: { big: 1e21 } }),
    back: (taskId) => request('tasks/result', { taskId }),
  },
  ...['tasks/get', 'tasks/cancel', 'tasks/update', 'tasks/later'].map((method) => ({
    what: `the task of a call in 2026-07-28, for ${method}`,
    id: 'task "2"/ü',
    out: (taskId: unknown) => result({ resultType: 'task', taskId, ...TASK }),
    back: (taskId: unknown) => request(method, { taskId, inputResponses: {} }),
  })),
  {
    what: 'a task without an id of its own request',
    id: 'task-1',
    out: (taskId) => result({ task: { taskId, ...TASK } }),
    back: (taskId) => notification('tasks/cancel', { taskId }),
  },
  {
    what: 'the task that a result is about',
    id: 'task-3',
    out: (taskId) => result({ content: [], _meta: { [RELATED]: { taskId } } }),
    back: (taskId) => request('tools/call', { name: 'run', _meta: { [RELATED]: { taskId } } }),
  },
  {
    what: 'the task of a status notification',
    id: 'task-4',
    out: (taskId) => notification('notifications/tasks/status', { taskId, ...TASK }),
    back: (taskId) => request('tasks/get', { taskId }),
    isStreamed: true,
  },
  {
    what: 'the task of a notification in 2026-07-28',
    id: 'task-5',
    out: (taskId) => notification('notifications/tasks', { taskId, ...TASK }),
    back: (taskId) => request('subscriptions/listen', { notifications: { taskIds: [taskId] } }),
    isStreamed: true,
  },
  {
    what: 'the tasks of an acknowledged subscription',
    id: 'task-6',
    out: (taskId) =>
      notification('notifications/subscriptions/acknowledged', { notifications: { taskIds: [taskId] } }),
    back: (taskId) => request('tasks/get', { taskId }),
    isStreamed: true,
  },
  {
    what: "the task that a server's request is about",
    id: 'task-7',
    out: (taskId) => notification('notifications/message', { _meta: { [RELATED]: { taskId } } }),
    back: (taskId) => notification('notifications/x', { _meta: { [RELATED]: { taskId } } }),
    isStreamed: true,
  },
  {
    what: 'the state of a call that needs input',
    id: 'state-1',
    out: (requestState) => result({ resultType: 'input_required', requestState }),
    back: (requestState) => request('tools/call', { name: 'run', requestState, inputResponses: {} }),
  },
  ...[7, 'ask-7', 1e15].map((id) => ({
    what: `the id of a server's request, ${id}`,
    id,
    out: (asked: unknown) => request('elicitation/create', { message: 'Pay?' }, asked),
    back: (asked: unknown) => result({ action: 'accept' }, asked),
    isStreamed: true as const,
    code: -32600,
  })),
  {
    what: "the id of a server's request, refused",
    id: 0,
    out: (id) => request('sampling/createMessage', { messages: [] }, id),
    back: (id) => ({ jsonrpc: '2.0', id, error: { code: -1, message: 'no' } }),
    isStreamed: true,
    code: -32600,
  },
  {
    what: "the progress token of a server's request",
    id: 9,
    out: (progressToken) => request('sampling/createMessage', { _meta: { progressToken } }, 'ask-8'),
    back: (progressToken) => notification('notifications/progress', { progressToken, progress: 1 }),
    isStreamed: true,
  },
];

/** All values of a message that are the only thing in which it differs from another. */
function differing(a: unknown, b: unknown): [unknown, unknown][] {
  if (Object.is(a, b)) return [];
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return [[a, b]];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name) =>
    differing((a as Message)[name], (b as Message)[name]),
  );
}

const CASES = HANDED.flatMap((handed) =>
  FORMS.filter((form) => !handed.isStreamed || form === 'sse' || form === 'legacy').map((form) => ({
    ...handed,
    form,
  })),
);

describe.each(CASES)('$what ($form)', ({ form, id, out, back, code = -32602 }) => {
  const posts = () => world.upstream.arrived.filter(({ method }) => method === 'POST');
  const bodyOf = (arrived: Arrived | undefined) => {
    const value: unknown = JSON.parse(arrived?.body ?? 'null');
    return Array.isArray(value) ? value[0] : value;
  };

  test('is sealed for its holder, and useless to another holder of the same credential', async () => {
    const [mine, others] = await Promise.all([
      issueShared(world, form, { max_uses: 9 }),
      issueShared(world, form, { max_uses: 9 }),
    ]);
    const owner = await holder(world, form, mine);
    handsOut(world, form, out(id));
    const shown = async (gateway: number) => {
      const { messages } = await owner.say(toolCall('run', 1), gateway);
      return differing(messages.flat()[0], out(id)).filter(([, own]) => own === id);
    };
    const [[sealed = '', own] = []] = await shown(0);
    expect(own).toBe(id);
    expect(String(sealed)).toMatch(/^[\w-]{1,32}\.[\w-]{30,}$/);
    expect((await shown(1))[0]?.[0]).toBe(sealed);

    world.upstream.behaves = undefined;
    await owner.say(back(sealed), 1);
    expect(bodyOf(posts().at(-1))).toEqual(back(id));

    owner.leave();
    const other = await holder(world, form, others);
    const before = posts().length;
    for (const stolen of [sealed, id, `${sealed}A`]) {
      const heard = await other.say(back(stolen), 1);
      const wants = (back(id) as { id?: unknown }).id === 2;
      expect(heard.status).toBe(
        !wants ? (form === 'legacy' && code === -32602 ? 404 : 400) : form === 'legacy' ? 202 : 200,
      );
      expect(heard.messages.flat()[0]).toMatchObject({ id: wants ? 2 : null, error: { code } });
    }
    expect(posts()).toHaveLength(before);
    expect((await sumOf(world.stack, others)).uses).toBe(0);
    other.leave();
  });
});
