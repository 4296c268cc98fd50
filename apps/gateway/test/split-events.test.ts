import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventSplitter, readEvent } from '../src/llm/split-events.ts';

const ends = ['\n', '\r\n', '\r'];
const events = [
  { data: '{"a":1}', name: undefined },
  { data: 'first\nsecond', name: 'message_delta' },
  { data: 'ünïcödé 🎈', name: undefined },
  { data: '[DONE]', name: undefined },
];

/** The four events, a comment and a keep-alive between them. */
const stream = (end: string) =>
  Buffer.from(
    [
      `: comment${end}${end}`,
      `data: {"a":1}${end}${end}`,
      `event: message_delta${end}data:first${end}data: second${end}id: 7${end}${end}`,
      `${end}`,
      `data: ünïcödé 🎈${end}${end}`,
      `data: [DONE]${end}${end}`,
    ].join(''),
  );

function read(chunks: readonly Buffer[]) {
  const splitter = new EventSplitter();
  const whole = chunks.flatMap((chunk) => splitter.push(chunk));
  const rest = splitter.rest();
  const found = whole.map(readEvent).filter((event) => event !== undefined);
  return { found, bytes: Buffer.concat([...whole, rest]) };
}

test.each(ends)('events are read the same wherever the stream is cut in two (line end %j)', (end) => {
  const bytes = stream(end);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const result = read([bytes.subarray(0, cut), bytes.subarray(cut)]);
    expect(result.found).toEqual(events);
    expect(result.bytes).toEqual(bytes);
  }
});

test.each(ends)('events are read the same byte by byte (line end %j)', (end) => {
  const bytes = stream(end);
  expect(read([...bytes].map((byte) => Buffer.of(byte))).found).toEqual(events);
});

test('whatever the bytes and the cuts, the parts put together are the stream', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a\n\r:]{0,12}$/)), (parts) => {
      const chunks = parts.map((part) => Buffer.from(part));
      expect(read(chunks).bytes).toEqual(Buffer.concat(chunks));
    }),
  );
});
