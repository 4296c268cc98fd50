import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { openSocket, type RefusedHandshake } from './holder.ts';
import {
  type RealtimeProvider,
  type Response,
  SPEECH,
  startRealtimeProvider,
  usageOf,
} from './realtime-provider.ts';
import type { Json } from './responses-provider.ts';

let provider: RealtimeProvider;
let stack: Stack;
const run = ({ end }: Response) => end();
const change = (event: Json): Json | undefined => event;
beforeAll(async () => {
  provider = await startRealtimeProvider();
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.sockets.length = 0;
  provider.sessions.length = 0;
  Object.assign(provider, { run, change, billed: 0, selfBegun: 0 });
});

const LIMIT = 5_000_000;
const HOLD = 32_768 * 32 + 4_096 * 64;
const issue = (more: object = {}) =>
  stack.issue({
    ...{ provider: 'openai', path: '/v1/realtime', client_api_key: 'sk-real', sockets: true },
    ...{ cost_limit: LIMIT, ...more },
  });
const open = (url: string) => openSocket(`${url}?model=gpt-realtime`);
const CREATE = { type: 'response.create' };
const SPEAK = { type: 'input_audio_buffer.append', audio: SPEECH };
const statusOf = async (url: string) =>
  (await (await fetch(url.replace(/\/v1\/realtime$/, ''))).json()) as {
    used: number;
    spent: number;
    held: number;
  };
const ask = (path: string, method: string) =>
  fetch(`${stack.issuerUrl}${path}`, { method, headers: { authorization: `Bearer ${stack.apiKey}` } });
const code = (error: string) => ({ type: 'error', error: expect.objectContaining({ code: error }) });
const creates = () => provider.frames().filter(({ type }) => type === 'response.create');
/** A socket with a response under way. */
async function withTurn(url: string) {
  provider.run = () => {};
  const holder = await open(url);
  holder.send(CREATE);
  await holder.next('response.created');
  return holder;
}

