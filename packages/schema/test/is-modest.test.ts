import { expect, test } from 'vitest';
import { isModest, scanJson } from '../src/index.ts';

const modest = (text: string) => isModest(Buffer.from(text), { depth: 5, parts: 10 });

test.each<[string, string, boolean]>([
  ['as deep as may be', '[[[[[1]]]]]', true],
  ['deeper', '[[[[[[1]]]]]]', false],
  ['as many as may be', '[1,2,3,4,5,6,7,8,9,10]', true],
  ['more', '[1,2,3,4,5,6,7,8,9,10,11]', false],
  ['of many objects', `[${'{}'.repeat(10)}]`, false],
  ['of many strings', '""'.repeat(11), false],
  ['whose text is full of brackets', JSON.stringify({ a: '[{"\\'.repeat(100) }), true],
  ['whose string never ends', `"${'\\'.repeat(100)}`, true],
  ['of a long name', `{"${'k'.repeat(16_000)}":1}`, true],
  ['of a longer one', `{"${'k'.repeat(16_001)}":1}`, false],
  ['of a longer one, far from its colon', `[{"a":1,"${'k'.repeat(16_001)}" \t\r\n:1}]`, false],
  ['of long values', `{"a":"${'k'.repeat(20_000)}","b":["${'k'.repeat(20_000)}" , ":"]}`, true],
  ['that closes more than it opens', ']]]]', true],
])('a text %s is modest: %s', (_what, text, isTaken) => {
  expect(modest(text)).toBe(isTaken);
});

test.each<[string, string, boolean]>([
  ['as many members as may be', '{"a":1,"b":{"x":1,"y":2},"c":3}', true],
  ['more', '{"a":1,"b":2,"c":3,"d":4}', false],
  ['more, deep inside a list', '[0,[1,{"a":1,"b":2,"c":3,"d":4}]]', false],
  ['as many, twice', '[{"a":1,"b":2,"c":3},{"a":1,"b":2,"c":3}]', true],
  ['fewer members than it has texts with commas', '{"a":",,,,","b":1}', true],
])('a text with an object of %s is modest: %s', (_what, text, isTaken) => {
  expect(isModest(Buffer.from(text), { depth: 5, parts: 100, members: 3 })).toBe(isTaken);
});

test('a list may have more elements than an object has members', () => {
  expect(isModest(Buffer.from('[1,2,3,4,5,{"a":[1,2,3,4,5]}]'), { depth: 5, parts: 100, members: 3 })).toBe(
    true,
  );
});

test.each([
  ['{"a":1,"b":[[[[[[]]]]]]}', 'b'],
  ['{"a":{"b":[[[[[]]]]]}}', 'a'],
  ['{"a":"b","c" : [1,2,3,4,5,6,7,8,9,10]}', 'c'],
  ['[[[[[[1]]]]]]', undefined],
])('of %s the excessive member is %s', (text, member) => {
  expect(scanJson(Buffer.from(text), { depth: 5, parts: 10 })).toEqual({ excess: { member } });
});
