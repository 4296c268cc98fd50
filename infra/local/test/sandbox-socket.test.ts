import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { type SandboxLlm, startSandboxLlm } from '../src/sandbox/llm.ts';

let sandbox: SandboxLlm;
beforeAll(async () => {
  sandbox = await startSandboxLlm();
});
afterAll(() => sandbox.close());

type Event = {
  readonly type: string;
  readonly stream_id?: string;
  readonly delta?: string;
  readonly sequence_number?: number;
  readonly response?: { readonly id: string; readonly output: readonly unknown[]; readonly usage: unknown };
};
const isLast = ({ type }: Event) => /^(?:response\.(?:completed|incomplete)|error)$/.test(type);

/** A socket of its own. `turn` sends an event, and resolves with all that answer it. */
async function open() {
  const socket = new WebSocket(`${sandbox.url.replace('http', 'ws')}/v1/responses`, {
    headers: { authorization: 'Bearer sk-sandbox-test' },
  });
  onTestFinished(() => socket.close());
  await once(socket, 'open');
  const events: Event[] = [];
  socket.on('message', (data) => events.push(JSON.parse(String(data)) as Event));
  const until = async (isOver: () => boolean) => {
    while (!isOver()) await once(socket, 'message');
    return events.splice(0);
  };
  const send = (event: unknown) => socket.send(typeof event === 'string' ? event : JSON.stringify(event));
  const turn = async (event: unknown) => {
    send(event);
    return until(() => events.some(isLast));
  };
  return { send, turn, until, events };
}

/** The answer to a handshake that is refused. */
async function refusedHandshake(path: string, key: string) {
  const headers = { authorization: `Bearer ${key}` };
  const socket = new WebSocket(`${sandbox.url.replace('http', 'ws')}${path}`, { headers });
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  const body = (await json(response)) as { readonly error: object };
  return { status: response.statusCode, type: response.headers['content-type'], ...body };
}

/** 12 bytes, so 3 tokens. */
const QUESTION = 'hello, world';
const REPLY = `This is the sandbox, no model was asked. You said: ${QUESTION}`;
const REPLY_TOKENS = Math.ceil(REPLY.length / 4);
const CREATE = { type: 'response.create', model: 'sandbox-1', input: QUESTION };
const usage = (input: number, output: number) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
});

test('a turn has the events of a stream, one in each message, and the last one has its usage', async () => {
  const { turn } = await open();
  const events = await turn(CREATE);
  expect(events[0]).toMatchObject({ type: 'response.created', response: { status: 'in_progress' } });
  expect(events.flatMap(({ delta }) => delta ?? []).join('')).toBe(REPLY);
  expect(events.at(-1)).toMatchObject({
    type: 'response.completed',
    response: { id: events[0]?.response?.id, status: 'completed', usage: usage(3, REPLY_TOKENS) },
  });
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, i) => i));
});

test('a turn that continues a response reads its conversation again, and so does a POST', async () => {
  const { turn } = await open();
  const id = (await turn(CREATE)).at(-1)?.response?.id;
  const input = 3 + REPLY_TOKENS + 3;
  const next = await turn({ ...CREATE, previous_response_id: id });
  expect(next.at(-1)?.response).toMatchObject({
    previous_response_id: id,
    usage: usage(input, REPLY_TOKENS),
  });
  const openai = new OpenAI({ baseURL: `${sandbox.url}/v1`, apiKey: 'sk-sandbox-test', maxRetries: 0 });
  const create = (previous_response_id = '') =>
    openai.responses.create({ model: 'sandbox-1', input: QUESTION, previous_response_id });
  expect((await create(id)).usage).toMatchObject(usage(input, REPLY_TOKENS));
  await expect(create('resp_other')).rejects.toMatchObject({
    status: 400,
    code: 'previous_response_not_found',
  });
});

test('a response with generate false costs its input, and can be continued', async () => {
  const { turn } = await open();
  const [created, completed] = await turn({ ...CREATE, generate: false });
  expect(completed).toMatchObject({
    type: 'response.completed',
    response: { id: created?.response?.id, output: [], usage: usage(3, 0) },
  });
  const next = await turn({ ...CREATE, previous_response_id: created?.response?.id });
  expect(next.at(-1)?.response).toMatchObject({ usage: usage(6, REPLY_TOKENS) });
});

