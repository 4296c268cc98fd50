import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, codeOf, openSocket, type RefusedHandshake, statusOf } from './holder.ts';
import { eventsOf, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

let provider: ResponsesProvider;
let stack: Stack;
let serve: ResponsesProvider['serve'];
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.sockets.length = 0;
  provider.posts.length = 0;
  provider.serve = serve;
  provider.refuse = undefined;
});

const issue = async (more: object = {}) =>
  stack.issue({
    provider: 'openai',
    path: '/v1/responses',
    client_api_key: 'sk-real-secret-key',
    sockets: true,
    ...more,
  });
const urlOf = async (more: object = {}) => (await issue(more)).url;
const rowsOf = async (grantId: string) => {
  const answer = await fetch(`${stack.issuerUrl}/v1/calls?grant_id=${grantId}`, {
    headers: { authorization: `Bearer ${stack.apiKey}` },
  });
  return ((await answer.json()) as { data: Record<string, unknown>[] }).data;
};

describe('a turn is a call', () => {
  test('a socket runs turns, each with a use, a charge and a row', async () => {
    const { url, grant_id } = await issue({ max_uses: 5, cost_limit: 100_000 });
    const holder = await openSocket(url);
    expect(holder.headers['x-presign-request-id']).toMatch(/^[\da-f-]{36}$/);
    for (let i = 0; i < 3; i++) expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    const status = await statusOf(url);
    expect(status).toMatchObject({ used: 3, held: 0 });
    expect(status.spent).toBeGreaterThan(0);
    const rows = await eventually(async () => {
      const found = await rowsOf(grant_id);
      return found.length === 3 ? found : undefined;
    });
    const connection = holder.headers['x-presign-request-id'];
    expect(rows.map(({ turn }) => turn).sort()).toEqual([1, 2, 3]);
    for (const row of rows)
      expect(row).toMatchObject({
        connection,
        outcome: 'passed',
        input_tokens: 10,
        output_tokens: 5,
        status: 200,
        model: 'gpt-4.1-mini',
      });
    holder.socket.close();
    await holder.closed;
  });
});

const SOUND = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };

test("a turn calls a tool of its holder, and the next turn contains the tool's output", async () => {
  const call = { type: 'function_call', id: 'f1', call_id: 'c1', name: 'weather', arguments: '{}' };
  provider.serve = (event, { socket }) => {
    for (const each of eventsOf(event)) {
      const { response } = each as { response: object };
      const isFirst = each.type === 'response.completed' && event.previous_response_id === undefined;
      socket.send(JSON.stringify(isFirst ? { ...each, response: { ...response, output: [call] } } : each));
    }
  };
  const url = await urlOf({ cost_limit: 1_000_000 });
  const holder = await openSocket(url);
  const tools = [{ type: 'function', name: 'weather', parameters: {}, strict: false }];
  const first = (await holder.turn({ ...CREATE, tools })) as { response: { id: string; output: object[] } };
  expect(first.response.output).toEqual([call]);
  const output = { type: 'function_call_output', call_id: 'c1', output: 'rain' };
  const next = { ...CREATE, tools, input: [output], previous_response_id: first.response.id };
  expect(await holder.turn(next)).toMatchObject({ type: 'response.completed' });
  expect(provider.frames()).toMatchObject([{ tools }, { tools, input: [output] }]);
  expect(await statusOf(url)).toMatchObject({ used: 2, held: 0, spent: 2 * 12 });
  holder.socket.close();
});

