import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createMeter, type MeterOptions } from '../src/llm/meter.ts';
import { COUNTS, metered, roomy, spendOf } from './metered.ts';

describe('a stream of JSON lines', () => {
  const options: MeterOptions = {
    spend: spendOf('cohere', '/v1/chat'),
    status: 200,
    contentType: 'application/stream+json',
    contentEncoding: '',
    dropsUsageEvent: false,
    keepsLast: true,
    memory: roomy(),
  };
  const line = (event: object) => `${JSON.stringify(event)}\n`;
  const START = line({ is_finished: false, event_type: 'stream-start', generation_id: 'g' });
  const TEXT = line({ is_finished: false, event_type: 'text-generation', text: 'Hé' });
  const meta = { billed_units: { input_tokens: 20, output_tokens: 30 } };
  const END = line({ is_finished: true, event_type: 'stream-end', response: { text: 'Hé', meta } });
  const LINES = START + TEXT + END;

  test.each([true, false])(
    'passes complete and reports its usage wherever it is cut (keeps its last: %s)',
    async (keepsLast) => {
      const bytes = Buffer.from(LINES);
      for (let cut = 0; cut <= bytes.length; cut++) {
        const seen = await metered({ ...options, keepsLast }, [bytes.subarray(0, cut), bytes.subarray(cut)]);
        expect(seen.reported?.usage).toEqual(COUNTS);
        expect(seen.all).toBe(LINES);
        expect(seen.early).toBe(keepsLast ? START + TEXT : LINES);
      }
    },
  );

  test('is read as it passes, even if no chunk contains a whole line', async () => {
    const seen = await metered(
      options,
      Array.from(Buffer.from(LINES), (byte) => Buffer.of(byte)),
    );
    expect(seen).toMatchObject({ reported: { usage: COUNTS }, early: START + TEXT, all: LINES });
  });

  test('that ends early passes, and reports no usage', async () => {
    const bytes = Buffer.from(LINES);
    // Without its last line end the stream is whole.
    for (let size = 0; size < bytes.length - 1; size++) {
      for (const contentEncoding of ['', 'gzip']) {
        const part = bytes.subarray(0, size);
        const sent = contentEncoding === '' ? part : gzipSync(part);
        const seen = await metered({ ...options, contentEncoding }, [sent]);
        expect(seen.reported).toBeUndefined();
        expect(seen.all).toBe(String(sent));
      }
    }
  });

  test.each<[string, string]>([
    ['that reports an error', START + line({ message: 'internal server error' }) + END],
    ['whose end reports no units', START + TEXT + line({ is_finished: true, event_type: 'stream-end' })],
    ['in one line', LINES.replaceAll('\n', ' ')],
    ['of odd values', 'null\n[]\n"stream-end"\n7\n'],
  ])('%s reports nothing, and passes', async (_what, text) => {
    const seen = await metered(options, [text]);
    expect(seen.reported).toBeUndefined();
    expect(seen.all).toBe(text);
  });

  test.each(['gzip', 'identity', ''])('in the coding %j reports its usage', async (contentEncoding) => {
    const sent = contentEncoding === 'gzip' ? gzipSync(LINES) : Buffer.from(LINES);
    const seen = await metered({ ...options, contentEncoding }, [sent.subarray(0, 20), sent.subarray(20)]);
    expect(seen.reported?.usage).toEqual(COUNTS);
    expect(seen.all).toBe(String(sent));
  });

  test('is also read in the event format of v2', async () => {
    const delta = { finish_reason: 'COMPLETE', usage: meta };
    const text = line({ type: 'message-start', id: 'm' }) + line({ type: 'message-end', delta });
    expect((await metered(options, [text])).reported?.usage).toEqual(COUNTS);
  });

  test('with an endless line that is not JSON passes, is not kept in memory, and reports no usage', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    for (const keepsLast of [true, false]) {
      const meter = createMeter({ ...options, keepsLast });
      let passed = 0;
      for (let i = 0; i < 40; i++) passed += meter.pass(chunk)?.length ?? 0;
      expect(passed).toBe(40 * chunk.length - (keepsLast ? 1 : 0));
      passed += meter.pass(Buffer.from(LINES))?.length ?? 0;
      const { rest, reported } = await meter.end();
      expect(passed + (rest?.length ?? 0)).toBe(40 * chunk.length + Buffer.byteLength(LINES));
      expect(reported).toBeUndefined();
    }
  });

  test('is an error if its status says so, whatever its content type is', async () => {
    const text = line({ message: 'internal server error' });
    expect(await metered({ ...options, status: 500 }, [text])).toMatchObject({ ownError: true, all: text });
  });
});
