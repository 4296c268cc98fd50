import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Running } from '../src/socket/dialects/dialect.ts';
import { responsesDialect } from '../src/socket/dialects/responses.ts';

const { read, labelOf, hear } = responsesDialect;

/** An event as JSON. Undefined: it cannot be read. */
const parsed = (text: Buffer): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(text.toString()) as Record<string, unknown>;
  } catch {
    return undefined;
  }
};
const own = (fields: object) => JSON.parse(JSON.stringify(fields)) as object;

const NAME = fc.oneof(
  fc.constantFrom('type', 'stream_id', 'generate', 'model', 'input', 'Type', '__proto__', 'response', 'id'),
  fc.string(),
);
const VALUE = fc.oneof(
  fc.constantFrom('response.create', 'response.completed', 'response.created', 'error', 'a', 'resp_1'),
  fc.jsonValue(),
);
const OBJECT = fc.dictionary(NAME, VALUE, { maxKeys: 6 });
const CREATE = OBJECT.map((more) => ({ ...more, type: 'response.create' }));
/** Text of an event: right, cut, with a byte changed, with two events in one, or anything. */
const FRAME = fc.oneof(
  fc.oneof(CREATE, OBJECT).map((event) => Buffer.from(JSON.stringify(event))),
  fc.tuple(CREATE, fc.nat(80)).map(([event, at]) => Buffer.from(JSON.stringify(event)).subarray(0, at)),
  fc.tuple(CREATE, fc.nat(80), fc.nat(255)).map(([event, at, byte]) => {
    const bytes = Buffer.from(JSON.stringify(event));
    bytes[at % bytes.length] = byte;
    return bytes;
  }),
  fc.tuple(CREATE, OBJECT).map(([first, second]) => {
    const [one, two] = [first, second].map((each) => JSON.stringify(each).slice(1, -1));
    return Buffer.from(`{${[one, two].filter(Boolean).join(',')}}`);
  }),
  fc.json().map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);
const RUNS = { numRuns: process.env.TEST_ALL ? 20_000 : 3_000 };

describe('any event of a client', () => {
  test('is refused, or becomes one turn that sends exactly the judged event', async () => {
    let turns = 0;
    await fc.assert(
      fc.asyncProperty(FRAME, async (frame) => {
        const asked = await read(frame);
        expect(['turn', 'refused']).toContain(asked.is);
        if (asked.is !== 'turn') return;
        turns++;
        const { body, lane, label, withBody } = asked.create;
        expect(labelOf(frame)).toBe(label);
        const sent = JSON.parse(withBody(Buffer.from('{"model":"judged"}'), 'r').toString());
        expect([sent.type, sent.stream_id ?? '', sent.model]).toEqual(['response.create', lane, 'judged']);
        const event = parsed(frame);
        // A body that is no JSON is refused when it is planned.
        if (event === undefined) return void expect(parsed(body)).toBeUndefined();
        const { type, stream_id, generate, ...rest } = event;
        expect(parsed(body)).toEqual(rest);
        // A name that is repeated at the top would hide in one of the two readings.
        expect(parsed(withBody(body, 'r'))).toEqual(event);
        expect(sent).toEqual({ ...own({ type, stream_id, generate }), model: 'judged' });
      }),
      RUNS,
    );
    expect(turns).toBeGreaterThan(100);
  });

  test('is refused if it has a duplicate name, because parsers differ in which value they use', async () => {
    const both = fc.tuple(CREATE, OBJECT, NAME).map(([first, second, name]) => [
      { ...first, [name]: 'response.create' },
      { ...second, [name]: 'response.create' },
    ]);
    await fc.assert(
      fc.asyncProperty(both, async (events) => {
        const members = events.map((event) => JSON.stringify(event).slice(1, -1));
        expect((await read(Buffer.from(`{${members.join(',')}}`))).is).toBe('refused');
      }),
      RUNS,
    );
  });
});

const TURN = fc.record({
  lane: fc.constantFrom('', 'a', 'b'),
  label: fc.constant(''),
  requestId: fc.constant('r'),
  responseId: fc.constantFrom('resp_1', 'resp_2', undefined),
  hasAnswered: fc.boolean(),
  isAlone: fc.boolean(),
  matters: fc.boolean().map((matters) => () => matters),
});
const SAID = fc.oneof(
  fc
    .record({
      type: fc.constantFrom(
        'response.created',
        'response.completed',
        'response.failed',
        'response.incomplete',
        'error',
        'x',
      ),
      stream_id: fc.constantFrom('a', 'b', 1, undefined),
      status: fc.constantFrom(400, 429, 500, 200, 'x', undefined),
      response: fc.oneof(
        fc.record({
          id: fc.constantFrom('resp_1', 'resp_2', 7, { toString: 1 }, undefined),
          model: fc.constantFrom('gpt-4.1-mini', 7, undefined),
        }),
        fc.jsonValue(),
      ),
    })
    .map((event) => Buffer.from(JSON.stringify(event))),
  FRAME,
);

describe('any event of a provider', () => {
  test('never throws, and ends only an active turn, and a response only by its own id', () => {
    let ended = 0;
    fc.assert(
      fc.property(
        SAID,
        fc.uniqueArray(TURN, { selector: ({ lane }) => lane, maxLength: 3 }),
        (frame, running) => {
          const heard = hear<Running>(frame, running);
          if (heard.is === 'lawless') heard.unasked?.most();
          if (!('turn' in heard)) return;
          if (heard.turn) expect(running).toContain(heard.turn);
          if (heard.is !== 'over') return;
          ended++;
          const { response } = JSON.parse(frame.toString()) as { response: { id: unknown } };
          expect(heard.turn.responseId).toBe(response.id);
        },
      ),
      RUNS,
    );
    expect(ended).toBeGreaterThan(10);
  });
});