describe('the handshake', () => {
  const refusedBy = async (url: string, more: object = {}) =>
    openSocket(url, more).then(
      () => undefined,
      (error: RefusedHandshake) => error,
    );

  test('a URL without sockets gets 426 and serves a POST', async () => {
    const { url } = await stack.issue({
      provider: 'openai',
      path: '/v1/responses',
      client_api_key: 'sk-real',
    });
    const refused = await refusedBy(url);
    expect(refused).toMatchObject({ status: 426, code: 'sockets_not_allowed' });
    expect(refused?.headers).toMatchObject({ upgrade: 'HTTP/1.1', 'x-presign-code': 'sockets_not_allowed' });
    expect(provider.sockets).toHaveLength(0);
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);
  });

  test('one URL serves POST and socket', async () => {
    const url = await urlOf();
    const holder = await openSocket(url);
    expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);
    expect(provider.posts).toEqual(['POST /v1/responses']);
    holder.socket.close();
  });

  test("the holder's credentials are removed, and the gateway's is added", async () => {
    const url = await urlOf();
    const headers = {
      authorization: 'Bearer sk-holder',
      'openai-beta': 'responses_websockets=2026-02-06',
      cookie: 'a=b',
    };
    const protocols = ['realtime', 'openai-insecure-api-key.sk-holder'];
    const refused = openSocket(`${url}?api-key=sk-holder&x=1`, { headers, protocols });
    // The provider chooses none of the subprotocols, which this client does not accept.
    await refused.catch(() => undefined);
    const [seen] = provider.sockets;
    expect(seen?.request.url).toBe('/v1/responses?x=1');
    expect(seen?.request.headers.authorization).toBe('Bearer sk-real-secret-key');
    expect(seen?.request.headers['openai-beta']).toBe('responses_websockets=2026-02-06');
    expect(seen?.request.headers['sec-websocket-protocol']).toBe('realtime');
    expect(seen?.request.headers.cookie).toBeUndefined();
    expect(seen?.request.headers['sec-websocket-extensions']).toBeUndefined();
    expect(JSON.stringify(seen?.request.rawHeaders)).not.toContain('sk-holder');
  });

  test.each([
    ['another path', '/v1/other', 403, 'path_not_allowed'],
    ['a path in other letters', '/v1/responses/x', 403, 'path_not_allowed'],
  ])('%s is refused', async (_what, path, status, code) => {
    const url = (await urlOf()).replace('/v1/responses', path);
    expect(await refusedBy(url)).toMatchObject({ status, code });
    expect(provider.sockets).toHaveLength(0);
  });

  test('a path without a socket gets 426', async () => {
    const url = await urlOf({ path: ['/v1/responses', '/v1/chat/completions'] });
    const refused = await refusedBy(url.replace('/v1/responses', '/v1/chat/completions'));
    expect(refused).toMatchObject({ status: 426, code: 'sockets_not_allowed' });
  });

  test('a forged token, a spent URL and a URL without uses are refused over HTTP', async () => {
    const url = await urlOf({ max_uses: 1 });
    expect(await refusedBy(url.replace('v4.public.', 'v4.public.A'))).toMatchObject({ status: 401 });
    const holder = await openSocket(url);
    await holder.turn();
    holder.socket.close();
    expect(await refusedBy(url)).toMatchObject({ status: 403, code: 'uses_exhausted' });
  });

  test("an upstream's refusal passes with its status, and without the key that it quotes", async () => {
    const url = await urlOf();
    provider.refuse = ({ headers }) => ({
      status: 401,
      body: JSON.stringify({ error: { message: headers.authorization } }),
    });
    const refused = await refusedBy(url);
    expect(refused?.status).toBe(401);
    expect(refused?.body).toContain('Bearer ***');
    expect(refused?.body).not.toContain('sk-real');
  });

  test('a URL that no socket can use is not issued', async () => {
    for (const [more, param] of [
      [{ path: '/v1/chat/completions' }, 'sockets'],
      [{ provider: 'anthropic', path: '/v1/messages' }, 'sockets'],
      [{ method: 'GET' }, 'sockets'],
      [{ sockets: 'yes' }, 'sockets'],
    ] as const) {
      const answer = await stack.presign({
        provider: 'openai',
        path: '/v1/responses',
        client_api_key: 'sk',
        sockets: true,
        ...more,
      });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { code: 'invalid_request', param } });
    }
  });

  test('the token names sockets, and `sockets: false` means omitted', async () => {
    expect((await issue()).claims.crt).toEqual(['sockets']);
    expect((await issue({ sockets: false })).claims).not.toHaveProperty('crt');
  });
});

