import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { type SandboxLlm, startSandboxLlm } from '../src/sandbox/llm.ts';
import { tone } from '../src/sandbox/sound.ts';

let sandbox: SandboxLlm;
beforeAll(async () => {
  sandbox = await startSandboxLlm();
});
afterAll(() => sandbox.close());

type Event = { readonly type: string; readonly delta?: string; readonly [field: string]: unknown };

type Usage = { readonly input_token_details: { readonly audio_tokens: number } };

const urlOf = (model: string) => `${sandbox.url.replace('http', 'ws')}/v1/realtime?model=${model}`;
const KEY = { headers: { authorization: 'Bearer sk-sandbox-test' } };

/** A session of its own. `until` resolves with all events up to the next one of a type. */
async function open() {
  const socket = new WebSocket(urlOf('gpt-realtime'), KEY);
  onTestFinished(() => socket.close());
  const events: Event[] = [];
  socket.on('message', (data) => events.push(JSON.parse(String(data)) as Event));
  const until = async (type: string) => {
    while (!events.some((event) => event.type === type)) await once(socket, 'message');
    return events.splice(0, events.findIndex((event) => event.type === type) + 1);
  };
  const send = (event: object | string) =>
    socket.send(typeof event === 'string' ? event : JSON.stringify(event));
  const turn = async (response: object = {}) => {
    send({ type: 'response.create', response });
    const all = await until('response.done');
    return { all, response: all.at(-1)?.response as Record<string, unknown> };
  };
  const set = async (session: object) => {
    send({ type: 'session.update', session: { type: 'realtime', ...session } });
    return (await until('session.updated')).at(-1)?.session;
  };
  const say = (text: string) => {
    const content = [{ type: 'input_text', text }];
    send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } });
  };
  const hear = (sound: Buffer) =>
    send({ type: 'input_audio_buffer.append', audio: sound.toString('base64') });
  const error = async () => (await until('error')).at(-1)?.error;
  await until('session.created');
  return { send, until, turn, set, say, hear, error };
}

const said = (events: readonly Event[], type: string) =>
  events.flatMap((event) => (event.type === type ? (event.delta ?? []) : [])).join('');
const silence = (ms: number) => Buffer.alloc(ms * 48);
const SPEECH = Buffer.concat([silence(200), tone(1_000, 0), silence(600)]);
const usage = (input: [text: number, audio: number], output: [text: number, audio: number]) => ({
  total_tokens: input[0] + input[1] + output[0] + output[1],
  input_tokens: input[0] + input[1],
  output_tokens: output[0] + output[1],
  input_token_details: { text_tokens: input[0], audio_tokens: input[1] },
  output_token_details: { text_tokens: output[0], audio_tokens: output[1] },
});