describe('an API that starts responses without a request', () => {
  const detection = (session: unknown, value: unknown): Json => {
    const held = session as { audio: { input: object } };
    return { ...held, audio: { ...held.audio, input: { ...held.audio.input, turn_detection: value } } };
  };

  test.each<[string, (session: unknown) => unknown]>([
    [
      'because it ignores the session that it was sent',
      (session) => detection(session, { type: 'server_vad' }),
    ],
    ['after a silence', (session) => detection(session, { create_response: false, idle_timeout_ms: 5_000 })],
    ['as far as is known', () => ({ type: 'realtime' })],
  ])('%s gets no event of a holder, and the socket is cut', async (_why, stated) => {
    const { url } = await issue();
    provider.change = (event) =>
      event.type === 'session.updated' ? { ...event, session: stated(event.session) } : event;
    const holder = await open(url);
    holder.send(SPEAK);
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(provider.frames().map(({ type }) => type)).toEqual(['session.update']);
    expect(provider.selfBegun).toBe(0);
  });

  test('after its session was changed is cut, and its turn is charged its hold', async () => {
    const { url } = await issue();
    const holder = await withTurn(url);
    provider.change = (event) =>
      event.type === 'session.updated'
        ? { ...event, session: detection(event.session, { type: 'server_vad', create_response: true }) }
        : event;
    holder.send({ type: 'session.update', session: { instructions: 'x' } });
    expect(await holder.closed).toMatchObject({ code: 1011 });
    await eventually(async () => (await statusOf(url)).held === 0);
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: HOLD });
  });

  test.each([
    ['of no turn', () => null],
    ['of a turn that never was', () => ({ presign_turn: 'x' })],
    ['of a turn that has one', (turn: unknown) => turn],
  ])('with a response %s is cut', async (_what, metadata) => {
    const { url } = await issue();
    const holder = await withTurn(url);
    const [{ response: begun } = {}] = creates();
    const own = (begun as Json).metadata;
    const response = { id: 'resp_other', metadata: metadata(own) };
    provider.sockets[0]?.socket.send(JSON.stringify({ type: 'response.created', response }));
    expect(await holder.closed).toMatchObject({ code: 1011 });
    await eventually(async () => (provider.sockets[0]?.socket.readyState ?? 0) > 1);
    // The response of the turn, and the other one, of which nothing is known.
    await eventually(async () => (await statusOf(url)).spent === 2 * HOLD);
  });

  test('that refuses to set the session is cut', async () => {
    const { url } = await issue();
    const { serve } = provider;
    provider.serve = ({ event_id }, { socket }) =>
      socket.send(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', event_id } }));
    const holder = await open(url);
    holder.send(CREATE);
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(provider.frames()).toHaveLength(1);
    provider.serve = serve;
  });

  test('with a response on an idle socket is charged the most that it can cost', async () => {
    const { url } = await issue();
    const holder = await open(url);
    holder.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [] } });
    await holder.next('conversation.item.added');
    provider.sockets[0]?.socket.send(
      JSON.stringify({ type: 'response.created', response: { id: 'resp_x' } }),
    );
    expect(await holder.closed).toMatchObject({ code: 1011 });
    await eventually(async () => (await statusOf(url)).spent === HOLD);
    expect(await statusOf(url)).toMatchObject({ used: 1, held: 0 });
  });

  test('with a response that the URL cannot pay ends the URL', async () => {
    const { url } = await issue({ cost_limit: Math.ceil(HOLD * 1.5) });
    const holder = await withTurn(url);
    provider.sockets[0]?.socket.send(
      JSON.stringify({ type: 'response.created', response: { id: 'resp_x' } }),
    );
    expect(await holder.closed).toMatchObject({ code: 1011 });
    await eventually(async () => ((await statusOf(url)) as unknown as { revoked: boolean }).revoked);
    expect((await statusOf(url)).spent).toBe(HOLD);
  });

  test.each<[string, (session: Json) => Json]>([
    [
      'transcribes',
      (session) => ({ ...session, audio: { input: { turn_detection: null, transcription: {} } } }),
    ],
    ['is a transcription', (session) => ({ ...session, type: 'transcription' })],
  ])('whose session %s is cut', async (_what, stated) => {
    const { url } = await issue();
    provider.change = (event) =>
      event.type === 'session.updated' ? { ...event, session: stated(event.session as Json) } : event;
    expect(await (await open(url)).closed).toMatchObject({ code: 1011 });
  });

  test('of another model is cut', async () => {
    const { url } = await issue();
    provider.change = (event) =>
      event.type === 'session.created'
        ? { ...event, session: { ...(event.session as Json), model: 'gpt-4.1' } }
        : event;
    const holder = await open(url);
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect((await statusOf(url)).used).toBe(0);
  });
});

describe('a turn with an unknown cost', () => {
  test.each<[string, (response: Response) => void]>([
    ['its usage is missing', ({ end }) => end('completed', null)],
    ['its usage is text', ({ end }) => end('failed', { input_tokens: '1', output_tokens: 1 })],
    ['it wrote words for no input', ({ end }) => end('completed', usageOf(0, 5))],
    ['a count of its usage is new', ({ end }) => end('completed', { ...usageOf(10, 5), dream_tokens: 7 })],
  ])('because %s is charged its hold', async (_why, ends) => {
    const { url } = await issue();
    provider.run = ends;
    const holder = await open(url);
    holder.send(CREATE);
    await holder.next('response.done');
    await eventually(async () => (await statusOf(url)).held === 0);
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: HOLD });
    holder.socket.close();
  });

  test('whose end belongs to another response is held until the socket ends, and then charged its hold', async () => {
    const { url } = await issue();
    const holder = await withTurn(url);
    const response = { id: 'resp_other', status: 'completed', usage: usageOf(1, 1) };
    provider.sockets[0]?.socket.send(JSON.stringify({ type: 'response.done', response }));
    await holder.next('response.done');
    expect(await statusOf(url)).toMatchObject({ spent: 0, held: HOLD });
    provider.sockets[0]?.socket.terminate();
    expect(await holder.closed).toMatchObject({ code: 1011 });
    await eventually(async () => (await statusOf(url)).spent === HOLD);
  });

  test('with an error after its beginning is charged its hold, and the socket closes', async () => {
    const { url } = await issue();
    const holder = await withTurn(url);
    const [{ event_id } = {}] = creates();
    const error = { type: 'invalid_request_error', code: 'x', message: 'x', event_id };
    provider.sockets[0]?.socket.send(JSON.stringify({ type: 'error', error }));
    expect(await holder.next('error')).toMatchObject({ error: { event_id: null } });
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await statusOf(url)).toMatchObject({ spent: HOLD, held: 0 });
  });
});

