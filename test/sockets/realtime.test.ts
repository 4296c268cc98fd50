import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { codeOf, type HolderSocket, openSocket, type RefusedHandshake } from './holder.ts';
import {
  type RealtimeProvider,
  type Response,
  SILENCE,
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
  Object.assign(provider, { run, change, billed: 0, selfBegun: 0, refuse: undefined });
});

const issue = (more: object = {}) =>
  stack.issue({
    ...{ provider: 'openai', path: '/v1/realtime', client_api_key: 'sk-real-secret-key', sockets: true },
    ...more,
  });
const open = (url: string, query = '?model=gpt-realtime') => openSocket(`${url}${query}`);
const LIMIT = { cost_limit: 5_000_000 };
const CREATE = { type: 'response.create' };
const statusOf = async (url: string) =>
  (await (await fetch(url.replace(/\/v1\/realtime$/, ''))).json()) as {
    used: number;
    spent: number;
    held: number;
  };
const rowsOf = async (grantId: string) => {
  const answer = await fetch(`${stack.issuerUrl}/v1/calls?grant_id=${grantId}`, {
    headers: { authorization: `Bearer ${stack.apiKey}` },
  });
  return ((await answer.json()) as { data: Json[] }).data;
};
const refusedBy = (url: string, query?: string) =>
  open(url, query).then(
    () => undefined,
    (error: RefusedHandshake) => error,
  );
/** The events that the provider got, without the one that opens a session. */
const sent = (type?: string) =>
  provider.frames().filter((event) => type === undefined || event.type === type);
const turn = async (holder: HolderSocket, event: Json = CREATE) => {
  holder.send(event);
  return holder.next('response.done');
};

