import { BUILT_IN_PROVIDERS, BUNDLED_PRICES, type Provider, whyNoSocket } from '@presign/providers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRules, NO_RULES } from '../src/grant/call-rules.ts';
import type { Running } from '../src/socket/dialects/dialect.ts';
import { RealtimeDialect } from '../src/socket/dialects/realtime.ts';
import { allowed, EVENTS, isObject, type Json, MODEL, PlainEar, readSlowly } from './plain-realtime.ts';

const provider = BUILT_IN_PROVIDERS.get('openai') as Provider;
const PATH = '/v1/realtime';
const of = {
  ...{ provider, path: PATH, model: MODEL, isModelFixed: false, maxBodyBytes: undefined },
  ...{ rules: NO_RULES, at: { prices: BUNDLED_PRICES, now: 0 } },
};
function newDialect(): RealtimeDialect {
  const opened = RealtimeDialect.open(of);
  if ('refusal' in opened) throw new Error(opened.refusal.code);
  return opened;
}

const ODD = fc.oneof(fc.constantFrom(null, undefined, 'x', 1, true, [], {}, '__proto__'), fc.jsonValue());
/** Mostly what a field has, and at times anything. */
const mostly = (...usual: readonly unknown[]) =>
  fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: ODD });
const record = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>, isWhole = false) =>
  fc
    .tuple(
      fc.oneof(
        { weight: isWhole ? 9 : 1, arbitrary: fc.record(fields) },
        { weight: 1, arbitrary: fc.record(fields, { requiredKeys: [] }) },
      ),
      fc.nat(60),
      ODD,
    )
    .map(([usual, odd, value]) => ({
      ...usual,
      ...(odd === 0 && { novelty: value }),
      ...(odd === 1 && { prompt: value }),
      ...(odd === 2 && { model: value }),
      ...(odd === 3 && { ['__proto__']: value }),
    }));
const TOOL = record({ type: mostly('function'), name: mostly('f'), parameters: mostly({}) }, true);
const TOOLS = fc.oneof(fc.array(TOOL, { maxLength: 2 }), mostly([], [{ type: 'mcp' }]));
const ITEM = record({
  type: mostly('message', 'function_call_output', 'item_reference'),
  id: mostly('i'),
  content: mostly([]),
});
const DETECTION = record({
  type: mostly('server_vad', 'semantic_vad'),
  create_response: mostly(true, false),
  idle_timeout_ms: mostly(5_000),
  threshold: mostly(0.5),
});
const HEARING = record({
  turn_detection: fc.oneof(DETECTION, mostly(null)),
  transcription: mostly({ model: 'whisper-1' }, null),
});
const AUDIO = record({ input: fc.oneof(HEARING, mostly({})), output: mostly({ voice: 'marin' }) });
const SHARED = {
  instructions: mostly('x'),
  tools: TOOLS,
  max_output_tokens: mostly(5, 'inf'),
  audio: fc.oneof(AUDIO, mostly({})),
};
const SESSION = record({
  ...SHARED,
  type: mostly('realtime', 'transcription'),
  model: mostly(MODEL, 'other'),
});
const RESPONSE = record({
  ...SHARED,
  conversation: mostly('auto', 'none', 'c'),
  input: fc.oneof(fc.array(ITEM, { maxLength: 2 }), mostly([])),
  metadata: mostly({ a: 'b' }, { presign_turn: 'mine' }, Object.fromEntries(Array(16).entries())),
});
const EVENT = record({
  type: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...Object.keys(EVENTS)) }, mostly('x')),
  event_id: mostly('e', ''),
}).chain((event: Json) => {
  const fields: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
    ...{ audio: mostly('AAAA'), item: fc.oneof(ITEM, mostly({})), item_id: mostly('i') },
    ...{ previous_item_id: mostly('root'), content_index: mostly(0), audio_end_ms: mostly(9) },
    ...{ response_id: mostly('r'), session: fc.oneof(SESSION, ODD), response: fc.oneof(RESPONSE, ODD) },
  };
  const own = Object.keys(EVENTS[String(event.type)] ?? {}).map((name) => [name, fields[name]] as const);
  return record(Object.fromEntries(own) as typeof fields).map((rest) => ({ ...event, ...rest }));
});
/** The text of an event: as it is, cut, with a part put in, or with a name twice. */
const TEXT = fc.oneof(
  { weight: 6, arbitrary: EVENT.map((event) => JSON.stringify(event)) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        EVENT,
        fc.nat(300),
        fc.constantFrom('', '"', '{', '}', ',', '\\', '\\u0061', ' ', 'x'),
        fc.nat(2),
      )
      .map(([event, place, piece, gone]) => {
        const text = JSON.stringify(event);
        const at = place % text.length;
        return text.slice(0, at) + piece + text.slice(at + gone);
      }),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(EVENT, EVENT).map(
      (both) =>
        `{${both
          .map((each) => JSON.stringify(each).slice(1, -1))
          .filter(Boolean)
          .join(',')}}`,
    ),
  },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string() },
);
const RUNS = { numRuns: process.env.TEST_ALL ? 50_000 : 5_000 };

