import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { codeOf, type HolderSocket, openSocket } from './holder.ts';
import { CONTINUATION, closeCode, frame, PING, rawSocket, TEXT } from './raw.ts';
import { type RealtimeProvider, type Response, startRealtimeProvider } from './realtime-provider.ts';
import { eventsOf, type Json, type ProviderSocket } from './responses-provider.ts';

type Protocol = 'responses' | 'realtime';
const PROTOCOLS: readonly Protocol[] = ['responses', 'realtime'];
/** The longest message of a holder, in bytes. */
const MOST_BYTES = 60_000;

let provider: RealtimeProvider;
let stack: Stack;
/** A gateway that takes short messages alone. */
let gateway: string;
/** Ends the responses that wait. */
let pending: (() => void)[] = [];
let holdsBack = false;
beforeAll(async () => {
  provider = await startRealtimeProvider();
  const { serve, welcome } = provider;
  const isRealtime = ({ request }: ProviderSocket) => request.url?.startsWith('/v1/realtime') === true;
  provider.welcome = (of) => void (isRealtime(of) && welcome?.(of));
  provider.serve = (event, of) => (isRealtime(of) ? serve(event, of) : answer(event, of));
  provider.run = ({ end }: Response) => void (holdsBack ? pending.push(() => end()) : end());
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
  gateway = await stack.addGateway({ socketBounds: { holderMessageBytes: MOST_BYTES } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.sockets.length = 0;
  provider.sessions.length = 0;
  pending = [];
  holdsBack = false;
});

/** The API of Responses. */
function answer(event: Json, { socket }: ProviderSocket): void {
  const send = (each: object | undefined) => socket.send(JSON.stringify(each));
  if (event.previous_response_id !== undefined) {
    const error = { type: 'invalid_request_error', code: 'previous_response_not_found', message: 'No.' };
    send({ type: 'error', status: 400, error, stream_id: event.stream_id });
    return;
  }
  const [created, ...rest] = eventsOf(event);
  send(created);
  const end = () => rest.forEach(send);
  if (holdsBack) pending.push(end);
  else end();
}

const CREATE: Readonly<Record<Protocol, Json>> = {
  responses: { type: 'response.create', model: 'gpt-4.1-mini', input: 'Hi.', max_output_tokens: 20 },
  realtime: { type: 'response.create' },
};
const LAST = { responses: 'response.completed', realtime: 'response.done' };
/** The cost of a turn, in microdollars: 10 tokens of input and 5 of output. */
const COST = { responses: 12, realtime: 120 };
const QUERY = { responses: '', realtime: '?model=gpt-realtime' };

const issue = async (protocol: Protocol) => {
  const asked = { provider: 'openai', client_api_key: 'sk-real', sockets: true, cost_limit: 9_000_000 };
  const { url } = await stack.issue({ ...asked, path: `/v1/${protocol}` });
  return `${url.replace(stack.gatewayUrls[0] ?? '', gateway)}${QUERY[protocol]}`;
};
const statusOf = async (url: string) =>
  (await (await fetch(url.replace(/\/v1\/[a-z]+(?:\?.*)?$/, ''))).json()) as Json;
const open = async (protocol: Protocol, url: string) => {
  const holder = await openSocket(url);
  if (protocol === 'realtime') await holder.next('session.updated');
  return holder;
};
/** A turn that nothing keeps from its end. */
async function turn(protocol: Protocol, holder: HolderSocket): Promise<void> {
  holder.send(CREATE[protocol]);
  expect(await holder.next(LAST[protocol])).toBeDefined();
}

/** An event of a holder. `after`: events before it. `while`: a turn is under way. `by`: who refuses it. */
type Bad = {
  readonly protocol: Protocol;
  readonly what: string;
  readonly send: Json | string | Buffer;
  readonly code: string;
  readonly after?: readonly Json[];
  readonly while?: 'a turn runs';
  readonly by?: 'the API';
};

const NO_EVENTS: readonly (readonly [what: string, send: string | Buffer, code: string])[] = [
  ['nothing', '', 'invalid_json'],
  ['white space', ' \n', 'invalid_json'],
  ['a part of JSON', '{"type":"response.create"', 'invalid_json'],
  ['JSON and more', '{"type":"response.create"}}', 'invalid_json'],
  ['JSON with a comma too many', '{"type":"response.create",}', 'invalid_json'],
  ['two events', '{"type":"response.create"}{"type":"response.create"}', 'invalid_json'],
  ['a word', 'response.create', 'invalid_json'],
  ['null', 'null', 'unsupported_media_type'],
  ['a number', '1', 'unsupported_media_type'],
  ['a text', '"response.create"', 'unsupported_media_type'],
  ['a list of events', '[{"type":"response.create"}]', 'unsupported_media_type'],
  ['bytes', Buffer.from('{"type":"response.create"}'), 'unsupported_media_type'],
  [
    'very deep JSON',
    `{"type":"response.create","metadata":${'['.repeat(300)}${']'.repeat(300)}}`,
    'invalid_json',
  ],
  ['very many parts', `{"type":"response.create","metadata":[${'1,'.repeat(21_000)}1]}`, 'invalid_json'],
  ['a name twice', '{"type":"response.create","type":"response.create"}', 'invalid_request'],
];

const eventsOfNoType = (type: unknown, what: string): readonly Bad[] =>
  PROTOCOLS.map((protocol) => ({
    protocol,
    what,
    send: { ...CREATE[protocol], type },
    code: 'invalid_request',
  }));

const CREATED = CREATE.responses;
const BAD: readonly Bad[] = [
  ...PROTOCOLS.flatMap((protocol) =>
    NO_EVENTS.map(([what, send, code]): Bad => ({ protocol, what, send, code })),
  ),
  ...eventsOfNoType(undefined, 'an event without a type'),
  ...eventsOfNoType(5, 'an event whose type is a number'),
  ...eventsOfNoType('', 'an event whose type is empty'),
  ...eventsOfNoType('response.novelty', 'an unknown event'),
  ...eventsOfNoType('Response.create', 'an event in other letters'),
  ...eventsOfNoType('response.steer', 'an event that begins turns by itself'),
  ...(
    [
      ['an event of Realtime', { type: 'input_audio_buffer.append', audio: '' }, 'invalid_request'],
      ['a cancellation', { type: 'response.cancel' }, 'invalid_request'],
      ['a stream_id that is a number', { ...CREATED, stream_id: 1 }, 'invalid_request'],
      ['a stream_id that is null', { ...CREATED, stream_id: null }, 'invalid_request'],
      ['an empty stream_id', { ...CREATED, stream_id: '' }, 'invalid_request'],
      ['a stream_id with a space', { ...CREATED, stream_id: 'a b' }, 'invalid_request'],
      ['a long stream_id', { ...CREATED, stream_id: 'x'.repeat(129) }, 'invalid_request'],
      ['generate that is a text', { ...CREATED, generate: 'yes' }, 'invalid_request'],
      ['a name in other letters', { ...CREATED, Stream_Id: 'a' }, 'invalid_request'],
      ['a model that is a number', { ...CREATED, model: 5 }, 'cost_unbounded'],
      ['no model', { ...CREATED, model: undefined }, 'cost_unbounded'],
      ['a bound that is a text', { ...CREATED, max_output_tokens: '20' }, 'cost_unbounded'],
      ['a bound below 1', { ...CREATED, max_output_tokens: -1 }, 'cost_unbounded'],
      ['tools that are a text', { ...CREATED, tools: 'f' }, 'cost_unbounded'],
      ['a tool that is a text', { ...CREATED, tools: ['f'] }, 'cost_unbounded'],
      [
        'a value that is missing',
        '{"type":"response.create","model":"gpt-4.1-mini","input":}',
        'invalid_json',
      ],
    ] as const
  ).map(([what, send, code]): Bad => ({ protocol: 'responses', what, send, code })),
  ...(
    [
      ['an event_id that is a number', { ...CREATE.realtime, event_id: 1 }],
      ['an unknown field', { ...CREATE.realtime, novelty: 1 }],
      ['a response that is a text', { ...CREATE.realtime, response: 'x' }],
      ['an unknown field of a response', { ...CREATE.realtime, response: { novelty: 1 } }],
      ['tools that are a text', { ...CREATE.realtime, response: { tools: 'f' } }],
      ['another conversation', { ...CREATE.realtime, response: { conversation: 'c' } }],
      ['a session that is missing', { type: 'session.update' }],
      ['a session that is a text', { type: 'session.update', session: 'x' }],
      ['another kind of session', { type: 'session.update', session: { type: 'transcription' } }],
      ['sound settings that are a text', { type: 'session.update', session: { audio: 'x' } }],
      [
        'another kind of detection',
        { type: 'session.update', session: { audio: { input: { turn_detection: { type: 'x' } } } } },
      ],
      ['sound that is a number', { type: 'input_audio_buffer.append', audio: 5 }],
      ['sound that is missing', { type: 'input_audio_buffer.append' }],
      ['sound in a commit', { type: 'input_audio_buffer.commit', audio: '' }],
      ['an item that is missing', { type: 'conversation.item.create' }],
      ['an item of another kind', { type: 'conversation.item.create', item: { type: 'x' } }],
      ['a place that is a number', { type: 'conversation.item.create', previous_item_id: 1, item: {} }],
      ['the id of an item that is a number', { type: 'conversation.item.delete', item_id: 1 }],
      ['the id of an item that is missing', { type: 'conversation.item.retrieve' }],
      [
        'an end of sound that is a text',
        { type: 'conversation.item.truncate', item_id: 'i', content_index: 0, audio_end_ms: '9' },
      ],
      ['the id of a response that is a list', { type: 'response.cancel', response_id: ['r'] }],
    ] as const
  ).map(([what, send]): Bad => ({ protocol: 'realtime', what, send, code: 'invalid_request' })),
  // Out of order.
  ...PROTOCOLS.map((protocol): Bad => {
    const code = 'concurrency_limited';
    return { protocol, what: 'a second turn', send: CREATE[protocol], code, while: 'a turn runs' };
  }),
  {
    protocol: 'responses',
    what: 'a turn after one that the API does not know',
    send: { ...CREATED, previous_response_id: 'resp_0' },
    code: 'previous_response_not_found',
    by: 'the API',
  },
  {
    protocol: 'realtime',
    what: 'another model after a turn',
    send: { type: 'session.update', session: { model: 'gpt-realtime-2' } },
    code: 'invalid_request',
    while: 'a turn runs',
  },
  ...(
    [
      ['a commit of nothing', { type: 'input_audio_buffer.commit' }, 'input_audio_buffer_commit_empty', []],
      [
        'a second commit',
        { type: 'input_audio_buffer.commit' },
        'input_audio_buffer_commit_empty',
        [{ type: 'input_audio_buffer.append', audio: 'AAAA' }, { type: 'input_audio_buffer.commit' }],
      ],
      ['a cancellation without a response', { type: 'response.cancel' }, 'response_cancel_not_active', []],
      [
        'the end of an unknown item',
        { type: 'conversation.item.truncate', item_id: 'i', content_index: 0, audio_end_ms: 9 },
        'item_not_found',
        [],
      ],
      ['an unknown item', { type: 'conversation.item.delete', item_id: 'i' }, 'item_not_found', []],
    ] as const
  ).map(
    ([what, send, code, after]): Bad => ({ protocol: 'realtime', what, send, code, after, by: 'the API' }),
  ),
];

describe('bad input on a socket', () => {
  test.each(BAD)(
    '$protocol: $what gets the error event $code, and the next turn works',
    async ({ protocol, send, code, after = [], while: running, by }) => {
      const url = await issue(protocol);
      const holder = await open(protocol, url);
      holdsBack = running !== undefined;
      if (running) {
        holder.send(CREATE[protocol]);
        await holder.next('response.created');
      }
      for (const each of after) holder.send(each);
      await eventually(async () => provider.frames().length >= after.length);
      const before = provider.frames().length;
      const { held, used } = await statusOf(url);
      holder.send(send);
      const refused = await holder.next('error');
      expect(codeOf(refused)).toBe(code);
      // An event of the API's own has its ids; one of the gateway has the id of the refusal.
      if (!by) expect(refused).toMatchObject({ error: { request_id: expect.any(String) } });
      expect(await statusOf(url)).toMatchObject({
        ...{ held, spent: 0 },
        // A turn that the API refused was sent, which is a use.
        used: Number(used) + (by && protocol === 'responses' ? 1 : 0),
      });
      for (const end of pending) end();
      holdsBack = false;
      if (running) await holder.next(LAST[protocol]);
      await turn(protocol, holder);
      expect(provider.frames().length).toBe(before + (by ? 1 : 0) + 1);
      const turns = running ? 2 : 1;
      expect(await statusOf(url)).toMatchObject({ held: 0, spent: turns * COST[protocol] });
      holder.socket.close();
    },
  );

  test.each(PROTOCOLS)('%s: audio or input after other events is valid input', async (protocol) => {
    const url = await issue(protocol);
    const holder = await open(protocol, url);
    if (protocol === 'realtime')
      for (const type of ['append', 'commit', 'append', 'clear'])
        holder.send({ type: `input_audio_buffer.${type}`, ...(type === 'append' && { audio: 'AAAA' }) });
    for (let i = 0; i < 2; i++) await turn(protocol, holder);
    expect(holder.events.map(codeOf)).not.toContain('error');
    expect(await statusOf(url)).toMatchObject({ used: 2, held: 0, spent: 2 * COST[protocol] });
    holder.socket.close();
  });
});

const LONG = frame(TEXT, 'x'.repeat(MOST_BYTES + 1));
const HEAD_OF_64_BITS = Buffer.from([0x80 | TEXT, 0x80 | 127, 0x7f, ...Array<number>(11).fill(0xff)]);
const part = (bytes: string) => frame(CONTINUATION, bytes, { fin: false });
/** Frames that end their socket, the code that closes it, and that of the error event before. */
const ENDING: readonly (readonly [what: string, bytes: Buffer, closes: number, code?: string])[] = [
  ['a message that is too long', LONG, 1009, 'body_too_large'],
  ['the head of one of 64 bits', HEAD_OF_64_BITS, 1009, 'body_too_large'],
  [
    'a message that grows too long',
    Buffer.concat([frame(TEXT, '{', { fin: false }), part('x'.repeat(MOST_BYTES))]),
    1009,
    'body_too_large',
  ],
  [
    'a message in very many frames',
    Buffer.concat([frame(TEXT, '{', { fin: false }), ...Array.from({ length: 256 }, () => part('x'))]),
    1008,
    'invalid_request',
  ],
  ['an unknown opcode', frame(3, 'x'), 1002],
  ['a frame without a mask', frame(TEXT, '{}', { masked: false }), 1002],
  ['a continuation of nothing', frame(CONTINUATION, 'x'), 1002],
  ['a reserved bit', Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002],
  ['a long ping', frame(PING, 'x'.repeat(126)), 1002],
  ['bytes that are no UTF-8', frame(TEXT, Buffer.from([0xff, 0xfe])), 1007],
];

type Ending = { protocol: Protocol; what: string; bytes: Buffer; closes: number; code: string | undefined };
const ENDINGS: readonly Ending[] = PROTOCOLS.flatMap((protocol) =>
  ENDING.map(([what, bytes, closes, code]) => ({ protocol, what, bytes, closes, code })),
);

describe('invalid input that ends a socket', () => {
  test.each(ENDINGS)(
    '$protocol: $what closes it with the code of RFC 6455, after the error event if its frames could be read',
    async ({ protocol, bytes, closes, code }) => {
      const url = await issue(protocol);
      const { socket, got, ended } = await rawSocket(url);
      if (protocol === 'realtime') await eventually(async () => got().includes('"session.updated"'));
      const before = provider.frames().length;
      socket.write(bytes);
      await ended;
      expect(closeCode(got())).toBe(closes);
      const text = got().toString('latin1');
      expect([text.includes('"type":"error"'), text.includes(`"code":"${code}"`)]).toEqual([!!code, !!code]);
      expect(provider.frames().length).toBe(before);
      const holder = await open(protocol, url);
      await turn(protocol, holder);
      expect(await statusOf(url)).toMatchObject({ used: 1, held: 0, spent: COST[protocol] });
      holder.socket.close();
    },
  );

  test.each(PROTOCOLS)('%s: does not lose a running turn, which costs its usage', async (protocol) => {
    const url = await issue(protocol);
    const holder = await open(protocol, url);
    holdsBack = true;
    holder.send(CREATE[protocol]);
    await holder.next('response.created');
    holder.send(`{"type":"response.create","x":"${'x'.repeat(MOST_BYTES)}"}`);
    expect(codeOf(await holder.next('error'))).toBe('body_too_large');
    expect((await holder.closed).code).toBe(1009);
    expect((await statusOf(url)).held).toBeGreaterThan(0);
    for (const end of pending) end();
    await eventually(async () => {
      const { held, spent } = await statusOf(url);
      return held === 0 && spent === COST[protocol];
    });
  });
});