describe('a turn', () => {
  test('of text is a call: a use, a charge by its usage, and a row', async () => {
    const { url, grant_id } = await issue({ ...LIMIT, max_uses: 5 });
    const holder = await open(url);
    expect(await holder.next('session.created')).toBeDefined();
    for (let i = 0; i < 3; i++)
      expect(await turn(holder)).toMatchObject({ response: { status: 'completed' } });
    // 10 tokens of text at 4 microdollars, and 5 at 16.
    expect(await statusOf(url)).toMatchObject({ used: 3, held: 0, spent: 3 * 120 });
    const rows = await eventually(async () => {
      const found = await rowsOf(grant_id);
      return found.length === 3 ? found : undefined;
    });
    expect(rows.map(({ turn }) => turn).sort()).toEqual([1, 2, 3]);
    for (const row of rows)
      expect(row).toMatchObject({
        connection: holder.headers['x-presign-request-id'],
        ...{ outcome: 'passed', input_tokens: 10, output_tokens: 5, status: 200, model: 'gpt-realtime' },
      });
    holder.socket.close();
    await holder.closed;
  });

  test('is held at its highest price before it is sent, and nothing is held between turns', async () => {
    const { url } = await issue(LIMIT);
    const responses: Response[] = [];
    provider.run = (response) => void responses.push(response);
    const holder = await open(url);
    await holder.next('session.updated');
    expect((await statusOf(url)).held).toBe(0);
    holder.send({ ...CREATE, response: { max_output_tokens: 1_000 } });
    await holder.next('response.created');
    expect((await statusOf(url)).held).toBe(32_768 * 32 + 1_000 * 64);
    expect(sent('response.create')[0]).toMatchObject({ response: { max_output_tokens: 1_000 } });
    responses[0]?.end();
    await holder.next('response.done');
    expect(await statusOf(url)).toMatchObject({ held: 0, spent: 120 });
    holder.socket.close();
  });

  test("without its own bound uses its session's, and gets one under a limit", async () => {
    const holder = await open((await issue(LIMIT)).url);
    await turn(holder);
    holder.send({ type: 'session.update', session: { type: 'realtime', max_output_tokens: 200 } });
    await turn(holder);
    const bounds = sent('response.create').map(({ response }) => (response as Json).max_output_tokens);
    expect(bounds).toEqual([4_096, 200]);
    holder.socket.close();
  });

  test('without a limit has a row with the cost of its usage, and audio and cached tokens have their own rates', async () => {
    const { url, grant_id } = await issue();
    const usage = usageOf(1_200, 300, {
      input_token_details: {
        ...{ text_tokens: 300, audio_tokens: 900, image_tokens: 0, cached_tokens: 500 },
        cached_tokens_details: { text_tokens: 100, audio_tokens: 400, image_tokens: 0 },
      },
      output_token_details: { text_tokens: 100, audio_tokens: 200 },
    });
    provider.run = ({ end }) => end('completed', usage);
    const holder = await open(url);
    await turn(holder);
    const [row] = await eventually(async () => {
      const rows = await rowsOf(grant_id);
      return rows.length > 0 ? rows : undefined;
    });
    const cost = 200 * 4 + 500 * 32 + 500 * 0.4 + 100 * 16 + 200 * 64;
    expect(row).toMatchObject({ cost, hold: null, uses: 1, input_tokens: 1_200, output_tokens: 300 });
    holder.socket.close();
  });

  test('with a tool continues with the output that its holder adds', async () => {
    const { url } = await issue(LIMIT);
    const holder = await open(url);
    const tools = [{ type: 'function', name: 'f', parameters: {} }];
    await turn(holder, { ...CREATE, response: { tools } });
    const item = { type: 'function_call_output', call_id: 'c', output: '{}' };
    holder.send({ type: 'conversation.item.create', item });
    expect(await holder.next('conversation.item.added')).toMatchObject({ item });
    await turn(holder);
    expect(sent('response.create')[0]).toMatchObject({ response: { tools } });
    expect((await statusOf(url)).used).toBe(2);
    holder.socket.close();
  });

  test('that its holder cancels costs what it has used', async () => {
    const { url } = await issue(LIMIT);
    provider.run = () => {};
    const holder = await open(url);
    holder.send(CREATE);
    await holder.next('response.created');
    holder.send({ type: 'response.cancel' });
    expect(await holder.next('response.done')).toMatchObject({ response: { status: 'cancelled' } });
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: 120, held: 0 });
    holder.socket.close();
  });

  test('outside of the conversation runs next to others, each with a hold', async () => {
    const { url } = await issue(LIMIT);
    provider.run = () => {};
    const holder = await open(url);
    holder.send(CREATE);
    for (let i = 0; i < 2; i++)
      holder.send({ ...CREATE, response: { conversation: 'none', metadata: { i: `${i}` } } });
    for (let i = 0; i < 3; i++) await holder.next('response.created');
    expect((await statusOf(url)).held).toBe(3 * (32_768 * 32 + 4_096 * 64));
    const [first, second, third] = provider.all();
    third?.end('completed', usageOf(30, 5));
    expect(await holder.next('response.done')).toMatchObject({ response: { metadata: { i: '1' } } });
    expect(await statusOf(url)).toMatchObject({ spent: 200, held: 2 * (32_768 * 32 + 4_096 * 64) });
    first?.end();
    second?.end();
    for (let i = 0; i < 2; i++) await holder.next('response.done');
    expect(await statusOf(url)).toMatchObject({ used: 3, spent: 440, held: 0 });
    holder.socket.close();
  });

  test('in a conversation with a running turn is refused', async () => {
    const { url } = await issue(LIMIT);
    provider.run = () => {};
    const holder = await open(url);
    holder.send(CREATE);
    await holder.next('response.created');
    holder.send({ ...CREATE, event_id: 'mine' });
    const refused = await holder.next('error');
    expect(refused).toMatchObject({ error: { code: 'concurrency_limited', event_id: 'mine' } });
    expect(sent('response.create')).toHaveLength(1);
    holder.socket.close();
  });

  test('that the API refuses costs nothing, and its error has the event id of its holder', async () => {
    const { url } = await issue(LIMIT);
    const holder = await open(url);
    await holder.next('session.updated');
    provider.serve = ({ event_id }, { socket }) =>
      socket.send(
        JSON.stringify({
          type: 'error',
          event_id: 'e',
          error: { type: 'invalid_request_error', code: 'bad', message: 'bad', event_id },
        }),
      );
    try {
      holder.send({ ...CREATE, event_id: 'mine' });
      expect(await holder.next('error')).toMatchObject({ error: { code: 'bad', event_id: 'mine' } });
      holder.send(CREATE);
      expect(await holder.next('error')).toMatchObject({ error: { code: 'bad', event_id: null } });
      expect(await statusOf(url)).toMatchObject({ spent: 0, held: 0 });
      expect(holder.socket.readyState).toBe(1);
    } finally {
      holder.socket.close();
      Object.assign(provider, { serve });
    }
  });
});