test('refusals are error events with the status and code of a POST, and the socket stays open', async () => {
  const { turn } = await open();
  const refused = async (event: unknown) => (await turn(event))[0];
  const invalid = { type: 'invalid_request_error', code: null };
  expect(await refused({ ...CREATE, previous_response_id: 'resp_other' })).toEqual({
    type: 'error',
    status: 400,
    error: {
      message: "Previous response with id 'resp_other' not found.",
      type: 'invalid_request_error',
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    },
  });
  expect(await refused({ ...CREATE, model: 'other', stream_id: 'a' })).toMatchObject({
    status: 404,
    error: { code: 'model_not_found', param: 'model' },
    stream_id: 'a',
  });
  expect(await refused({ ...CREATE, input: [] })).toMatchObject({
    status: 400,
    error: { ...invalid, param: 'input' },
  });
  for (const event of [{ ...CREATE, type: 'response.steer' }, 'no JSON'])
    expect(await refused(event)).toMatchObject({ status: 400, error: { ...invalid, param: 'type' } });
  expect((await turn(CREATE)).at(-1)).toMatchObject({ type: 'response.completed' });
});

test('turns of two streams run in parallel, and turns of one stream run in sequence', async () => {
  const { send, until, events } = await open();
  for (const stream_id of ['a', 'a', 'b']) send({ ...CREATE, stream_id });
  const all = await until(() => events.filter(isLast).length === 3);
  const firstOf = (id: string) => all.findIndex(({ stream_id }) => stream_id === id);
  const lastsOf = (id: string) =>
    all.flatMap((event, i) => (event.stream_id === id && isLast(event) ? [i] : []));
  expect(firstOf('b')).toBeLessThan(lastsOf('a')[0] ?? 0);
  const ofA = all.filter(({ stream_id }) => stream_id === 'a').map(({ sequence_number: number }) => number);
  const once = ofA.slice(0, ofA.length / 2);
  expect(ofA).toEqual([...once, ...once]);
});

test('a handshake without a key of the sandbox gets 401 with its reason, and a GET that is no handshake 404', async () => {
  const url = `${sandbox.url}/v1/responses`;
  expect(await refusedHandshake('/v1/responses', 'other')).toMatchObject({
    status: 401,
    error: { code: 'invalid_api_key', message: 'The sandbox takes keys that begin with sk-sandbox' },
  });
  const got = await fetch(url, { headers: { authorization: 'Bearer sk-sandbox-test' } });
  expect(got.status).toBe(404);
});

test.each([
  ['/v1/realtime', 'other', 401, 'invalid_api_key'],
  ['/v1/realtime?model=other', 'sk-sandbox-test', 404, 'model_not_found'],
  ['/v1/other', 'sk-sandbox-test', 404, null],
])('a handshake of %s with the key %s gets %i with its reason', async (path, key, status, code) => {
  expect(await refusedHandshake(path, key)).toMatchObject({ status, error: { code } });
});

test('a turn whose input the window has no room for is refused, also with that of its conversation', async () => {
  const { turn } = await open();
  const half = 'x'.repeat(4 * 64_000);
  const long = { status: 400, error: { code: 'context_length_exceeded', param: 'input' } };
  expect((await turn({ ...CREATE, input: `${half}${half}x` }))[0]).toMatchObject(long);
  const first = (await turn({ ...CREATE, input: half })).at(-1);
  const more = { ...CREATE, input: half, previous_response_id: first?.response?.id };
  expect((await turn(more))[0]).toMatchObject(long);
});

test("the socket of OpenAI's SDK has turns", async () => {
  const client = new OpenAI({ baseURL: `${sandbox.url}/v1`, apiKey: 'sk-sandbox-test' });
  const socket = new ResponsesWS(client, undefined as never);
  onTestFinished(() => socket.close());
  const completed = new Promise<unknown>((resolve) => socket.on('response.completed', resolve));
  const failed = new Promise<Error>((resolve) => socket.on('error', resolve));
  socket.send({ type: 'response.create', model: 'sandbox-1', input: QUESTION });
  expect(await completed).toMatchObject({ response: { usage: usage(3, REPLY_TOKENS) } });
  socket.send({ type: 'response.create', model: 'gpt-5', input: QUESTION });
  expect((await failed).message).toContain("The model 'gpt-5' does not exist");
});
