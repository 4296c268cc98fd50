import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { CREATE, codeOf, openSocket, statusOf } from './holder.ts';
import { PROTOCOLS, turn } from './protocols.ts';
import { CONTINUATION, frame, PING, rawSocket, TEXT } from './raw.ts';
import { type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

let provider: ResponsesProvider;
let stack: Stack;
beforeAll(async () => {
  provider = await startResponsesProvider();
  stack = await startStack({
    providers: { openai: { base_url: provider.url } },
    // One socket stays open for the whole test.
    gateway: { upstreamTimeoutMs: 300_000 },
  });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
/** The ping behind all frames. It is answered once they are read. */
const MARK = 'all-is-read';
const CONTROL = fc.constantFrom(frame(PING, ''), frame(PING, 'x'.repeat(125)), frame(0xa, 'pong'));

/** A turn in random fragments, with control frames between them. */
const TURN = fc
  .tuple(fc.array(fc.nat(120), { maxLength: 6 }), fc.array(CONTROL, { maxLength: 4 }))
  .map(([cuts, controls]) => {
    const text = JSON.stringify(CREATE);
    const at = [...new Set([0, ...cuts.map((cut) => cut % text.length), text.length])].sort((a, b) => a - b);
    return at.slice(1).flatMap((end, i) => {
      const part = frame(i === 0 ? TEXT : CONTINUATION, text.slice(at[i], end), { fin: end === text.length });
      return controls[i] ? [part, controls[i]] : [part];
    });
  });
/** Bytes that no protocol has: anything, or a frame with one bit changed. */
const NOISE = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => [Buffer.from(bytes)]),
  fc.tuple(TURN, fc.nat(30), fc.nat(7)).map(([frames, at, bit]) => {
    const bytes = Buffer.concat(frames);
    bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ (1 << bit);
    return [bytes];
  }),
);
const STREAM = fc.record({
  parts: fc.array(fc.oneof({ weight: 4, arbitrary: TURN }, { weight: 1, arbitrary: NOISE }), {
    minLength: 1,
    maxLength: 8,
  }),
  /** How the bytes are cut on their way. */
  pieces: fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 }),
});

test('for any frames on a socket, each turn that reaches the provider is a paid use, and other sockets are served', {
  timeout: 300_000,
}, async () => {
  const other = await openSocket((await stack.issue(ASK)).url);
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(STREAM, async ({ parts, pieces }) => {
      const { url } = await stack.issue({ ...ASK, cost_limit: 1_000_000 });
      const before = provider.raw().length;
      const { socket, got, ended } = await rawSocket(url);
      const bytes = Buffer.concat([...parts.flat(), frame(PING, MARK)]);
      for (let at = 0, i = 0; at < bytes.length && !socket.destroyed; i++) {
        const size = pieces[i % pieces.length] ?? 1;
        socket.write(bytes.subarray(at, at + size));
        at += size;
      }
      // A mark that noise has swallowed is not answered.
      await eventually(async () => got().includes(MARK) || socket.destroyed, 1_000).catch(() => {});
      socket.end(frame(8, Buffer.from([0x03, 0xe8])));
      await ended;
      const status = await eventually(async () => {
        const now = await statusOf(url);
        return now.held === 0 && now;
      });
      const turns = provider.raw().length - before;
      sent += turns;
      expect(status.used).toBe(turns);
      expect(status.spent > 0).toBe(turns > 0);
      expect(codeOf(await other.turn({ ...CREATE, input: randomBytes(4).toString('hex') }))).toBe(
        'response.completed',
      );
    }),
    { numRuns: thorough ? 300 : 25 },
  );
  expect(sent).toBeGreaterThan(5);
  other.socket.close();
});

const ID = fc.constantFrom('resp_1', 'resp_2', { toString: 1 }, ['x'], null, 7);
/** Events of a provider: of the right type, with values of any type. */
const SAID = fc.record(
  {
    type: fc.constantFrom(
      ...['response.created', 'response.completed', 'response.done', 'response.failed', 'error'],
      ...['session.created', 'session.updated', 'input_audio_buffer.speech_stopped'],
      ...['input_audio_buffer.committed', 'x'],
    ),
    stream_id: fc.constantFrom('a', 7, {}),
    status: fc.constantFrom(400, 'x', -1),
    error: fc.oneof(fc.record({ type: fc.jsonValue(), event_id: ID }), fc.jsonValue()),
    response: fc.oneof(
      fc.record({ id: ID, model: fc.constantFrom('gpt-4.1-mini', {}, 7), metadata: fc.jsonValue() }),
      fc.jsonValue(),
    ),
    session: fc.oneof(fc.record({ type: ID, model: ID, audio: fc.jsonValue() }), fc.jsonValue()),
    item_id: ID,
  },
  { requiredKeys: ['type'] },
);

test.each(PROTOCOLS)(
  'for any events of a provider of $name, its socket pays for its turn, and others are served',
  {
    timeout: 300_000,
  },
  async (protocol) => {
    const served = await protocol.start();
    const mine = await startStack({ providers: { openai: { base_url: served.provider.url } } });
    const issue = async () =>
      (await mine.issue({ ...protocol.asked, client_api_key: 'sk-real', cost_limit: LIMIT })).url;
    const { serve } = served.provider;
    await fc.assert(
      fc.asyncProperty(fc.array(SAID, { minLength: 1, maxLength: 6 }), async (events) => {
        served.provider.serve = (event, of) => {
          if (event.type !== 'response.create') return serve(event, of);
          for (const each of events) of.socket.send(JSON.stringify(each));
          of.socket.close();
        };
        const url = await issue();
        const holder = await protocol.open(url);
        holder.send(protocol.create());
        await holder.closed;
        const { spent, used } = await eventually(async () => {
          const now = await statusOf(url);
          return now.held === 0 && now;
        });
        expect(spent).toBeLessThanOrEqual(LIMIT);
        const isRefused = events.some(({ type }) => type === 'error');
        if (!isRefused) expect([used > 0, spent > 0]).toEqual([true, true]);
      }),
      { numRuns: thorough ? 300 : 40 },
    );
    served.provider.serve = serve;
    const other = await protocol.open(await issue());
    expect(await turn(protocol, other)).toBe('done');
    other.socket.close();
    await mine.close();
    await served.provider.close();
  },
);

const LIMIT = 20_000_000;