let serve: RealtimeProvider['serve'];
beforeAll(() => {
  serve = provider.serve;
});

describe('speech', () => {
  const speak = { type: 'input_audio_buffer.append', audio: SPEECH };

  test('is answered by a turn that the gateway starts after its hold, and never by the API itself', async () => {
    const { url, grant_id } = await issue(LIMIT);
    const holder = await open(url);
    for (let i = 0; i < 2; i++) {
      holder.send(speak);
      expect(await holder.next('response.done')).toMatchObject({ response: { status: 'completed' } });
    }
    expect(provider.selfBegun).toBe(0);
    expect(await statusOf(url)).toMatchObject({ used: 2, spent: 240, held: 0 });
    await eventually(async () => (await rowsOf(grant_id)).length === 2);
    holder.socket.close();
  });

  test('interrupts a response, which is charged what it has used, and is answered', async () => {
    const { url } = await issue(LIMIT);
    provider.run = () => {};
    const holder = await open(url);
    holder.send(speak);
    await holder.next('response.created');
    holder.send(speak);
    expect(await holder.next('response.done')).toMatchObject({ response: { status: 'cancelled' } });
    await holder.next('response.created');
    expect(await statusOf(url)).toMatchObject({ used: 2, spent: 120 });
    expect(provider.selfBegun).toBe(0);
    holder.socket.close();
  });

  test('that interrupts nothing is answered once the running response has ended', async () => {
    const { url } = await issue(LIMIT);
    const detection = { type: 'server_vad', interrupt_response: false };
    const holder = await open(url);
    holder.send({ type: 'session.update', session: { audio: { input: { turn_detection: detection } } } });
    provider.run = () => {};
    holder.send(CREATE);
    await holder.next('response.created');
    holder.send(speak);
    await holder.next('input_audio_buffer.committed');
    expect(sent('response.create')).toHaveLength(1);
    provider.all()[0]?.end();
    await holder.next('response.created');
    expect(sent('response.create')).toHaveLength(2);
    expect((await statusOf(url)).used).toBe(2);
    holder.socket.close();
  });

  test.each([
    ['without detection', null],
    ['if its holder begins responses itself', { type: 'semantic_vad', create_response: false }],
  ])('is not answered %s', async (_when, turn_detection) => {
    const { url } = await issue(LIMIT);
    const holder = await open(url);
    await holder.next('session.updated');
    holder.send({ type: 'session.update', session: { audio: { input: { turn_detection } } } });
    await holder.next('session.updated');
    holder.send(speak);
    if (turn_detection === null) holder.send({ type: 'input_audio_buffer.commit' });
    await holder.next('input_audio_buffer.committed');
    const own = { response: { metadata: { own: '1' } } };
    // The first response is the holder's.
    expect(await turn(holder, { ...CREATE, ...own })).toMatchObject(own);
    expect(sent('response.create')).toHaveLength(1);
    holder.socket.close();
  });

  test('that no money can pay gets an error event, and the socket is closed', async () => {
    const { url } = await issue({ max_uses: 1 });
    const holder = await open(url);
    await turn(holder);
    holder.send(speak);
    expect(await holder.next('error')).toMatchObject({ error: { code: 'uses_exhausted', event_id: null } });
    expect(await holder.closed).toEqual({ code: 4402, reason: 'uses_exhausted' });
    expect(sent('response.create')).toHaveLength(1);
  });
});

