import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  indexLeftOut,
  lengthLeftOut,
  readJson,
  readWithout,
  scanJson,
  type TextPlaces,
  textPlaces,
} from '../src/index.ts';

const PATHS = ['top', 'list[].content', 'list[].content[].text'];
const places = {
  all: textPlaces(PATHS, { onlyAscii: false }),
  ascii: textPlaces(PATHS, { onlyAscii: true }),
};

function scan(bytes: Uint8Array, texts: TextPlaces | undefined) {
  const found = scanJson(bytes, undefined, undefined, { texts });
  if ('excess' in found) throw new Error('it has no bounds');
  return found;
}

const pieces = fc.constantFrom(
  ...[
    'x'.repeat(500),
    'x'.repeat(64),
    'ab',
    'y',
    ' ',
    '→',
    'é',
    '😀',
    '\u2028',
    '\u007f',
    '\\n',
    '\\"',
    '\\\\',
    '\\/',
  ],
  ...['\\u00e9', '\\ud83d\\ude00', '\\ud83d', '\\u0022', '\\u000a'],
);
const flaws = fc.constantFrom(
  '\n',
  '\u0000',
  '\u001f',
  '\\x',
  '\\u12g4',
  '\\u12',
  '\\',
  '"',
  '\\U0041',
  '\t',
);
/** The inside of a string, as some client may write it, and now and then not as JSON has it. */
const inside = fc
  .array(fc.oneof({ weight: 30, arbitrary: pieces }, { weight: 1, arbitrary: flaws }), { maxLength: 14 })
  .map((all) => all.join(''));
const quoted = fc
  .oneof(
    inside,
    inside.map((text) => text + 'x'.repeat(512)),
  )
  .map((text) => `"${text}"`);
const part = fc
  .array(fc.tuple(fc.constantFrom('"text"', '"t\\u0065xt"', '"type"', '"text"'), quoted), { maxLength: 3 })
  .map((members) => `{${members.map(([name, value]) => `${name}: ${value}`).join(',')}}`);
const content = fc.oneof(
  quoted,
  fc.array(fc.oneof(part, quoted), { maxLength: 3 }).map((all) => `[${all.join(' ,')}]`),
);
const body = fc
  .tuple(
    fc.array(
      fc.oneof(
        content.map((each) => `{"content":${each},"a":1}`),
        part,
        quoted,
      ),
      { maxLength: 4 },
    ),
    quoted,
    fc.constantFrom('', '', '', '"list":[],', ',', '[{"content":1}'),
  )
  .map(([list, top, more]) => Buffer.from(`{${more}"list" : [${list.join(',')}], "top":${top}, "n":1}`));

test('a scan that looks for long texts finds all else as one that does not', () => {
  fc.assert(
    fc.property(body, (bytes) => {
      const { texts: none, ...plain } = scan(bytes, undefined);
      const { texts, ...rest } = scan(bytes, places.all);
      expect([rest, none]).toEqual([plain, []]);
      for (const { start, end } of texts) expect(end - start).toBeGreaterThanOrEqual(512);
    }),
    { numRuns: 1_000 },
  );
});

test('without its long texts a JSON text is valid if it is with them, and all else in it is the same', () => {
  let taken = 0;
  fc.assert(
    fc.property(body, fc.constantFrom(places.all, places.ascii), (bytes, wanted) => {
      const scanned = scan(bytes, wanted);
      const { texts } = scanned;
      fc.pre(scanned.ambiguous === undefined);
      const whole = readJson(bytes)?.value;
      const light = readWithout(bytes, scanned)?.value;
      expect(light === undefined).toBe(whole === undefined);
      if (whole === undefined) return;
      taken += texts.length;
      for (const [index, { path, start, end, length }] of texts.entries()) {
        const text = valueAt(whole, path);
        expect(JSON.stringify(text)).toBe(JSON.stringify(JSON.parse(`"${bytes.subarray(start, end)}"`)));
        const leftOut = valueAt(light, path) as bigint;
        expect([indexLeftOut(leftOut), lengthLeftOut(leftOut)]).toEqual([index, length]);
        if (wanted.onlyAscii) expect(length).toBe(String(text).length);
        expect(/^[\0-\x7f]*$/.test(String(text)) || !wanted.onlyAscii).toBe(true);
      }
      const left = new Map(texts.map(({ path }) => [path.join(), valueAt(whole, path)]));
      expect(filled(light, left, [])).toEqual(whole);
    }),
    { numRuns: 2_000 },
  );
  expect(taken).toBeGreaterThan(100);
});

test.each([
  ['invalid UTF-8', Buffer.from([0xff])],
  ['half of a surrogate pair', Buffer.from([0xed, 0xa0, 0x80])],
  ['an overlong form', Buffer.from([0xc0, 0xa2])],
  ['a control character', Buffer.from('\n')],
  ['an escape that JSON has not', Buffer.from('\\x')],
  ['an escape without four digits', Buffer.from('\\u12')],
])('a long text with %s is no JSON', (_, flaw) => {
  for (const at of [0, 1, 2, 3, 700]) {
    const text = Buffer.from('x'.repeat(700));
    const parts = ['{"top":"', text.subarray(0, at), flaw, text.subarray(at), '"}'];
    const bytes = Buffer.concat(parts.map((each) => Buffer.from(each)));
    expect(readWithout(bytes, scan(bytes, places.all))).toBeUndefined();
  }
});

test('what was left out is no text to other readers, and cannot be written', () => {
  const bytes = Buffer.from(`{"top":"${'x'.repeat(600)}","n":1}`);
  const value = readWithout(bytes, scan(bytes, places.all))?.value;
  expect(value).toEqual({ top: 600n, n: 1 });
  expect(() => JSON.stringify(value)).toThrow(TypeError);
});

const valueAt = (value: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce((at, step) => (at as Record<string | number, unknown>)[step], value);

/** A value with its texts again. */
function filled(
  value: unknown,
  texts: ReadonlyMap<string, unknown>,
  path: readonly (string | number)[],
): unknown {
  if (typeof value === 'bigint') return texts.get(path.join());
  if (Array.isArray(value)) return value.map((each, i) => filled(each, texts, [...path, i]));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, filled(each, texts, [...path, name])]),
  );
}