describe('an error without an event id', () => {
  test('of the API itself ends the running turns, which are charged their hold', async () => {
    const { url } = await issue();
    const holder = await withTurn(url);
    const error = { type: 'server_error', code: 'x', message: 'x', event_id: null };
    provider.sockets[0]?.socket.send(JSON.stringify({ type: 'error', error }));
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await statusOf(url)).toMatchObject({ spent: HOLD, held: 0 });
  });
});

test('a turn that was cut before its response began is charged once', async () => {
  const { url } = await issue();
  const held: Json[] = [];
  provider.change = (event) => (event.type === 'response.created' ? void held.push(event) : event);
  provider.run = () => {};
  const holder = await open(url);
  holder.send(CREATE);
  await eventually(async () => held.length === 1);
  const socket = provider.sockets[0]?.socket;
  const error = { type: 'server_error', code: 'x', message: 'x', event_id: null };
  for (const event of [{ type: 'error', error }, ...held, ...held]) socket?.send(JSON.stringify(event));
  expect(await holder.closed).toMatchObject({ code: 1011 });
  await eventually(async () => (socket?.readyState ?? 0) > 1 && (await statusOf(url)).held === 0);
  expect(await statusOf(url)).toMatchObject({ used: 1, spent: HOLD, revoked: false });
});

test('an API that keeps starting responses is charged once for each', async () => {
  const { url } = await issue({ cost_limit: 10 * HOLD });
  const holder = await open(url);
  const socket = provider.sockets[0]?.socket;
  for (const id of ['a', 'a', 'b', 'a'])
    socket?.send(JSON.stringify({ type: 'response.created', response: { id } }));
  expect(await holder.closed).toMatchObject({ code: 1011 });
  await eventually(async () => (await statusOf(url)).spent === 2 * HOLD);
  expect(await statusOf(url)).toMatchObject({ used: 2, held: 0, revoked: false });
});

describe('a URL with a limit', () => {
  test.each(['gpt-realtime-whisper', 'gpt-live-1', 'anything'])(
    'opens no session of %s, because its cost is unknown',
    async (model) => {
      const { url } = await issue();
      const error = await openSocket(`${url}?model=${model}`).catch((refused: RefusedHandshake) => refused);
      expect(error).toMatchObject({ code: expect.stringMatching(/^(?:cost_unbounded|price_unknown)$/) });
      expect(provider.sockets).toEqual([]);
    },
  );

  test('has a session without turns if its money is too little', async () => {
    const { url } = await issue({ cost_limit: 1 });
    const holder = await open(url);
    holder.send(CREATE);
    expect(await holder.next('error')).toMatchObject({ error: { code: 'cost_limit_too_low' } });
    holder.socket.close();
  });
});

test.each([
  ['openai', '/v1/realtime'],
  ['openai', '/v1/Realtime/Client_Secrets'],
  ['openai', '/v1/realtime/client_secrets'],
  ['openai', '/v1/realtime/calls'],
  ['openai', '/v1/realtime/calls/rtc_1/accept'],
  ['openai', '/v1/realtime/sessions'],
  ['openai', '/v1/realtime/transcription_sessions'],
  ['openai', '/v1/realtime/translations/client_secrets'],
  ['openai', '/v1/live/sessions'],
  ['openai', '/v1/chatkit/sessions'],
  ['openai', '/v1/organization/admin_api_keys'],
  ['xai', '/v1/realtime/client_secrets'],
  ['google', '/v1alpha/auth_tokens'],
  ['openrouter', '/api/v1/keys'],
  ['openrouter', '/api/v1/auth/keys/code'],
  ['openai', '/v1/live/sessions/s_1/fork'],
  ['perplexity', '/generate_auth_token'],
  ['fireworks', '/v1/accounts/a/users/u/apiKeys'],
])(
  'a POST of %s to %s is refused, because no limit would apply to the session that it opens',
  async (id, path) => {
    const asked = { provider: id, client_api_key: 'sk-real', max_uses: 1 };
    const { url } = await stack.issue({ ...asked, path: ['/v1/first', path.replace(/[^/]+$/, '*')] });
    const answer = await fetch(url.replace('/v1/first', path), { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.get('x-presign-code')]).toEqual([403, 'path_not_allowed']);
  },
);