describe('a session', () => {
  test('is set before an event of its holder passes', async () => {
    const { url } = await issue();
    const waiting: Json[] = [];
    provider.change = (event) => {
      if (event.type !== 'session.updated') return event;
      waiting.push(event);
      return undefined;
    };
    const holder = await open(url);
    holder.send({ type: 'input_audio_buffer.append', audio: SPEECH });
    await eventually(async () => waiting.length === 1);
    expect(sent().map(({ type }) => type)).toEqual(['session.update']);
    provider.change = change;
    provider.sockets[0]?.socket.send(JSON.stringify(waiting[0]));
    await holder.next('response.done');
    expect(provider.selfBegun).toBe(0);
    holder.socket.close();
  });

  test('has the config of its URL from its start, whatever its holder sets', async () => {
    const config = {
      model: 'gpt-realtime-mini',
      instructions: 'Be brief.',
      max_output_tokens: 300,
      audio: { output: { voice: 'cedar' } },
    };
    const { url } = await issue({ ...LIMIT, config });
    const holder = await open(url, '?model=gpt-realtime-2');
    const set = { instructions: 'Be brief.', max_output_tokens: 300, audio: { output: { voice: 'cedar' } } };
    expect(await holder.next('session.updated')).toMatchObject({
      session: { model: 'gpt-realtime-mini', ...set },
    });
    const session = { instructions: 'Talk.', audio: { output: { voice: 'marin', speed: 1 } }, tools: [] };
    holder.send({ type: 'session.update', event_id: 'e1', session });
    expect(await holder.next('session.updated')).toMatchObject({ session: set });
    expect(sent('session.update')[1]).toMatchObject({
      event_id: 'e1',
      session: { tools: [], instructions: 'Be brief.' },
    });
    await turn(holder, { ...CREATE, response: { instructions: 'Talk.', max_output_tokens: 4_000 } });
    const [{ response } = {}] = sent('response.create');
    expect(response).toMatchObject({ instructions: 'Be brief.', max_output_tokens: 300 });
    expect(response).not.toHaveProperty('model');
    expect(provider.sockets[0]?.request.url).toBe('/v1/realtime?model=gpt-realtime-mini');
    holder.socket.close();
  });

  test('transcribes nothing', async () => {
    const holder = await open((await issue()).url);
    await holder.next('session.updated');
    const input = { transcription: { model: 'gpt-4o-mini-transcribe' }, noise_reduction: null };
    holder.send({ type: 'session.update', session: { type: 'realtime', audio: { input } } });
    expect(await holder.next('session.updated')).toMatchObject({
      session: { audio: { input: { transcription: null, noise_reduction: null } } },
    });
    holder.socket.close();
  });

  test.each([
    ['no model', ''],
    ['an empty one', '?model='],
    ['two models', '?model=gpt-realtime&model=gpt-realtime-2'],
    ['a transcription', '?intent=transcription'],
    ["another's call", '?model=gpt-realtime&call_id=rtc_1'],
    ['another spelling', '?Model=gpt-realtime'],
  ])('with %s in its address is refused', async (_what, query) => {
    expect(await refusedBy((await issue()).url, query)).toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
    expect(provider.sockets).toHaveLength(0);
  });

  test('of a model that its URL does not allow is refused', async () => {
    const { url } = await issue({ models: ['gpt-realtime-mini'] });
    expect(await refusedBy(url)).toMatchObject({ status: 403, code: 'model_not_allowed' });
    const holder = await open(url, '?model=gpt-realtime-mini');
    expect(await turn(holder)).toBeDefined();
    holder.socket.close();
  });

  test('with a config that no session can have is refused at issuing, or for a pattern at its handshake', async () => {
    const config = { tools: [{ type: 'mcp', server_url: 'https://x' }] };
    await expect(issue({ config })).rejects.toThrow('config.tools: session.tools[0]: the API calls remote');
    const { url } = await issue({ config, path: ['/v1/responses', '/v1/*'] });
    expect(await refusedBy(url.replace('/v1/responses', '/v1/realtime'))).toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
    expect(provider.sockets).toHaveLength(0);
  });

  test('cannot be opened by a POST, which would bypass the gateway', async () => {
    const { url } = await issue();
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/sdp' },
      body: 'v=0',
    });
    expect([answer.status, answer.headers.get('x-presign-code')]).toEqual([403, 'path_not_allowed']);
    expect(provider.posts).toEqual([]);
  });
});

