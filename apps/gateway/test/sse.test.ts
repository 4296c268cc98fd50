import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventSplitter, readEvent, type StreamForm, splitterOf, streamForm } from '../src/http/sse.ts';

const formOf = (contentType: string): StreamForm => {
  const form = streamForm(contentType);
  if (!form) throw new Error(contentType);
  return form;
};
const EVENTS = formOf('text/event-stream');
const LINES = formOf('application/stream+json');

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

const LINE_TEXTS = ['{"a":1}', '{"b": "\\r\\n"}', '{"ünïcödé":"🎈"}', '[1]'];

/** JSON texts one a line, a blank line between. */
const lines = (end: string) =>
  Buffer.from([...LINE_TEXTS, '', '[2]'].map((line) => `${line}${end}`).join(''));
const texts = [...LINE_TEXTS, '[2]'].map((data) => ({ data, name: undefined }));

const streams = ends.flatMap((end) => [
  { what: 'events', end, form: EVENTS, bytes: stream(end), expected: events },
  { what: 'lines', end, form: LINES, bytes: lines(end), expected: texts },
]);

function read(form: StreamForm, chunks: readonly Buffer[]) {
  const splitter = new EventSplitter(form);
  const whole = chunks.flatMap((chunk) => splitter.push(chunk));
  const rest = splitter.rest();
  const found = whole.map(form.read).filter((event) => event !== undefined);
  return { found, bytes: Buffer.concat([...whole, rest]) };
}

test.each(streams)('$what are read the same wherever the stream is cut in two (line end $end)', (each) => {
  const { form, bytes, expected } = each;
  for (let cut = 0; cut <= bytes.length; cut++) {
    const result = read(form, [bytes.subarray(0, cut), bytes.subarray(cut)]);
    expect(result.found).toEqual(expected);
    expect(result.bytes).toEqual(bytes);
  }
});

test.each(streams)(
  '$what that arrive byte by byte are read like a whole stream (line end $end)',
  ({ form, bytes, expected }) => {
    expect(
      read(
        form,
        [...bytes].map((byte) => Buffer.of(byte)),
      ).found,
    ).toEqual(expected);
  },
);

test.each(streams)(
  '$what are passed with their whole line end, in the chunk that brings it (line end $end)',
  (each) => {
    const { form, bytes } = each;
    const whole = new EventSplitter(form);
    const ends = new Set([0]);
    for (const [i, byte] of bytes.entries()) if (whole.push(Buffer.of(byte)).length > 0) ends.add(i + 1);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const splitter = new EventSplitter(form);
      const passed = Buffer.concat(splitter.push(bytes.subarray(0, cut))).length;
      // An event is whole at its line end, or at the CR of it.
      const isCutInCrlf = bytes[cut - 1] === 13 && bytes[cut] === 10 && ends.has(cut + 1);
      expect(passed, `cut at ${cut}`).toBe(
        isCutInCrlf ? cut : Math.max(...[...ends].filter((at) => at <= cut)),
      );
      // The LF leaves as soon as it is there, before anything else comes.
      if (isCutInCrlf) expect(splitter.push(Buffer.from('\n'))).toEqual([Buffer.from('\n')]);
    }
  },
);

test('a line without an end is not an event', () => {
  expect(read(LINES, [Buffer.from('{"a":1}\n{"b":2}')]).found).toEqual([
    { data: '{"a":1}', name: undefined },
  ]);
});

test.each([
  ['blank lines', EVENTS, '\n'],
  ['blank lines of CRLF', EVENTS, '\r\n'],
  ['blank lines of CR', LINES, '\r'],
  ['comments', EVENTS, ':\n\n'],
  ['fields without data', EVENTS, 'id:\n\n'],
])('a chunk of 64 KiB of %s passes in few parts', (_kind, form, text) => {
  const chunk = Buffer.from(text.repeat(65_536 / text.length));
  const passed = new EventSplitter(form).push(chunk);
  expect(passed.length).toBeLessThan(100);
  expect(Buffer.concat(passed)).toEqual(chunk);
});

test.each([EVENTS, LINES])('for any bytes and cuts, the parts together are the stream (%o)', (form) => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a\n\r:]{0,12}$/)), (parts) => {
      const chunks = parts.map((part) => Buffer.from(part));
      expect(read(form, chunks).bytes).toEqual(Buffer.concat(chunks));
    }),
  );
});

test.each<[string, StreamForm | undefined]>([
  ['text/event-stream; charset=utf-8', EVENTS],
  ['TEXT/EVENT-STREAM', EVENTS],
  ['application/stream+json', LINES],
  ['Application/Stream+JSON; charset=utf-8', LINES],
  ['application/x-ndjson', LINES],
  ['application/ndjson', LINES],
  ['application/jsonl', LINES],
  ['application/json', undefined],
  ['application/problem+json', undefined],
  ['text/plain; of=application/stream+json', undefined],
  ['', undefined],
])('what %j is a stream of', (contentType, form) => {
  expect(streamForm(contentType)).toBe(form);
});

test.each(['line', 'length'] as const)(
  'an event in chunks of one byte is counted with the overhead of its chunks (%s)',
  (end) => {
    const splitter = splitterOf({ end, read: readEvent });
    // As AWS's binary length it is 2 GB.
    for (let i = 0; i < 1_000; i++) splitter.push(Buffer.from('x'));
    expect(splitter.waiting).toBeGreaterThan(100_000);
  },
);