describe('a response', () => {
  test("in text repeats the user's words, and costs what it read and wrote", async () => {
    const { say, turn } = await open();
    say('hello, world');
    const { all, response } = await turn({ output_modalities: ['text'], metadata: { own: '1' } });
    const reply = 'This is the sandbox, no model was asked. You said: hello, world';
    expect(said(all, 'response.output_text.delta')).toBe(reply);
    const words = reply.match(/\S+\s*/g) ?? [];
    const tokens = words.reduce((sum, word) => sum + Math.ceil(word.length / 4), 0);
    expect(response).toMatchObject({
      status: 'completed',
      metadata: { own: '1' },
      output: [{ type: 'message', content: [{ type: 'output_text', text: reply }] }],
      usage: usage([3, 0], [tokens, 0]),
    });
  });

  test('reads the end of a long conversation, so that its usage fits the window', async () => {
    const { set, say, turn } = await open();
    const text = { output_modalities: ['text'], max_output_tokens: 1 };
    for (let i = 0; i < 4; i++) say('word'.repeat(10_000));
    const { response } = await turn(text);
    expect(response).toMatchObject({ usage: { input_tokens: 20_000 } });
    await set({ instructions: 'word'.repeat(40_000) });
    const next = await turn(text);
    expect(next.response).toMatchObject({ usage: { input_tokens: 32_768 - 4_096 } });
  });

  test('in audio has a transcript and a tone for each word, costs a token for 50 ms, and is input of the next response', async () => {
    const { say, turn } = await open();
    say('hi');
    const { all, response } = await turn();
    const sound = all.filter(({ type }) => type === 'response.output_audio.delta');
    const bytes = sound.map(({ delta = '' }) => Buffer.from(delta, 'base64'));
    expect(bytes.every((each) => each.length === 200 * 48 && each.some((byte) => byte !== 0))).toBe(true);
    expect(said(all, 'response.output_audio_transcript.delta')).toMatch(/You said: hi$/);
    const text = (response.usage as { output_token_details: { text_tokens: number } }).output_token_details;
    const output: [number, number] = [text.text_tokens, sound.length * 4];
    expect(response).toMatchObject({ usage: usage([1, 0], output) });
    const next = await turn({ output_modalities: ['text'] });
    expect(next.response.usage).toMatchObject({
      input_token_details: { text_tokens: 1 + output[0], audio_tokens: output[1] },
    });
  });

  test('is cut at its bound, and outside of the conversation adds no item', async () => {
    const { turn } = await open();
    const cut = await turn({ max_output_tokens: 12, conversation: 'none' });
    expect(cut.response).toMatchObject({
      status: 'incomplete',
      status_details: { reason: 'max_output_tokens' },
      output: [{ content: [{ type: 'output_audio', transcript: 'This is ' }] }],
    });
    expect(cut.response.usage).toMatchObject({ output_tokens: 11 });
  });

  test('in an empty conversation has some input usage, because a real response always has some', async () => {
    const { turn } = await open();
    const { response } = await turn();
    const { input_tokens, output_tokens } = response.usage as Record<string, number>;
    expect(input_tokens).toBeGreaterThan(0);
    expect(output_tokens).toBeGreaterThan(0);
    expect(response.usage).toMatchObject({ input_token_details: { text_tokens: input_tokens } });
  });

  test('calls a tool with arguments of the right types, and then says what the tool returned', async () => {
    const { set, say, turn, send } = await open();
    const properties = { city: { type: 'string' }, days: { type: 'integer' } };
    await set({ tools: [{ type: 'function', name: 'weather', parameters: { type: 'object', properties } }] });
    say('Oslo');
    const { response } = await turn();
    const [call] = response.output as { call_id: string; arguments: string }[];
    expect(call).toMatchObject({ type: 'function_call', name: 'weather' });
    expect(JSON.parse(call?.arguments ?? '')).toEqual({ city: 'Oslo', days: 1 });
    const item = { type: 'function_call_output', call_id: call?.call_id, output: 'rain' };
    send({ type: 'conversation.item.create', item });
    const { all } = await turn();
    expect(said(all, 'response.output_audio_transcript.delta')).toMatch(/The tool returned: rain$/);
    expect((await turn({ tool_choice: 'none' })).response.output).toMatchObject([{ type: 'message' }]);
  });

  test('that is cancelled costs what it has said, and no other response begins while one runs', async () => {
    const { send, until, error } = await open();
    send({ type: 'response.create' });
    await until('response.output_audio.delta');
    send({ type: 'response.create', event_id: 'mine' });
    const refused = { code: 'conversation_already_has_active_response', event_id: 'mine' };
    expect(await error()).toMatchObject(refused);
    send({ type: 'response.cancel' });
    const done = (await until('response.done')).at(-1)?.response;
    expect(done).toMatchObject({
      status: 'cancelled',
      status_details: { type: 'cancelled', reason: 'client_cancelled' },
    });
    expect((done as { usage: { output_tokens: number } }).usage.output_tokens).toBeGreaterThan(4);
    send({ type: 'response.cancel' });
    expect(await error()).toMatchObject({ code: 'response_cancel_not_active' });
  });
});