describe('an event', () => {
  test('is judged and changed like a body, and its envelope is unchanged', async () => {
    const url = await urlOf({
      config: { model: 'gpt-4.1-nano', max_output_tokens: 30 },
      cost_limit: 100_000,
    });
    const holder = await openSocket(url);
    await holder.turn({ ...CREATE, stream_id: 'a', generate: false, service_tier: 'priority' });
    expect(provider.frames()).toEqual([
      {
        type: 'response.create',
        stream_id: 'a',
        generate: false,
        model: 'gpt-4.1-nano',
        input: 'Hi.',
        max_output_tokens: 30,
        service_tier: 'default',
      },
    ]);
    holder.socket.close();
  });

  test.each([
    ['another model', { models: ['gpt-4.1-nano'] }, CREATE, 'model_not_allowed'],
    ['a field that is not allowed', { allowed_fields: ['model', 'input'] }, CREATE, 'field_not_allowed'],
    ['too many bytes', { max_body_bytes: 50 }, CREATE, 'body_too_large'],
    [
      'a tool without a bound',
      { cost_limit: 100_000 },
      { ...CREATE, tools: [{ type: 'shell' }] },
      'cost_unbounded',
    ],
    [
      'sound, which has rates of its own',
      { cost_limit: 1_000_000 },
      { ...CREATE, input: [{ role: 'user', content: [SOUND] }] },
      'cost_unbounded',
    ],
    ['a model without a price', { cost_limit: 100_000 }, { ...CREATE, model: 'x' }, 'price_unknown'],
    ['a price above what is left', { cost_limit: 1 }, CREATE, 'cost_limit_too_low'],
    ['an unknown field', { cost_limit: 100_000 }, { ...CREATE, novelty: 1 }, 'cost_unbounded'],
    ['an unknown event', {}, { type: 'response.novelty' }, 'invalid_request'],
    ['no type', {}, { model: 'x' }, 'invalid_request'],
    [
      'response.steer',
      {},
      { type: 'response.steer', previous_response_id: 'r', input: 'x' },
      'invalid_request',
    ],
    ['a stream_id that is no text', {}, { ...CREATE, stream_id: 1 }, 'invalid_request'],
    ['no JSON', {}, '{"type"', 'invalid_json'],
    ['an array', {}, '[]', 'unsupported_media_type'],
    ['bytes', {}, Buffer.from('{}'), 'unsupported_media_type'],
  ])(
    'with %s is refused with an error event, costs nothing, and the socket stays open',
    async (_what, more, event, code) => {
      const url = await urlOf(more);
      const holder = await openSocket(url);
      holder.send(event as object as never);
      const refused = await holder.next('error');
      expect(refused).toMatchObject({ type: 'error', error: { code, request_id: expect.any(String) } });
      expect(provider.frames()).toEqual([]);
      expect(await statusOf(url)).toMatchObject({ used: 0, spent: 0, held: 0 });
      holder.send(event as object as never);
      await holder.next('error');
      expect(holder.socket.readyState).toBe(1);
      holder.socket.close();
    },
  );

  test('of the server passes byte for byte, except for the key', async () => {
    const url = await urlOf();
    provider.serve = (event, { socket }) => {
      const [created, , last] = eventsOf(event);
      socket.send(JSON.stringify(created));
      socket.send('{"type": "response.output_text.delta",\t"delta":"\\u00e9 sk-real-secret-key"}');
      socket.send('no JSON');
      socket.send(JSON.stringify(last));
    };
    const holder = await openSocket(url);
    const texts: string[] = [];
    holder.socket.prependListener('message', (data) => void texts.push(String(data)));
    holder.socket.removeAllListeners('message');
    holder.socket.on('message', (data) => void texts.push(String(data)));
    holder.send(CREATE);
    await eventually(async () => texts.length === 4);
    expect(texts[1]).toBe(`{"type": "response.output_text.delta",\t"delta":"\\u00e9 ${'*'.repeat(18)}"}`);
    expect(texts[2]).toBe('no JSON');
    holder.socket.close();
  });
});

describe('lanes', () => {
  test('each stream runs one turn at a time, and streams run in parallel', async () => {
    const url = await urlOf({ cost_limit: 1_000_000, max_uses: 10 });
    const pending: (() => void)[] = [];
    provider.serve = (event, { socket }) => {
      const [created, ...rest] = eventsOf(event, { input: event.stream_id === 'a' ? 100 : 20 });
      socket.send(JSON.stringify(created));
      pending.push(() => {
        for (const each of rest) socket.send(JSON.stringify(each));
      });
    };
    const holder = await openSocket(url);
    holder.send({ ...CREATE, stream_id: 'a' });
    holder.send({ ...CREATE, stream_id: 'b' });
    await eventually(async () => pending.length === 2);
    holder.send({ ...CREATE, stream_id: 'a' });
    expect(await holder.next('error')).toMatchObject({
      stream_id: 'a',
      error: { code: 'concurrency_limited' },
    });
    expect((await statusOf(url)).used).toBe(2);
    for (const end of pending.reverse()) end();
    await holder.next(({ type, stream_id }) => type === 'response.completed' && stream_id === 'a');
    await holder.next(({ type, stream_id }) => type === 'response.completed' && stream_id === 'b');
    expect((await statusOf(url)).held).toBe(0);
    expect(codeOf(await holder.next('response.created'))).toBe('response.created');
    holder.socket.close();
  });

  test('without a limit, the usage of a turn is metered', async () => {
    const { url, grant_id } = await issue();
    const holder = await openSocket(url);
    await holder.turn();
    const [row] = await eventually(async () => {
      const rows = await rowsOf(grant_id);
      return rows.length > 0 ? rows : undefined;
    });
    expect(row).toMatchObject({ input_tokens: 10, output_tokens: 5, hold: null, uses: 1 });
    expect(row?.cost).toBeGreaterThan(0);
    holder.socket.close();
  });
});