test('no URL is issued for such a path, unless it opens a socket', async () => {
  const asked = { provider: 'openai', client_api_key: 'sk-real' };
  const refusals = await Promise.all(
    ['/v1/realtime', '/v1/realtime/client_secrets', ['/v1/responses', '/v1/realtime/sessions']].map((path) =>
      stack.issue({ ...asked, path }).then(
        () => undefined,
        (error: Error) => error.message,
      ),
    ),
  );
  expect(refusals).toEqual([
    expect.stringContaining('path: is opened as a socket alone'),
    expect.stringContaining('path: opens sessions'),
    expect.stringContaining('path[1]: opens sessions'),
  ]);
});

describe("a URL's config", () => {
  test('that switches answers off stops the answer to speech before its holder sets the session', async () => {
    const turn_detection = { type: 'server_vad', create_response: false };
    const { url } = await issue({ config: { audio: { input: { turn_detection } } } });
    const holder = await open(url);
    holder.send(SPEAK);
    await holder.next('input_audio_buffer.committed');
    holder.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [] } });
    await holder.next('conversation.item.added');
    expect(creates()).toEqual([]);
    holder.socket.close();
  });

  test('that allows few fields and bounds the output lets turns pass', async () => {
    const { url } = await issue({
      ...{ config: { max_output_tokens: 50 }, allowed_fields: ['instructions'] },
    });
    const holder = await open(url);
    holder.send({ ...CREATE, response: { instructions: 'x' } });
    await holder.next('response.done');
    expect(creates()[0]?.response).toMatchObject({ instructions: 'x', max_output_tokens: 50 });
    for (const response of [{ max_output_tokens: 90 }, { tools: [] }]) {
      holder.send({ ...CREATE, response });
      expect(await holder.next('error')).toMatchObject(code('field_not_allowed'));
    }
    holder.socket.close();
  });
});

describe('a holder', () => {
  test('whose errors have the name of a turn frees no hold', async () => {
    const { url } = await issue();
    provider.run = () => {};
    const holder = await open(url);
    // An error of an event of the same name must not be taken for one of the turn.
    holder.send({ ...CREATE, event_id: 'same' });
    holder.send({ type: 'input_audio_buffer.commit', event_id: 'same' });
    expect(await holder.next('error')).toMatchObject({
      error: { code: 'input_audio_buffer_commit_empty', event_id: 'same' },
    });
    expect(creates()[0]?.event_id).not.toBe('same');
    expect(await statusOf(url)).toMatchObject({ spent: 0, held: HOLD });
    holder.socket.close();
  });

  test('who names a turn itself gets the name of the gateway', async () => {
    const { url } = await issue();
    const holder = await open(url);
    holder.send({ ...CREATE, response: { metadata: { presign_turn: 'mine', a: 'b' } } });
    const done = await holder.next('response.done');
    const { metadata } = done.response as { metadata: Json };
    expect(metadata).toMatchObject({ a: 'b' });
    expect(metadata.presign_turn).not.toBe('mine');
    expect((await statusOf(url)).spent).toBe(120);
    holder.socket.close();
  });

  test('who switches detection on and off, and speaks, gets no response without a hold', async () => {
    const { url } = await issue();
    const holder = await open(url);
    const set = (turn_detection: unknown) =>
      holder.send({ type: 'session.update', session: { audio: { input: { turn_detection } } } });
    for (const create_response of [true, false, null, true]) {
      set(null);
      set({ type: 'semantic_vad', create_response });
      holder.send(SPEAK);
    }
    holder.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [] } });
    await holder.next('conversation.item.added');
    // A speech that ends is followed by a turn, so uses, responses and money are compared in one answer.
    await eventually(async () => {
      const { used, spent, held } = await statusOf(url);
      return used > 0 && held === 0 && creates().length === used && spent === used * 120;
    });
    expect(provider.selfBegun).toBe(0);
    holder.socket.close();
  });

  test('who speaks and starts a response at once has one turn at a time in the conversation', async () => {
    const { url } = await issue({ max_uses: 50 });
    provider.run = () => {};
    const holder = await open(url);
    for (let i = 0; i < 5; i++) {
      holder.send(SPEAK);
      holder.send(CREATE);
    }
    holder.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [] } });
    await holder.next('conversation.item.added');
    await eventually(async () => provider.all().length === 1);
    expect((await statusOf(url)).held).toBe(HOLD);
    provider.all()[0]?.end();
    await eventually(async () => (await statusOf(url)).held <= HOLD);
    // The turn that was due for the speeches may begin now.
    await eventually(async () => {
      for (const response of provider.all()) response.end();
      return (await statusOf(url)).held === 0;
    });
    holder.socket.close();
  });

  test('who asks for more than the URL has left gets an error event and no response', async () => {
    const { url } = await issue({ cost_limit: Math.ceil(HOLD * 1.5) });
    provider.run = () => {};
    const holder = await open(url);
    const none = { ...CREATE, response: { conversation: 'none' } };
    for (let i = 0; i < 3; i++) holder.send({ ...none, event_id: `e${i}` });
    await holder.next('response.created');
    expect(await holder.next('error')).toMatchObject({ error: { code: 'cost_held', event_id: 'e1' } });
    expect(await holder.next('error')).toMatchObject({ error: { code: 'cost_held', event_id: 'e2' } });
    expect(creates()).toHaveLength(1);
    const { held, spent } = await statusOf(url);
    expect(held + spent).toBeLessThanOrEqual(HOLD * 1.5);
    holder.socket.close();
  });
});

