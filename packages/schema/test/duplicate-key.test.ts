import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scanJson } from '../src/index.ts';

const duplicateKey = (text: string) => {
  const scan = scanJson(Buffer.from(text), undefined);
  return 'excess' in scan ? 'too much' : scan.ambiguous;
};

test.each([
  ['{"a":1,"a":1}', 'a'],
  ['{"a":1,"b":2,"a":{}}', 'a'],
  ['{"a":{"b":1,"b":2}}', 'a.b'],
  ['[{"a":1},{"a":1,"a":2}]', '[1].a'],
  ['{"x":[1,[2,{"c":"},{","c":1}]],"a":1}', 'x[1][1].c'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"":1,"":2}', ''],
  ['{ "a" : "x,\\"a\\":1" , "a" : 2 }', 'a'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
])('a duplicate key in one object is found and named: %s', (text, key) => {
  expect(duplicateKey(text)).toBe(key);
});

test.each([
  '{}',
  '[]',
  '"a"',
  '{"a":{"a":{"a":1}}}',
  '[{"a":1},{"a":1}]',
  '{"a":"a","b":"a"}',
  '{"a":["a","a"]}',
  '{"a":"\\\\","b":"\\\\\\"a\\":"}',
  '{"a":1,"A":2}',
])('the same key in different objects is not a duplicate: %s', (text) => {
  expect(duplicateKey(text)).toBeUndefined();
});

test('JSON.stringify never writes a duplicate key', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => duplicateKey(JSON.stringify(value)) === undefined));
});

test('a duplicate key added to any object is found', () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 });
  fc.assert(
    fc.property(object, fc.jsonValue(), fc.nat(), (value, again, pick) => {
      const keys = Object.keys(value);
      const key = keys[pick % keys.length] ?? '';
      const text = `${JSON.stringify(value).slice(0, -1)},${JSON.stringify(key)}:${JSON.stringify(again)}}`;
      return duplicateKey(text) === key && duplicateKey(`[0,${text}]`) === `[1].${key}`;
    }),
  );
});