describe('any event of a Realtime client', () => {
  test('passes only if a simple reference judge allows it, and starts work only as a turn', () => {
    const seen = { refused: 0, free: 0, turn: 0 };
    fc.assert(
      fc.property(TEXT, (text) => {
        const event = allowed(text);
        const asked = newDialect().read(Buffer.from(text));
        seen[asked.is]++;
        expect(asked.is === 'refused').toBe(event === undefined);
        if (asked.is === 'refused' || !event) return;
        if (asked.is === 'turn') {
          expect(event.type).toBe('response.create');
          const { create } = asked;
          const sent = readSlowly(create.withBody(create.body, 'r1').toString()) as Json;
          expect(sent).toMatchObject({ type: 'response.create', event_id: 'r1' });
          const { metadata, ...others } = sent.response as Json;
          expect((metadata as Json).presign_turn).toBe('r1');
          const { metadata: _, audio, ...given } = (event.response ?? {}) as Json;
          // The sound of a response has no input.
          const output = isObject(audio) && audio.output !== undefined && { audio: { output: audio.output } };
          expect(others).toEqual({ ...given, ...output });
          return;
        }
        expect(event.type).not.toBe('response.create');
        if (event.type !== 'session.update') {
          expect(asked.frame.toString()).toBe(text);
          return;
        }
        const { session } = readSlowly(asked.frame.toString()) as { session: { audio?: { input?: Json } } };
        const { turn_detection: detection, transcription } = session.audio?.input ?? {};
        expect(transcription ?? null).toBeNull();
        if (isObject(detection)) expect(detection.create_response).toBe(false);
        expect(detection ?? {}).not.toHaveProperty('idle_timeout_ms');
      }),
      RUNS,
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
  });

  test('is refused in a config at issuing exactly if no session would open with it', () => {
    const seen = { opened: 0, refused: 0 };
    fc.assert(
      fc.property(fc.oneof(SESSION, RESPONSE), (fields) => {
        const config = JSON.parse(JSON.stringify(fields)) as Json;
        fc.pre(typeof (config.model ?? 'x') === 'string' && config.model !== '');
        const dialect = provider.routes.find(({ path }) => path === PATH)?.dialect;
        const opened = RealtimeDialect.open({ ...of, rules: compileRules({ config }, dialect) });
        const dead = whyNoSocket(provider, PATH, config);
        seen['refusal' in opened ? 'refused' : 'opened']++;
        expect(dead !== undefined).toBe('refusal' in opened);
        if (dead) expect(Object.keys(config)).toContain(dead.field);
      }),
      RUNS,
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
  });
});

const TURN: fc.Arbitrary<Running> = fc.record({
  lane: fc.constantFrom('', 'none 1', 'none 2'),
  label: fc.constantFrom('', 'mine', '"'),
  requestId: fc.constantFrom('r1', 'r2', 'r3'),
  responseId: fc.constantFrom('resp_1', 'resp_2', undefined),
  hasAnswered: fc.boolean(),
  isAlone: fc.boolean(),
  matters: fc.constant(() => true),
});
const SAID = fc
  .record(
    {
      type: fc.constantFrom(
        ...['session.created', 'session.updated', 'response.created', 'response.done', 'error', 'x'],
        ...['input_audio_buffer.speech_stopped', 'input_audio_buffer.committed'],
      ),
      session: fc.oneof(SESSION, ODD),
      response: fc.oneof(
        fc.record(
          {
            id: mostly('resp_1', 'resp_2', 7),
            metadata: mostly({ presign_turn: 'r1' }, { presign_turn: 'r2' }, {}),
          },
          { requiredKeys: [] },
        ),
        ODD,
      ),
      item_id: mostly('i1', 'i2'),
      error: fc.oneof(
        fc.record(
          {
            type: mostly('invalid_request_error', 'rate_limit_error', 'server_error'),
            event_id: mostly('r1', 'r2', 'e'),
          },
          { requiredKeys: [] },
        ),
        ODD,
      ),
    },
    { requiredKeys: ['type'] },
  )
  .map((event) => JSON.stringify(event));
/** Rare by chance: a session as the gateway asks for it. */
const QUIET = fc.constant(
  JSON.stringify({
    type: 'session.updated',
    session: { type: 'realtime', model: MODEL, audio: { input: { turn_detection: null } } },
  }),
);
const HEARD = fc.oneof(
  { weight: 24, arbitrary: SAID },
  { weight: 3, arbitrary: fc.json() },
  { weight: 3, arbitrary: TEXT },
  { weight: 1, arbitrary: QUIET },
);

describe('any event of a Realtime provider', () => {
  test('has the meaning that a simple reference judge reads, and never throws', () => {
    const seen: Record<string, number> = {};
    fc.assert(
      fc.property(
        fc.array(HEARD, { minLength: 1, maxLength: 8 }),
        fc.uniqueArray(TURN, { selector: ({ requestId }) => requestId, maxLength: 3 }),
        (texts, running) => {
          const [dialect, plain] = [newDialect(), new PlainEar()];
          for (const text of texts) {
            const heard = dialect.hear(Buffer.from(text), running);
            const expected = plain.hear(text, running);
            seen[heard.is] = (seen[heard.is] ?? 0) + 1;
            expect([heard.is, 'turn' in heard ? heard.turn : undefined]).toEqual([
              expected.is,
              expected.turn,
            ]);
            // The turn's name is the gateway's own.
            if ('shown' in heard && heard.shown)
              expect(heard.shown.toString()).not.toContain(`"${expected.turn?.requestId}"`);
          }
        },
      ),
      RUNS,
    );
    const all = [
      'part',
      'created',
      'over',
      'refused',
      'failed',
      'unclear',
      'stray',
      'ready',
      'due',
      'lawless',
    ];
    for (const is of all) expect(seen[is], is).toBeGreaterThan(5);
  });
});
