import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameSplitter, readFrame } from '../src/http/sse.ts';
import { createMeter, type MeterOptions } from '../src/llm/meter.ts';
import { eventFrame, frame } from './frame.ts';
import { COUNTS, roomy, spendOf } from './metered.ts';

const MODEL = '/model/eu.anthropic.claude-haiku-4-5-20251001-v1:0';
const TEXT = eventFrame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hé' }, p: 'ab' });
const STOP = eventFrame('messageStop', { stopReason: 'end_turn' });
const METADATA = eventFrame('metadata', { usage: { inputTokens: 20, outputTokens: 30, totalTokens: 50 } });
const STREAM = Buffer.concat([TEXT, STOP, METADATA]);

const options: MeterOptions = {
  spend: spendOf('bedrock', `${MODEL}/converse-stream`),
  status: 200,
  contentType: 'application/vnd.amazon.eventstream',
  contentEncoding: '',
  dropsUsageEvent: false,
  keepsLast: true,
  memory: roomy(),
};

/** The bytes that a meter lets pass at once and in all, and the usage that it reads. */
async function metered(chunks: readonly Buffer[], changed: Partial<MeterOptions> = {}) {
  const meter = createMeter({ ...options, ...changed });
  const early = Buffer.concat(chunks.flatMap((chunk) => meter.pass(chunk) ?? []));
  const { rest = Buffer.alloc(0), reported } = await meter.end();
  return { early, all: Buffer.concat([early, rest]), usage: reported?.usage };
}

describe('an event stream of AWS', () => {
  test.each([true, false])(
    'passes complete and reports its usage wherever it is cut (keeps its last: %s)',
    async (keepsLast) => {
      for (let cut = 0; cut <= STREAM.length; cut++) {
        const seen = await metered([STREAM.subarray(0, cut), STREAM.subarray(cut)], { keepsLast });
        expect(seen.usage).toEqual(COUNTS);
        expect(seen.all.equals(STREAM)).toBe(true);
        expect(seen.early.length).toBe(keepsLast ? STREAM.length - METADATA.length : STREAM.length);
      }
    },
  );

  test('is read byte by byte, and when compressed', async () => {
    const bytes = Array.from(STREAM, (byte) => Buffer.of(byte));
    expect((await metered(bytes)).usage).toEqual(COUNTS);
    expect((await metered([gzipSync(STREAM)], { contentEncoding: 'gzip' })).usage).toEqual(COUNTS);
  });

  test('that ends early or reports an exception passes, and reports no usage', async () => {
    for (let size = 0; size < STREAM.length; size++) {
      const seen = await metered([STREAM.subarray(0, size)]);
      expect([seen.usage, seen.all.length]).toEqual([undefined, size]);
    }
    const failed = frame(
      { ':exception-type': 'modelStreamErrorException', ':message-type': 'exception' },
      '{}',
    );
    expect((await metered([TEXT, failed, STOP, METADATA])).usage).toBeUndefined();
  });

  test('that breaks its format passes byte for byte, and reports no usage', async () => {
    for (const length of [0, 15, 0xff_ff_ff_ff]) {
      const broken = Buffer.from(STREAM);
      broken.writeUInt32BE(length, TEXT.length);
      const seen = await metered([broken]);
      expect(seen.usage).toBeUndefined();
      expect(seen.all.equals(broken)).toBe(true);
    }
  });

  test('returns every byte in order, wherever the stream is cut', () => {
    const bytes = fc.oneof(fc.uint8Array(), fc.constant(STREAM), fc.constant(Buffer.from([0, 0, 0, 16])));
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 6 }), (chunks) => {
        const splitter = new FrameSplitter();
        const frames = chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)));
        expect(Buffer.concat([...frames, splitter.rest()]).equals(Buffer.concat(chunks))).toBe(true);
      }),
    );
  });
});

describe('one message', () => {
  test('has the name of its event, exception or error, and its payload', () => {
    expect(readFrame(STOP)).toEqual({ name: 'messageStop', data: '{"stopReason":"end_turn"}' });
    expect(readFrame(frame({ ':exception-type': 'x' }, '1'))).toEqual({ name: 'x', data: '1' });
    expect(readFrame(frame({ ':error-code': 'y' }, ''))).toEqual({ name: 'y', data: '' });
  });

  test('whose headers contradict its length is not read, and no input makes the reader throw', () => {
    for (const claimed of [1, STOP.length, 0xff_ff_ff_ff]) {
      const broken = Buffer.from(STOP);
      broken.writeUInt32BE(claimed, 4);
      expect(readFrame(broken)).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 80 }), fc.nat(64), (bytes, headers) => {
        const odd = Buffer.from(bytes);
        odd.writeUInt32BE(headers, 4);
        readFrame(odd);
      }),
    );
  });

  test('may have headers of every type', () => {
    const name = (type: number, value: Buffer) => Buffer.concat([Buffer.from([1, 0x61, type]), value]);
    const values = [0, 0, 1, 2, 4, 8].map((size, type) => name(type, Buffer.alloc(size)));
    const others = [name(6, Buffer.from([0, 1, 9])), name(8, Buffer.alloc(8)), name(9, Buffer.alloc(16))];
    const head = Buffer.concat([...values, ...others]);
    const plain = frame({ ':event-type': 'z' }, '{}');
    const own = plain.subarray(12, -6);
    const bytes = Buffer.concat([plain.subarray(0, 12), head, own, plain.subarray(-6)]);
    bytes.writeUInt32BE(head.length + own.length, 4);
    expect(readFrame(bytes)).toEqual({ name: 'z', data: '{}' });
  });
});
