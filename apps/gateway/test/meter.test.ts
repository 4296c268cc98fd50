import { gzipSync } from 'node:zlib';
import type { Spend } from '@presign/providers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMeter, type MeterOptions } from '../src/llm/meter.ts';
import { bodyMemory } from '../src/share/body-memory.ts';
import { COUNTS, metered, roomy, spendOf } from './metered.ts';

const CHAT = spendOf('openai', '/v1/chat/completions');
const GEMINI = spendOf('google', '/v1beta/models/gemini-2.5-flash:streamGenerateContent');

const data = (value: object | string) =>
  `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
const SAID = data({ choices: [{ index: 0, delta: { content: 'Hé' } }] });
const USAGE = data({ choices: [], usage });
const STREAM = SAID + USAGE + data('[DONE]');

const events: MeterOptions = {
  spend: CHAT,
  status: 200,
  contentType: 'text/event-stream',
  contentEncoding: '',
  dropsUsageEvent: true,
  keepsLast: true,
  memory: roomy(),
};
const TURN_BYTES = 64 * 1024;
const json: MeterOptions = { ...events, contentType: 'application/json', dropsUsageEvent: false };

describe('a stream', () => {
  test('passes complete wherever it is cut, except for the usage event that the gateway requested', async () => {
    const bytes = Buffer.from(STREAM);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), fc.boolean(), async (cuts, keepsLast) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
        const seen = await metered({ ...events, keepsLast }, chunks);
        expect(seen.all).toBe(SAID + data('[DONE]'));
        expect(seen.reported?.usage).toEqual(COUNTS);
        expect(seen.early).toBe(keepsLast ? SAID : SAID + data('[DONE]'));
      }),
    );
  });

  test.each<[string, string]>([
    ['without its last word', SAID + USAGE],
    ['whose last word is cut', `${SAID}${USAGE}data: [DON`],
    ['without usage', SAID + data('[DONE]')],
    ['with usage of null', SAID + data({ choices: [], usage: null }) + data('[DONE]')],
    ['with usage below zero', data({ choices: [], usage: { ...usage, prompt_tokens: -1 } }) + data('[DONE]')],
    ['with usage as text', data({ choices: [], usage: { ...usage, prompt_tokens: '20' } }) + data('[DONE]')],
    [
      'with usage no number holds',
      SAID + data('{"usage":{"prompt_tokens":1e400,"completion_tokens":1}}') + data('[DONE]'),
    ],
    ['that reports an error', STREAM.replace(USAGE, USAGE + data({ error: { message: 'overloaded' } }))],
    ['that is no JSON', `data: {{{\n\n${STREAM}`],
    ['of odd values', data('null') + data('[]') + data('"usage"') + data('[DONE]')],
  ])('%s reports nothing, and passes', async (_what, text) => {
    const seen = await metered({ ...events, dropsUsageEvent: false }, [text]);
    expect(seen.reported).toBeUndefined();
    expect(seen.all).toBe(text);
  });

  test('with several usages reports the last', async () => {
    const early = data({ choices: [], usage: { ...usage, completion_tokens: 1, total_tokens: 21 } });
    expect((await metered(events, [early + STREAM])).reported?.usage).toEqual(COUNTS);
  });

  test('with an endless event passes, is not kept in memory, and reports no usage', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    for (const options of [events, { ...events, dropsUsageEvent: false, keepsLast: false }]) {
      const meter = createMeter(options);
      let passed = 0;
      for (let i = 0; i < 40; i++) passed += meter.pass(chunk)?.length ?? 0;
      const { rest, reported } = await meter.end();
      expect(passed + (rest?.length ?? 0)).toBe(40 * chunk.length);
      expect(rest?.length ?? 0).toBeLessThanOrEqual(1);
      expect(reported).toBeUndefined();
    }
  });

  test('as one JSON array is read element by element', async () => {
    const part = {
      candidates: [{ index: 0, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 20, totalTokenCount: 50 },
    };
    expect((await metered({ ...json, spend: GEMINI }, [JSON.stringify([part])])).reported?.usage).toEqual(
      COUNTS,
    );
  });
});

describe('a whole answer', () => {
  const WHOLE = JSON.stringify({ choices: [], usage });

  test.each<[string, Partial<MeterOptions>, Buffer | string, boolean]>([
    ['plain', {}, WHOLE, true],
    ['as gzip', { contentEncoding: 'gzip' }, gzipSync(WHOLE), true],
    ['called gzip, but plain', { contentEncoding: 'gzip' }, WHOLE, false],
    ['in gzip twice', { contentEncoding: 'gzip, gzip' }, gzipSync(gzipSync(WHOLE)), false],
    ['in a coding that is not known', { contentEncoding: 'zstd' }, WHOLE, false],
    [
      'as gzip of more than is kept',
      { contentEncoding: 'gzip' },
      gzipSync(Buffer.alloc(65 * 1024 * 1024, ' ')),
      false,
    ],
    ['called a stream', { contentType: 'text/event-stream', dropsUsageEvent: false }, WHOLE, false],
    ['of another type than it is', { contentType: 'image/png' }, WHOLE, true],
    ['that is an error', {}, '{"error":{"message":"no"}}', false],
    ['nested without end', {}, '['.repeat(200_000) + ']'.repeat(200_000), false],
    ['empty', {}, '', false],
  ])('%s', async (_what, options, bytes, isTold) => {
    const seen = await metered({ ...json, ...options }, [bytes]);
    expect(seen.reported?.usage).toEqual(isTold ? COUNTS : undefined);
    expect(seen.all).toBe(String(Buffer.from(bytes)));
  });

  test('whose shortened text exceeds the memory passes, and reports no usage', async () => {
    const text = `{"choices":[${'{"index":0},'.repeat(20_000)}{}],"usage":${JSON.stringify(usage)}}`;
    const chunks = text.match(/.{1,10000}/g) ?? [];
    for (const [most, counts] of [
      [1_000_000, COUNTS],
      [300_000, undefined],
    ] as const) {
      const seen = await metered({ ...json, memory: bodyMemory(most, most).newReservation() }, chunks);
      expect([seen.all, seen.reported?.usage]).toEqual([text, counts]);
    }
  });

  test('that is compressed is decoded in turns, and completely', async () => {
    const text = `{"choices":[${' '.repeat(2_000_000)}],"usage":${JSON.stringify(usage)}}`;
    let decoded = 0;
    let turns = 0;
    const turn = {
      take: (bytes: number) => {
        decoded += bytes;
        return decoded <= turns * TURN_BYTES;
      },
      next: (resume: () => void) => {
        expect(decoded).toBeLessThanOrEqual((turns + 2) * TURN_BYTES);
        turns++;
        setImmediate(resume);
      },
    };
    const seen = await metered({ ...json, contentEncoding: 'gzip', turn }, [gzipSync(text)]);
    expect(seen.reported?.usage).toEqual(COUNTS);
    expect(turns).toBeGreaterThan(2_000_000 / TURN_BYTES - 2);
  });

  test('of known length keeps back its last byte, and of unknown length its last chunk', async () => {
    const [one, two] = [Buffer.from(WHOLE.slice(0, 20)), Buffer.from(WHOLE.slice(20))];
    const passed = async (statedBytes?: number) => {
      const meter = createMeter({ ...json, keepsLast: true, ...(statedBytes && { statedBytes }) });
      const pieces = [meter.pass(one), meter.pass(two)].map((piece) => piece?.length);
      return [...pieces, (await meter.end()).rest?.length];
    };
    expect(await passed(WHOLE.length)).toEqual([one.length, two.length - 1, 1]);
    expect(await passed()).toEqual([one.length - 1, two.length, 1]);
    // A head that states less than comes is a lie, and changes nothing of what the holder gets.
    expect(await passed(1)).toEqual([one.length - 1, two.length, 1]);
  });

  test('longer than the gateway keeps passes, and reports no usage', async () => {
    const meter = createMeter(json);
    const chunk = Buffer.alloc(8 * 1024 * 1024, ' ');
    for (let i = 0; i < 9; i++) meter.pass(chunk);
    meter.pass(Buffer.from(WHOLE));
    expect((await meter.end()).reported).toBeUndefined();
  });

  test.each<[string, string, boolean]>([
    ["the provider's own", '{"error":{"message":"overloaded"}}', true],
    ["an intermediary's page", '<html>502</html>', false],
    ['nothing', '', false],
  ])('of a failure is known for what it is: %s', async (_what, text, isOwn) => {
    expect((await metered({ ...json, status: 502 }, [text])).ownError).toBe(isOwn);
  });

  test('an error longer than 256 KiB passes without being read', async () => {
    const error = (bytes: number) => JSON.stringify({ error: { code: 'c', message: 'x'.repeat(bytes) } });
    const short = await metered({ ...json, status: 400 }, [error(200_000)]);
    expect(short).toMatchObject({ ownError: true, error: { codes: ['c'] } });
    const text = error(300_000);
    const long = await metered({ ...json, status: 400 }, [text.slice(0, 1_000), text.slice(1_000)]);
    expect(long).toMatchObject({ ownError: false, error: undefined, all: text });
  });
});

test('a dialect that throws loses the usage of its answer, and the answer passes', async () => {
  const fail = () => {
    throw new Error('of a dialect');
  };
  const bad: Spend = {
    ...CHAT,
    readAnswer: fail,
    isOwnError: fail,
    isUsageEvent: fail,
    readStream: () => ({ event: fail, end: fail }),
  };
  expect(await metered({ ...events, spend: bad }, [STREAM])).toMatchObject({
    all: STREAM,
    reported: undefined,
  });
  expect(await metered({ ...json, spend: bad }, ['{}'])).toMatchObject({ all: '{}', reported: undefined });
  expect(await metered({ ...json, spend: bad, status: 500 }, ['{}'])).toMatchObject({ ownError: false });
});

describe('usage with a duplicate name in one JSON object', () => {
  const CONVERSE = spendOf('bedrock', '/model/anthropic.claude-sonnet-4-5/invoke-with-response-stream');
  const low = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const repeated = `{"choices":[{"message":{"content":"Hi"}}],"usage":${JSON.stringify(usage)},"usage":${JSON.stringify(low)}}`;

  test.each<[string, MeterOptions, string]>([
    ['an answer', json, repeated],
    ['a long answer', json, repeated.replace('Hi', 'Hi'.repeat(10_000))],
    ['a stream', events, SAID + data(repeated) + data('[DONE]')],
    [
      'a stream, in a count',
      events,
      STREAM.replace('"prompt_tokens":20', '"prompt_tokens":20,"prompt_tokens":1'),
    ],
  ])('is in doubt: %s', async (_what, options, text) => {
    const seen = await metered({ ...options, dropsUsageEvent: false }, [text]);
    expect(seen.all).toBe(text);
    expect(seen.reported).toEqual({ model: undefined, usage: undefined, doubt: { why: 'twice' } });
  });

  test('is not read inside an event of Bedrock', () => {
    const event = (value: string) => JSON.stringify({ bytes: Buffer.from(value).toString('base64') });
    const read = (start: string) => {
      const reader = CONVERSE.readStream?.();
      for (const each of [start, DELTA, '{"type":"message_stop"}']) reader?.event(event(each), 'chunk');
      return reader?.end()?.usage;
    };
    const DELTA = '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}';
    const start = (counts: string) => `{"type":"message_start","message":{"model":"m","usage":{${counts}}}}`;
    expect(read(start('"input_tokens":50,"output_tokens":1'))).toMatchObject({ input_tokens: 50 });
    expect(read(start('"input_tokens":50,"input_tokens":5,"output_tokens":1'))).toBeUndefined();
  });
});
