import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createMeter, type MeterOptions } from '../src/llm/meter.ts';
import { bodyMemory } from '../src/share/body-memory.ts';
import { COUNTS, metered, roomy, spendOf } from './metered.ts';

const chatUsage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
const claudeEvents = [
  { type: 'message_start', message: { usage: { input_tokens: 20, output_tokens: 1 } } },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 30 } },
  { type: 'message_stop' },
];
const responsesEvents = [
  { type: 'response.created', response: { status: 'in_progress', usage: null } },
  {
    type: 'response.completed',
    response: { output: [], usage: { input_tokens: 20, output_tokens: 30, total_tokens: 50 } },
  },
];
const chunks = [
  { choices: [{ index: 0, delta: { content: 'Hé' }, finish_reason: 'stop' }] },
  { choices: [], usage: chatUsage },
];
const geminiEvents = [
  { candidates: [{ index: 0, content: { parts: [{ text: 'Hé' }] } }] },
  {
    candidates: [{ index: 0, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 20, totalTokenCount: 50 },
  },
];
const billed = { billed_units: { input_tokens: 20, output_tokens: 30 } };
const cohereV1 = [
  { event_type: 'text-generation', text: 'Hé' },
  { event_type: 'stream-end', response: { meta: billed } },
];
const cohereV2 = [{ type: 'message-start' }, { type: 'message-end', delta: { usage: billed } }];
const image = {
  type: 'image_generation.completed',
  b64_json: 'x',
  usage: { input_tokens: 20, output_tokens: 30, output_tokens_details: { image_tokens: 0 } },
};

/** Every dialect with a stream of text: its events, and how they are framed. `[DONE]` is a last word that is no JSON. */
const STREAMS: readonly [string, string, string, 'data' | 'named' | 'lines', readonly (object | string)[]][] =
  [
    ['chat', 'openai', '/v1/chat/completions', 'data', [...chunks, '[DONE]']],
    ['completions', 'openai', '/v1/completions', 'data', [...chunks, '[DONE]']],
    [
      'chat that ends with finish_reason',
      'perplexity',
      '/chat/completions',
      'data',
      [{ ...chunks[0], usage: chatUsage }],
    ],
    ['Responses', 'openai', '/v1/responses', 'named', responsesEvents],
    ['images', 'openai', '/v1/images/generations', 'named', [image]],
    ['Messages', 'anthropic', '/v1/messages', 'named', claudeEvents],
    ['Gemini', 'google', '/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'data', geminiEvents],
    ['Cohere v1', 'cohere', '/v1/chat', 'lines', cohereV1],
    ['Cohere v1 as events', 'cohere', '/v1/chat', 'data', cohereV1],
    ['Cohere v2', 'cohere', '/v2/chat', 'named', cohereV2],
  ];

const optionsOf = (provider: string, path: string, framing: string): MeterOptions => ({
  spend: spendOf(provider, path),
  status: 200,
  contentType: framing === 'lines' ? 'application/stream+json' : 'text/event-stream',
  contentEncoding: '',
  dropsUsageEvent: false,
  keepsLast: true,
  memory: roomy(),
});

/** A stream in this framing, without the line ends of its last event. */
function framed(framing: string, events: readonly (object | string)[], end = '\n'): string {
  const written = events.map((event) => {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    if (framing === 'lines') return data;
    const name = typeof event === 'object' && 'type' in event ? `event: ${event.type}${end}` : '';
    return `${framing === 'named' ? name : ''}data: ${data}`;
  });
  return written.join(framing === 'lines' ? end : end + end);
}

const CODED: Readonly<Record<string, (text: string) => Buffer>> = {
  '': (text) => Buffer.from(text),
  gzip: (text) => gzipSync(text),
  br: (text) => brotliCompressSync(text),
};

describe.each(STREAMS)('a stream of %s', (_what, provider, path, framing, events) => {
  const options = optionsOf(provider, path, framing);

  test('is read even if its last event lacks a line end, plain or compressed', async () => {
    for (const end of ['\n', '\r\n', '\r'])
      for (const [contentEncoding, code] of Object.entries(CODED))
        for (const last of [
          end + end,
          end,
          '',
          ` ${end}`,
          ...(framing === 'lines' ? [] : [`${end}${end}: bye`]),
        ]) {
          const sent = code(framed(framing, events, end) + last);
          const seen = await metered({ ...options, contentEncoding }, [
            sent.subarray(0, 7),
            sent.subarray(7),
          ]);
          expect([end, contentEncoding, last, seen.reported?.usage]).toEqual([
            end,
            contentEncoding,
            last,
            COUNTS,
          ]);
          expect(seen.all).toBe(String(sent));
        }
  });

  test('that is cut within its last event reports no usage, plain or compressed', async () => {
    const whole = framed(framing, events);
    const before = framed(framing, events.slice(0, -1)).length;
    for (let size = before + 3; size < whole.length; size++)
      for (const contentEncoding of ['', 'gzip']) {
        const sent = CODED[contentEncoding]?.(whole.slice(0, size)) ?? Buffer.alloc(0);
        const seen = await metered({ ...options, contentEncoding }, [sent]);
        expect([whole.slice(before, size), seen.reported]).toEqual([whole.slice(before, size), undefined]);
        expect(seen.all).toBe(String(sent));
      }
  });

  test('whose complete last event is followed by part of another reports no usage', async () => {
    const more = framing === 'lines' ? '\n{"event_ty' : '\n\ndata: {"choi';
    expect((await metered(options, [framed(framing, events) + more])).reported).toBeUndefined();
  });

  test('keeps its end back until the call is settled', async () => {
    for (const last of ['\n\n', '\n', '', '\n\n\n\n', ...(framing === 'lines' ? [] : ['\n\n: bye\n\n'])]) {
      const whole = framed(framing, events) + last;
      const { early } = await metered(options, [whole]);
      expect(whole.length - early.length).toBeGreaterThan(last.length);
    }
  });

  test.runIf(framing !== 'lines')('passes comments and blank lines immediately', () => {
    const beats = [': ping\n', ':\n', ': ping\n\n', '\n', '\r\n', ': a\r\n', ': a\n: b\n\n'];
    for (const keepsLast of [true, false])
      for (const dropsUsageEvent of [true, false])
        for (const beat of beats) {
          const meter = createMeter({ ...options, keepsLast, dropsUsageEvent });
          const pass = (text: string) => String(meter.pass(Buffer.from(text)) ?? '');
          for (const event of events.slice(0, -1)) {
            expect(pass(beat)).toBe(beat);
            const half = Math.floor(beat.length / 2);
            expect(pass(beat.slice(0, half)) + pass(beat.slice(half))).toBe(beat);
            pass(`${framed(framing, [event])}\n\n`);
          }
        }
  });

  test('is read with little memory although each event contains an image of 6 MB', async () => {
    const picture = 'iVBORw0KGgo+/='.repeat(450_000);
    const large = events.map((event) => (typeof event === 'string' ? event : { ...event, picture }));
    const text = `${framed(framing, large)}\n\n`;
    const bytes = Buffer.from(text);
    for (const size of [64 * 1024, bytes.length])
      for (const contentEncoding of ['', 'gzip'])
        for (const keepsLast of [true, false]) {
          const memory = bodyMemory(6 * 1024 * 1024, 6 * 1024 * 1024).newReservation();
          const sent = contentEncoding === '' ? bytes : gzipSync(bytes, { level: 1 });
          const meter = createMeter({ ...options, contentEncoding, keepsLast, memory });
          const passed: Buffer[] = [];
          for (let at = 0; at < sent.length; at += size)
            passed.push(meter.pass(sent.subarray(at, at + size)) ?? Buffer.alloc(0));
          const { rest, reported } = await meter.end();
          expect(reported?.usage).toEqual(COUNTS);
          if (keepsLast) expect(rest?.length).toBeGreaterThan(0);
          expect(Buffer.concat([...passed, rest ?? Buffer.alloc(0)]).equals(sent)).toBe(true);
        }
  });
});
