import { isJsonObject, type JsonObject, scanJson, textPlaces } from '@presign/schema';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compactSize, splice, withoutLists } from '../src/json/splice.ts';

function came(text: string) {
  const raw = Buffer.from(text);
  const json: unknown = JSON.parse(text);
  const scan = scanJson(raw, undefined);
  if (!isJsonObject(json) || 'excess' in scan) throw new Error(text);
  return { raw, json, scan };
}

const spliced = (...of: Parameters<typeof splice>) => Buffer.concat(splice(...of));

const NAMES = ['a', 'b', 'c', 'd', '__proto__', '', 'é"'];
const edits = fc.array(
  fc.record({ name: fc.constantFrom(...NAMES), value: fc.option(fc.jsonValue(), { nil: undefined }) }),
  { maxLength: 4 },
);
const bodies = fc
  .dictionary(fc.constantFrom(...NAMES), fc.jsonValue())
  .map((body) => JSON.stringify(body, null, 1));

test('a spliced body equals the output of JSON.stringify, and its estimated size is no smaller', () => {
  fc.assert(
    fc.property(bodies, edits, (text, changes) => {
      const body = came(text);
      const sent = Object.fromEntries([
        ...Object.entries(body.json).filter(([name]) => !changes.some((each) => each.name === name)),
        ...changes.map(({ name, value }): [string, unknown] => [name, value]),
      ]) as JsonObject;
      const plain = JSON.stringify(sent);
      expect(JSON.parse(String(spliced(body, sent)))).toEqual(JSON.parse(plain));
      expect(compactSize(body, sent)).toBeGreaterThanOrEqual(Buffer.byteLength(plain));
      const light = withoutLists(body, sent);
      expect(spliced(light.came, { ...light.sent, max_tokens: 7 })).toEqual(
        spliced(body, { ...sent, max_tokens: 7 }),
      );
    }),
    { numRuns: 1_000 },
  );
});

test.each<[string, (json: JsonObject) => JsonObject, string]>([
  ['{"a": 1.50, "b" : [ 2 ]}', (json) => json, '{"a": 1.50, "b" : [ 2 ]}'],
  ['{"a": 1.50, "b" : [ 2 ]}', (json) => ({ ...json, c: 3 }), '{"a": 1.50, "b" : [ 2 ],"c":3}'],
  ['{"a":1.50,"b":2,"c":3.0}', (json) => ({ ...json, b: 7 }), '{"a":1.50,"b":7,"c":3.0}'],
  ['{"a":1.50,"b":2}', ({ b }) => ({ b }), '{"b":2}'],
  ['{ }', () => ({ a: 1 }), '{"a":1}'],
  ['{"a":1}', () => ({}), '{}'],
])('members of %s that did not change keep their bytes', (text, change, sent) => {
  const body = came(text);
  expect(String(spliced(body, change(body.json)))).toBe(sent);
  const light = withoutLists(body, change(body.json));
  expect(String(spliced(light.came, light.sent))).toBe(sent);
});

test('a body that waits for its admission keeps neither its lists nor the places of its long texts', () => {
  const raw = Buffer.from(`{"list":[{"text":"${'x'.repeat(600)}"}],"n":1}`);
  const scan = scanJson(raw, undefined, undefined, {
    texts: textPlaces(['list[].text'], { onlyAscii: false }),
  });
  if ('excess' in scan) throw new Error('it has no bounds');
  expect(scan.texts).toHaveLength(1);
  const json = { list: [{ text: 600n }], n: 1 };
  const { came: kept } = withoutLists({ raw, json, scan }, json);
  expect(kept).toEqual({
    raw,
    json: { list: [], n: 1 },
    scan: { members: scan.members, compactBytes: scan.compactBytes },
  });
});
