import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { statusOf } from './holder.ts';
import { begins, PROTOCOLS, type Served } from './protocols.ts';
import type { Json, ResponsesProvider } from './responses-provider.ts';

/** Events of a provider about the event that begins a turn: it is refused, and a response of it begins. */
type Events = {
  readonly refused: (create: Json) => Json;
  readonly created: (create: Json) => Json;
  /** Money for a turn, and not for the most of a response next to it. */
  readonly onlyOne: number;
  /** Rules of a URL for bodies: they allow its turns, and would refuse the most of a response, or make it cheaper. */
  readonly rules: Json;
};
const EVENTS: Record<string, Events> = {
  Responses: {
    onlyOne: 2_000,
    rules: {
      models: ['gpt-4.1-nano'],
      allowed_fields: ['model', 'input', 'max_output_tokens'],
      config: { model: 'gpt-4.1-nano' },
    },
    refused: ({ stream_id }) => ({
      type: 'error',
      status: 400,
      error: { code: 'x', message: 'no' },
      stream_id,
    }),
    created: ({ stream_id, model }) => ({
      ...{ type: 'response.created', stream_id },
      response: { id: 'resp_other', model: statedModel(model), status: 'in_progress', output: [] },
    }),
  },
  Realtime: {
    onlyOne: 2_000_000,
    rules: {
      models: ['gpt-realtime'],
      allowed_fields: ['conversation', 'metadata', 'max_output_tokens'],
      config: { model: 'gpt-realtime' },
    },
    refused: ({ event_id }) => ({
      type: 'error',
      error: { type: 'invalid_request_error', code: 'x', message: 'no', event_id },
    }),
    created: ({ response }) => ({
      type: 'response.created',
      response: { id: 'resp_other', metadata: (response as Json).metadata },
    }),
  },
};

/** OpenAI states the model by the name of its snapshot, and another one than the turn's may answer. */
const statedModel = (model: unknown) => (model === 'gpt-4.1-nano' ? 'gpt-4.1-mini-2025-04-14' : model);

describe.each(PROTOCOLS)('$name: a response that no turn began', (protocol) => {
  const { refused, created, onlyOne, rules } = EVENTS[protocol.name] as Events;
  let served: Served;
  let stack: Stack;
  let serve: ResponsesProvider['serve'];
  beforeAll(async () => {
    served = await protocol.start();
    serve = served.provider.serve;
    stack = await startStack({ providers: { openai: { base_url: served.provider.url } } });
  });
  afterAll(async () => {
    await stack.close();
    await served.provider.close();
  });

  /** From now on these events answer the one that begins a turn. */
  const answerWith = (events: (create: Json) => Json[]) => {
    served.provider.serve = (event, of) => {
      if (event.type !== 'response.create') return serve(event, of);
      for (const each of events(event)) of.socket.send(JSON.stringify(each));
    };
  };
  const issue = async (cost_limit: number, more: Json = {}) =>
    (await stack.issue({ ...protocol.asked, client_api_key: 'sk-real', cost_limit, ...more })).url;
  /** Enough for a turn, and for the most that a response may cost. */
  const DEAR = 10_000_000;

  test.each([
    ['', false],
    [' whatever bodies its URL allows', true],
  ])(
    'because it was refused before costs the most of a response%s, and closes the socket',
    async (_what, hasRules) => {
      answerWith((create) => [refused(create), created(create)]);
      const url = await issue(DEAR, hasRules ? rules : {});
      const holder = await protocol.open(url);
      holder.send(protocol.create('a'));
      expect(await holder.closed).toMatchObject({ code: 1011 });
      const { spent } = await eventually(async () => {
        const now = await statusOf(url);
        return now.held === 0 && now.spent > 0 && now;
      });
      expect(spent).toBeGreaterThan(400_000);
    },
  );

  /** A socket whose turn has one response, and gets another one. */
  const withOther = async (url: string) => {
    served.provider.serve = serve;
    served.holdBack();
    const holder = await protocol.open(url);
    holder.send(protocol.create('a'));
    await begins(protocol, holder, 'a');
    const { held } = await statusOf(url);
    const { frames = [], socket } = served.provider.sockets.at(-1) ?? {};
    const create = frames.find(({ type }) => type === 'response.create');
    socket?.send(JSON.stringify(created(create as Json)));
    expect(await holder.closed).toMatchObject({ code: 1011 });
    return held;
  };

  test('next to that of a running turn costs the most of a response, too', async () => {
    const url = await issue(DEAR);
    const held = await withOther(url);
    const { spent } = await eventually(async () => {
      const now = await statusOf(url);
      return now.held === 0 && now.used === 2 && now;
    });
    expect(spent).toBeGreaterThan(held + 100_000);
  });

  test('that its URL cannot pay ends the URL', async () => {
    const url = await issue(onlyOne);
    const held = await withOther(url);
    await eventually(async () => ((await statusOf(url)) as unknown as { revoked: boolean }).revoked);
    expect((await statusOf(url)).spent).toBe(held);
  });
});