describe('the end of a socket', () => {
  test('by expiry waits for the running turn, and speech starts no other', async () => {
    const { url } = await issue({ expires_in: 4 });
    const detection = { type: 'server_vad', interrupt_response: false };
    const holder = await open(url);
    provider.run = () => {};
    holder.send({ type: 'session.update', session: { audio: { input: { turn_detection: detection } } } });
    holder.send(CREATE);
    await holder.next('response.created');
    await sleep(4_200);
    holder.send(SPEAK);
    await holder.next('input_audio_buffer.committed');
    provider.all()[0]?.end();
    await holder.next('response.done');
    expect(await holder.closed).toEqual({ code: 4401, reason: 'token_expired' });
    expect(creates()).toHaveLength(1);
  });

  test('by revocation cuts the turn, and charges its hold', async () => {
    const { url, grant_id } = await issue();
    const holder = await withTurn(url);
    expect((await ask(`/v1/grants/${grant_id}`, 'DELETE')).status).toBeLessThan(300);
    expect(await holder.next('error')).toMatchObject(code('grant_revoked'));
    expect(await holder.closed).toEqual({ code: 4403, reason: 'grant_revoked' });
    await eventually(async () => (provider.sockets[0]?.socket.readyState ?? 0) > 1);
  });

  test('by its holder leaves the upstream open until the usage of the turn arrives', async () => {
    const { url } = await issue();
    const holder = await withTurn(url);
    holder.socket.terminate();
    await eventually(async () => holder.socket.readyState === 3);
    expect(provider.sockets[0]?.socket.readyState).toBe(1);
    provider.all()[0]?.end();
    await eventually(async () => (await statusOf(url)).held === 0);
    expect((await statusOf(url)).spent).toBe(120);
    await eventually(async () => (provider.sockets[0]?.socket.readyState ?? 0) > 1);
  });

  test('before its session is set leaves nothing open', async () => {
    const { url } = await issue({ concurrent_calls: 1 });
    provider.change = (event) => (event.type === 'session.updated' ? undefined : event);
    const holder = await open(url);
    holder.send(CREATE);
    holder.socket.close();
    await holder.closed;
    provider.change = change;
    const again = await eventually(() => open(url).catch(() => undefined));
    again.send(CREATE);
    await again.next('response.done');
    expect(await statusOf(url)).toMatchObject({ used: 1, held: 0 });
    again.socket.close();
  });
});

test('a stopping gateway lets the turn end, and speech starts no other', async () => {
  const own = await startStack({ providers: { openai: { base_url: provider.url } } });
  try {
    const asked = { provider: 'openai', path: '/v1/realtime', client_api_key: 'sk-real', sockets: true };
    const { url } = await own.issue({ ...asked, cost_limit: LIMIT });
    const holder = await withTurn(url);
    const stopping = own.close();
    provider.all().at(-1)?.end();
    await holder.next('response.done');
    expect(await holder.closed).toMatchObject({ code: 1001 });
    await stopping;
  } finally {
    await own.close().catch(() => {});
  }
});
