import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { openSocket, type RefusedHandshake } from './holder.ts';
import { type RealtimeProvider, startRealtimeProvider, usageOf } from './realtime-provider.ts';
import type { Json } from './responses-provider.ts';

/** The messages to the holder, the issuer and the operator of a Realtime URL. */

let provider: RealtimeProvider;
let stack: Stack;
beforeAll(async () => {
  provider = await startRealtimeProvider();
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.run = ({ end }) => end();
});

const ASK = { provider: 'openai', path: '/v1/realtime', client_api_key: 'sk-real' };
const issue = (more: object = {}) => stack.issue({ ...ASK, sockets: true, ...more });
const HOLD = 32_768 * 32 + 4_096 * 64;

test('a turn with output and no input is charged its hold, and the log shows the contradiction', async () => {
  provider.run = ({ end }) => end('completed', usageOf(0, 5));
  const { url, grant_id } = await issue({ cost_limit: 2_000_000 });
  const holder = await openSocket(`${url}?model=gpt-realtime`);
  holder.send({ type: 'response.create' });
  await holder.next('response.done');
  const line = await eventually(async () =>
    stack.logs.map((each) => JSON.parse(each) as Json).find((each) => each.doubt !== undefined),
  );
  expect(line).toMatchObject({ grant: grant_id, turn: 1, status: 200, doubt: 'no_input', cost: HOLD });
  holder.socket.close();
});

describe('an event', () => {
  test.each<[string, string, string]>([
    ['no JSON', 'hello', 'The event is no JSON'],
    ['JSON with more behind it', '{"type":"response.create"}}', 'The event is no JSON'],
    ['an array', '[]', 'The event is no JSON object'],
    ['too deep', `{"type":${'['.repeat(300)}${']'.repeat(300)}}`, 'The event is nested deeper than 200'],
    ['unknown', '{"type":"response.novelty"}', 'type: this socket does not take the event response.novelty'],
    ['without a type', '{}', 'type: this socket does not take an event without one'],
    [
      'a field of the beta',
      '{"type":"session.update","session":{"type":"realtime","turn_detection":{"type":"server_vad"}}}',
      'session.turn_detection: is session.audio.input.turn_detection now',
    ],
  ])('that is %s is refused with its reason', async (_what, event, reason) => {
    const holder = await openSocket(`${(await issue()).url}?model=gpt-realtime`);
    await holder.next('session.updated');
    holder.send(event);
    expect(await holder.next('error')).toMatchObject({ error: { message: expect.stringContaining(reason) } });
    holder.socket.close();
  });

  test('of Responses that is not JSON is refused as an event', async () => {
    const { url } = await issue({ path: '/v1/responses' });
    const holder = await openSocket(url);
    for (const event of ['hello', '{"type":"response.create","input":}']) {
      holder.send(event);
      expect(await holder.next('error')).toMatchObject({
        error: { code: 'invalid_json', message: expect.stringContaining('The event is no JSON') },
      });
    }
    holder.socket.close();
  });

  test('with too little money gets the minimum limit', async () => {
    const { url } = await issue({ cost_limit: 1_000 });
    const holder = await openSocket(`${url}?model=gpt-realtime`);
    holder.send({ type: 'response.create', response: { max_output_tokens: 1_000 } });
    const { error } = (await holder.next('error')) as { error: { message: string; needed: number } };
    expect(error.message).toContain(`raise cost_limit to at least ${error.needed} microdollars`);
    expect(error.needed).toBeGreaterThan(32_768 * 32);
    holder.socket.close();
  });
});

test.each([
  ['without a model', '', 'model: the query must name it, as ?model=gpt-realtime.'],
  [
    'of another model',
    '?model=gpt-realtime-2',
    'model: gpt-realtime-2 is not allowed. This URL allows the model gpt-realtime.',
  ],
])('a handshake %s is refused with its reason', async (_what, query, reason) => {
  const { url } = await issue({ models: ['gpt-realtime'] });
  const refused = await openSocket(url + query).catch((error: RefusedHandshake) => error);
  expect((refused as RefusedHandshake).body).toContain(reason);
});

test('a path that serves only sockets is described as one by the issuer and in the answer to a POST', async () => {
  await expect(stack.issue(ASK)).rejects.toThrow('is opened as a socket alone: add \\"sockets\\": true');
  const { url } = await issue();
  const answer = await fetch(url, { method: 'POST', body: '{}' });
  expect(answer.status).toBe(403);
  expect(((await answer.json()) as { error: Json }).error.message).toContain('issued with "sockets": true');
});
