import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { answeredId } from '../src/mcp/ids/answered-id.ts';
import { readAnswers } from '../src/mcp/request/messages.ts';

describe('the id of an answer that is too long to be parsed', () => {
  const answer = fc.record(
    {
      result: fc.object({ key: fc.constantFrom('id', 'method', 'x', '"') }),
      id: fc.oneof(fc.string({ unit: 'binary', maxLength: 9 }), fc.integer(), fc.maxSafeInteger()),
      jsonrpc: fc.constant('2.0'),
    },
    { requiredKeys: ['result', 'id'] },
  );
  test('is the id that JSON.parse finds', () => {
    fc.assert(
      fc.property(answer, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space);
        expect(answeredId(text)).toBe(readAnswers(text)[0]?.id);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['{"id":9007199254740993,"result":{}}', '9007199254740993'],
    ['{"result":{"id":1,"method":"m"},"\\u0069d" : "\\u0061"}', '"a"'],
    ['{"result":"\\"id\\":3,","id":4}', '4'],
  ])('of %s is %s', (text, id) => expect(answeredId(text)).toBe(id));

  test.each([
    '[{"id":1,"result":{}}]',
    '{"id":1,"method":"m"}',
    '{"id":1,"result":{},"\\u006dethod":"m"}',
    '{"id":1,"result":{},"id":2}',
    '{"id":null,"result":{}}',
    '{"id":{"id":1},"result":{}}',
    '{"result":{"id":1}}',
    '{"id":1,"result":{}',
    '"id":1',
    '',
  ])('is unknown for %s', (text) => expect(answeredId(text)).toBeUndefined());

  test('is searched in linear time, and never throws', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => void answeredId(`{"id":${a}${b}`)),
      { numRuns: 2_000 },
    );
    for (const text of [
      '{"id":'.repeat(2_000_000),
      `{"${'\\'.repeat(10_000_000)}`,
      '{"a":1,'.repeat(2_000_000),
    ]) {
      expect(answeredId(text)).toBeUndefined();
    }
  });
});
