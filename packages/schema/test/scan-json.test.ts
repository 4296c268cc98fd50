import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scanJson } from '../src/index.ts';

const scan = (text: string) => {
  const found = scanJson(Buffer.from(text), undefined);
  if ('excess' in found) throw new Error('it has no bounds');
  return found;
};

/** JSON as some client may write it: with white space, and any character escaped. */
const written = fc
  .tuple(fc.jsonValue({ stringUnit: 'binary' }), fc.infiniteStream(fc.nat(20)))
  .map(([value, choices]) => write(value, () => Number(choices.next().value)));

function write(value: unknown, choose: () => number): string {
  const space = () => ' \t\n\r'.slice(0, choose() % 5 === 0 ? 1 + (choose() % 4) : 0);
  if (typeof value === 'string') return quoted(value, choose);
  if (Array.isArray(value))
    return `[${space()}${value.map((each) => write(each, choose)).join(`${space()},${space()}`)}${space()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, each]) => `${quoted(name, choose)}${space()}:${space()}${write(each, choose)}`,
  );
  return `{${space()}${members.join(`${space()},${space()}`)}${space()}}`;
}

const quoted = (text: string, choose: () => number): string =>
  `"${Array.from({ length: text.length }, (_, i) => {
    const unit = text.slice(i, i + 1);
    const isHalf = /[\ud800-\udfff]/.test(unit);
    if (isHalf || choose() % 4 === 0) return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    return unit === '/' && choose() % 2 === 0 ? '\\/' : JSON.stringify(unit).slice(1, -1);
  }).join('')}"`;

test('the compact size is never smaller than the output of JSON.stringify, however a text is written', () => {
  fc.assert(
    fc.property(written, (text) => {
      const { compactBytes } = scan(text);
      const least = Buffer.byteLength(JSON.stringify(JSON.parse(text)));
      expect(compactBytes ?? least).toBeGreaterThanOrEqual(least);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['{ "a" : [ 1 , 2 ] }\n', '{"a":[1,2]}'],
  ['{"a":"\\u4e16\\u754c"}', '{"a":"世界"}'],
  ['{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'],
  ['{"a":"\\u0041\\u0022\\u00e9"}', '{"a":"A\\"é"}'],
  ['{"a":"\\ud83d","b":"\\ude00\\ud83d"}', '{"a":"\\ud83d","b":"\\ude00\\ud83d"}'],
  ['{"a":"\\u0007 \\n"}', '{"a":"\\u0007 \\n"}'],
])('white space and escapes of %s do not count', (text, compact) => {
  expect(JSON.stringify(JSON.parse(text))).toBe(compact);
  expect(scan(text).compactBytes).toBe(Buffer.byteLength(compact));
});

test.each(['{"a":1e20}', '[1E5]', '{"a":{"b":[0.5e-7]}}'])(
  'a number with an exponent may become longer: %s',
  (text) => expect(scan(text).compactBytes).toBeUndefined(),
);

test('an e in a word or a string is not an exponent', () => {
  expect(scan('{"a":true,"b":false,"c":"1e5","1e5":null}').compactBytes).toBeDefined();
});

test('a string ends at the first unescaped quote, wherever its escapes are', () => {
  for (let length = 0; length < 70; length++)
    for (const escaped of ['', '\\', '\\\\', '"', '\\"', '"\\', '\n"'])
      for (const rest of ['', 'y', '"'.repeat(40)]) {
        const value = { a: 'x'.repeat(length) + escaped + rest, b: 1 };
        const text = JSON.stringify(value);
        const ends = scan(text).members.map(({ valueAt, end }) => text.slice(valueAt, end));
        expect(ends).toEqual([JSON.stringify(value.a), '1']);
      }
});

test('the members of the top object are found at their offsets', () => {
  fc.assert(
    fc.property(written, (text) => {
      const value: unknown = JSON.parse(text);
      const bytes = Buffer.from(text);
      const found = scan(text).members.map(({ name, at, valueAt, end }) => [
        name,
        JSON.parse(String(bytes.subarray(valueAt, end))) as unknown,
        JSON.parse(`{${bytes.subarray(at, end)}}`) as unknown,
      ]);
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      const entries = isObject ? Object.entries(value) : [];
      const wanted = entries.map(([name, each]) => [
        name,
        each,
        JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(each)}}`),
      ]);
      expect(new Map(found.map(([name, ...rest]) => [name, rest]))).toEqual(
        new Map(wanted.map(([name, ...rest]) => [name, rest])),
      );
    }),
    { numRuns: 500 },
  );
});

test('names of a large object, and escaped names, are compared after decoding', () => {
  const many = Array.from({ length: 40 }, (_, i) => `"k${i}":0`).join(',');
  expect(scan(`{"x":{${many},"k\\u0033":1}}`).ambiguous).toBe('x.k3');
  expect(scan(`{"x":{"\\u006b3":1,${many}}}`).ambiguous).toBe('x.k3');
  expect(scan(`{"x":{${many},"k40":1},"k3":0}`).ambiguous).toBeUndefined();
});
