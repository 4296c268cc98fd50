import { BUILT_IN_PROVIDERS } from '@presign/providers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_RULES } from '../src/grant/call-rules.ts';
import { lookFor } from '../src/socket/dialects/event.ts';
import { RealtimeDialect } from '../src/socket/dialects/realtime.ts';

const provider = BUILT_IN_PROVIDERS.get('openai');
if (!provider) throw new Error('openai is not built in');

function dialectOf(maxBodyBytes?: number): RealtimeDialect {
  const of = { provider, path: '/v1/realtime', model: 'gpt-realtime', isModelFixed: false, maxBodyBytes };
  const opened = RealtimeDialect.open({
    ...of,
    provider: provider as NonNullable<typeof provider>,
    rules: NO_RULES,
    at: { prices: new Map() as never, now: 0 },
  });
  if ('refusal' in opened) throw new Error(opened.refusal.code);
  return opened;
}
const dialect = dialectOf();

const BASE64 = fc.base64String({ maxLength: 60 });
const SOUND = fc
  .tuple(BASE64, fc.boolean())
  .map(([audio, isSpaced]) =>
    isSpaced
      ? `{"type": "input_audio_buffer.append", "audio": "${audio}"}`
      : `{"type":"input_audio_buffer.append","audio":"${audio}"}`,
  );
/** Pieces that change how a reader understands an event. */
const PIECE = fc.oneof(
  fc.constantFrom(
    ...['"', '\\', '\\u0022', '\\"', '{', '}', '[', ']', ',', ':', ' ', '\n', '\0', '=', 'é', '\u2028', '😀'],
    ...[
      '","type":"response.create',
      '","audio":"',
      '","Type":"x',
      '"}{"',
      '","event_id":"e',
      '"},"x":{"y":"',
    ],
    ...['"TYPE"', 'response.create', '/', '\u007f', '\ud800'],
  ),
  fc.string({ maxLength: 4 }),
);
/** Sound with bytes changed, cut, repeated, or with a piece put in. */
const CHANGED = fc.oneof(
  fc.tuple(SOUND, fc.nat(200), PIECE).map(([text, at, piece]) => {
    const cut = at % (text.length + 1);
    return Buffer.from(text.slice(0, cut) + piece + text.slice(cut));
  }),
  fc.tuple(SOUND, fc.nat(200), fc.nat(255)).map(([text, at, byte]) => {
    const bytes = Buffer.from(text);
    bytes[at % bytes.length] = byte;
    return bytes;
  }),
  fc
    .tuple(SOUND, fc.nat(200), fc.nat(200))
    .map(([text, from, to]) => Buffer.from(text.slice(0, from) + text.slice(to))),
  fc.tuple(SOUND, SOUND).map(([one, two]) => Buffer.from(one + two)),
);
const RUNS = { numRuns: process.env.TEST_ALL ? 200_000 : 20_000 };

describe('an event that passes the fast check', () => {
  test('is one that the full check sends unchanged, whatever was changed in it', () => {
    let [plain, refused] = [0, 0];
    fc.assert(
      fc.property(CHANGED, (frame) => {
        const asked = dialect.read(frame);
        if (asked.is === 'refused') refused++;
        if (!dialect.isPlain(frame)) return;
        plain++;
        expect(asked).toEqual({ is: 'free', frame });
        expect(Object.keys(JSON.parse(frame.toString()) as object)).toEqual(['type', 'audio']);
      }),
      RUNS,
    );
    // Both judges had something to judge.
    expect(plain).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  });

  test('is any event that SDKs write', () => {
    fc.assert(
      fc.property(SOUND, (text) => {
        expect(dialect.isPlain(Buffer.from(text))).toBe(true);
      }),
    );
  });

  test('is at most max_body_bytes long', () => {
    const frame = Buffer.from('{"type":"input_audio_buffer.append","audio":"AAAA"}');
    expect(dialectOf(frame.length).isPlain(frame)).toBe(true);
    expect(dialectOf(frame.length - 1).isPlain(frame)).toBe(false);
  });
});

test('the type of an event is found wherever it is, and no other text is taken for it', () => {
  const looks = lookFor(['response.done', 'error']);
  for (const length of [0, 65_520, 65_530, 65_536, 131_060, 200_000]) {
    const before = 'x'.repeat(length);
    expect(looks(Buffer.from(`{"a":"${before}","type":"response.done"}`))).toBe(true);
    expect(looks(Buffer.from(`{"a":"${before}","type":"response_done"}`))).toBe(false);
  }
  for (let at = 65_500; at < 65_560; at++) {
    const frame = Buffer.alloc(70_000, 'x');
    frame.write('"response.done"', at);
    expect(looks(frame)).toBe(true);
  }
});

test.each(['mine', '', 'é"\\', 'x'.repeat(600)])(
  'the event_id of an event that is refused without parsing is %j',
  (id) => {
    const read = dialect.read(Buffer.from(JSON.stringify({ type: 'unknown', event_id: id })));
    expect(read).toMatchObject({ is: 'refused' });
    for (const rest of [{}, { item: { event_id: 'another' } }, { audio: 'x'.repeat(100_000) }]) {
      const frame = Buffer.from(JSON.stringify({ ...rest, type: 'unknown', event_id: id }));
      expect(dialect.labelOf(frame)).toBe('label' in read && read.label);
    }
  },
);