describe('speech', () => {
  test('is detected in audio of any chunk size, is an item with a token for 100 ms, and is answered', async () => {
    const { hear, until } = await open();
    for (let at = 0; at < SPEECH.length; at += 1_001) hear(SPEECH.subarray(at, at + 1_001));
    const all = await until('response.done');
    const of = (type: string) => all.find((event) => event.type === type);
    const started = of('input_audio_buffer.speech_started');
    // A tone fades in and out.
    expect(started?.audio_start_ms).toBeGreaterThanOrEqual(200);
    expect(started?.audio_start_ms).toBeLessThan(300);
    expect(of('input_audio_buffer.speech_stopped')).toMatchObject({ item_id: started?.item_id });
    expect(of('input_audio_buffer.committed')).toMatchObject({ item_id: started?.item_id });
    expect(said(all, 'response.output_audio_transcript.delta')).toMatch(
      /You spoke for (?:0\.9|1\.0) seconds\.$/,
    );
    const { response } = all.at(-1) as unknown as { response: { usage: Usage } };
    expect([9, 10]).toContain(response.usage.input_token_details.audio_tokens);
  });

  test('interrupts a response, and is answered after it', async () => {
    const { hear, send, until } = await open();
    send({ type: 'response.create' });
    await until('response.output_audio.delta');
    hear(SPEECH);
    expect((await until('response.done')).at(-1)?.response).toMatchObject({
      status_details: { reason: 'turn_detected' },
    });
    expect((await until('response.done')).at(-1)?.response).toMatchObject({ status: 'completed' });
  });

  test('is not answered if the session disables it, and without detection the client commits it', async () => {
    const { hear, send, set, until, error, turn } = await open();
    const detection = { type: 'semantic_vad', create_response: false };
    expect(await set({ audio: { input: { turn_detection: detection } } })).toMatchObject({
      audio: { input: { turn_detection: { ...detection, interrupt_response: true, idle_timeout_ms: null } } },
    });
    hear(SPEECH);
    await until('conversation.item.done');
    await set({ audio: { input: { turn_detection: null } } });
    hear(SPEECH);
    send({ type: 'input_audio_buffer.commit' });
    const events = await until('conversation.item.done');
    expect(events.map(({ type }) => type)).toEqual([
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
    ]);
    send({ type: 'input_audio_buffer.commit' });
    expect(await error()).toMatchObject({ code: 'input_audio_buffer_commit_empty' });
    hear(SPEECH);
    send({ type: 'input_audio_buffer.clear' });
    await until('input_audio_buffer.cleared');
    send({ type: 'input_audio_buffer.commit' });
    expect(await error()).toMatchObject({ code: 'input_audio_buffer_commit_empty' });
    expect((await turn()).response.usage).toMatchObject({ input_token_details: { text_tokens: 0 } });
  });
});

test('items are retrieved, truncated and deleted, and a missing item is an error', async () => {
  const { say, send, until, error, turn } = await open();
  say('one');
  const { item } = (await until('conversation.item.done')).at(-1) as unknown as { item: { id: string } };
  const ask = async (kind: string, then: string) => {
    send({ type: `conversation.item.${kind}`, item_id: item.id, content_index: 0, audio_end_ms: 5 });
    return (await until(`conversation.item.${then}`)).at(-1);
  };
  expect(await ask('retrieve', 'retrieved')).toMatchObject({ item });
  expect(await ask('truncate', 'truncated')).toMatchObject({ item_id: item.id, audio_end_ms: 5 });
  expect(await ask('delete', 'deleted')).toMatchObject({ item_id: item.id });
  send({ type: 'conversation.item.delete', item_id: item.id });
  expect(await error()).toMatchObject({ code: 'item_not_found', param: 'item_id' });
  // The tokens of an empty conversation.
  expect((await turn()).response.usage).toMatchObject({ input_tokens: 4 });
});

test('an unknown event is an error with its id, and the session continues', async () => {
  const { send, error, turn } = await open();
  const refused = async (event: object | string) => {
    send(event);
    return error();
  };
  for (const event of ['no JSON', '[]', { type: 'response.steer' }, { type: '__proto__' }])
    expect(await refused(event)).toMatchObject({ code: 'invalid_value', param: 'type', event_id: null });
  const format = { type: 'audio/pcmu' };
  expect(
    await refused({ type: 'session.update', event_id: 'a', session: { audio: { input: { format } } } }),
  ).toMatchObject({ param: 'session.audio.input.format.type', event_id: 'a' });
  expect(await refused({ type: 'response.create', response: { max_output_tokens: 0 } })).toMatchObject({
    param: 'response.max_output_tokens',
  });
  expect(await refused({ type: 'conversation.item.create', item: { type: 'x' } })).toMatchObject({
    param: 'item.type',
  });
  expect((await turn()).response).toMatchObject({ status: 'completed' });
});

test('a handshake without a sandbox key gets 401, and one with another model gets 404', async () => {
  const refused = async (url: string, options: object) => {
    const [, response] = (await once(new WebSocket(url, options), 'unexpected-response')) as [
      unknown,
      { statusCode: number },
    ];
    return response.statusCode;
  };
  expect(await refused(urlOf('gpt-realtime'), {})).toBe(401);
  expect(await refused(urlOf('gpt-5'), KEY)).toBe(404);
});