describe('an event', () => {
  test.each<[string, object, Json | string | Buffer, string]>([
    ['that is not known', {}, { type: 'response.novelty' }, 'invalid_request'],
    ['without a type', {}, {}, 'invalid_request'],
    ['with an unknown field', {}, { ...CREATE, novelty: 1 }, 'invalid_request'],
    ['with another type of an id', {}, { ...CREATE, event_id: 1 }, 'invalid_request'],
    ['with an unknown field of a response', {}, { ...CREATE, response: { novelty: 1 } }, 'invalid_request'],
    [
      'with a model of its own',
      LIMIT,
      { ...CREATE, response: { model: 'gpt-realtime-mini' } },
      'invalid_request',
    ],
    ['with a stored prompt', {}, { ...CREATE, response: { prompt: { id: 'p' } } }, 'invalid_request'],
    [
      'with a remote MCP server',
      {},
      { ...CREATE, response: { tools: [{ type: 'mcp' }] } },
      'invalid_request',
    ],
    [
      'that approves a call of one',
      {},
      { type: 'conversation.item.create', item: { type: 'mcp_approval_response' } },
      'invalid_request',
    ],
    [
      'of another kind of session',
      {},
      { type: 'session.update', session: { type: 'transcription' } },
      'invalid_request',
    ],
    [
      'of a session with a remote MCP server',
      {},
      { type: 'session.update', session: { tools: [{ type: 'mcp' }] } },
      'invalid_request',
    ],
    [
      'of a session of another model',
      {},
      { type: 'session.update', session: { model: 'gpt-realtime-2' } },
      'invalid_request',
    ],
    [
      'of an unknown field of a session',
      {},
      { type: 'session.update', session: { proactive: true } },
      'invalid_request',
    ],
    ['of a session that is none', {}, { type: 'session.update', session: [] }, 'invalid_request'],
    [
      'with a field that is not allowed',
      { allowed_fields: ['model', 'audio'] },
      { ...CREATE, response: { instructions: 'x' } },
      'field_not_allowed',
    ],
    [
      'of a session with one',
      { allowed_fields: ['model', 'audio'] },
      { type: 'session.update', session: { instructions: 'x' } },
      'field_not_allowed',
    ],
    [
      'with too many bytes',
      { max_body_bytes: 50 },
      { ...CREATE, response: { instructions: 'x'.repeat(60) } },
      'body_too_large',
    ],
    [
      'with too many bytes of sound',
      { max_body_bytes: 60 },
      { type: 'input_audio_buffer.append', audio: 'x'.repeat(60) },
      'body_too_large',
    ],
    ['whose price is above what is left', { cost_limit: 1 }, CREATE, 'cost_limit_too_low'],
    [
      'with a bound that is no number',
      LIMIT,
      { ...CREATE, response: { max_output_tokens: 'all' } },
      'cost_unbounded',
    ],
    [
      'with many pairs',
      {},
      {
        ...CREATE,
        response: { metadata: Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, 'v'])) },
      },
      'invalid_request',
    ],
    ['that is an array', {}, '[]', 'unsupported_media_type'],
    ['that is no JSON', {}, '{"type":"response.create"}}', 'invalid_json'],
    ['of bytes', {}, Buffer.from('{}'), 'unsupported_media_type'],
    [
      'with a repeated key',
      {},
      `{"type":"input_audio_buffer.append","audio":"","type":"response.create"}`,
      'invalid_request',
    ],
    [
      'with a repeated key deep in it',
      {},
      `{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"create_response":false,"create_response":true}}}}}`,
      'invalid_request',
    ],
    [
      'with a key in other letters',
      {},
      {
        type: 'session.update',
        session: { audio: { input: { turn_detection: { type: 'server_vad', Create_Response: true } } } },
      },
      'invalid_request',
    ],
  ])('%s is refused, costs nothing, and the socket stays open', async (_what, more, event, code) => {
    const { url } = await issue(more);
    const holder = await open(url);
    await holder.next('session.updated');
    for (let i = 0; i < 2; i++) {
      holder.send(event as Json);
      const refused = await holder.next('error');
      expect(codeOf(refused)).toBe(code);
      expect(refused).toMatchObject({
        event_id: expect.any(String),
        error: { request_id: expect.any(String) },
      });
    }
    expect(sent()).toHaveLength(1);
    expect(await statusOf(url)).toMatchObject({ used: 0, spent: 0, held: 0 });
    expect(holder.socket.readyState).toBe(1);
    holder.socket.close();
  });

  test("of audio passes byte for byte, and the provider's key is masked in answers", async () => {
    const holder = await open((await issue(LIMIT)).url);
    await holder.next('session.updated');
    const text = `{ "type":"input_audio_buffer.append",\t"audio":"${SILENCE}" }`;
    holder.send(text);
    await eventually(async () => provider.raw().length === 2);
    expect(provider.raw()[1]).toBe(text);
    provider.sockets[0]?.socket.send('{"type":"x", "said":"sk-real-secret-key"}');
    expect(await holder.next('x')).toMatchObject({ said: '*'.repeat(18) });
    holder.socket.close();
  });
});
