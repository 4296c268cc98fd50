import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readMessages, wantsAnswer } from '../src/mcp/request/messages.ts';
import { IdScanner } from '../src/mcp/request/scan-ids.ts';

/** The ids that a scan finds when the text arrives in pieces of this size. */
function scan(text: string, size = Number.POSITIVE_INFINITY) {
  const scanner = new IdScanner();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) scanner.push(bytes.subarray(at, at + size));
  const { messages } = scanner;
  return messages && { isBatch: messages.isBatch, ids: messages.all.filter(wantsAnswer).map(({ id }) => id) };
}

function read(text: string) {
  const all = readMessages(Buffer.from(text));
  if ('refusal' in all) return undefined;
  return { isBatch: all.messages.isBatch, ids: all.messages.all.filter(wantsAnswer).map(({ id }) => id) };
}

const id = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const message = fc.oneof(
  fc.record({ jsonrpc: fc.constant('2.0'), id, method: fc.string(), params: fc.object() }),
  fc.record({ jsonrpc: fc.constant('2.0'), method: fc.string(), params: fc.object() }),
  fc.record({ id, result: fc.object({ key: fc.constantFrom('id', 'method', 'x') }) }),
  fc.record({ params: fc.object({ key: fc.constantFrom('id', 'method', 'x') }), method: fc.string(), id }),
);
const body = fc.oneof(message, fc.array(message, { minLength: 1, maxLength: 5 }));

describe('the ids of a body that is streamed', () => {
  test('equal the ids found by reading it whole, wherever its chunks end', () => {
    fc.assert(
      fc.property(
        body,
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 0, max: 2 }),
        (value, size, indent) => {
          const text = JSON.stringify(value, null, indent);
          const whole = read(text);
          // Reading it whole also refuses what two readers may understand differently.
          if (whole) expect(scan(text, size)).toEqual(whole);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('are searched in linear time, and the search never throws', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => void scan(`{"id":${a}${b}`)),
      { numRuns: 2_000 },
    );
    const deep = '{"id":'.repeat(2_000_000);
    expect(scan(deep)).toBeUndefined();
    expect(scan(`{"id":"${'x'.repeat(20_000_000)}","method":"m"}`)).toEqual({ isBatch: false, ids: [] });
  });

  test.each([
    ['{"method":"m","id":"\\u0061"}', ['"a"']],
    ['{"\\u0069d":7,"method":"m"}', ['7']],
    ['{"id":1,"method":"m","params":{"id":2,"method":"n"}}', ['1']],
    ['[{"id":1,"method":"m"},{"id":"b","method":"m"}]', ['1', '"b"']],
    ['{"id":\t9007199254740993\n,"method":"m"}', ['9007199254740993']],
    ['{"id":1.50,"method":"m"}', ['1.50']],
    ['{"id":-2e400,"method":"m"}', ['-2e400']],
    ['{"id":null,"method":"m"}', []],
    ['{"id":{"id":5},"method":"m"}', []],
    ['{"id":-1.5e3 , "method" : "m"}', ['-1500']],
  ])('of %s are %j', (text, ids) => expect(scan(text, 1)?.ids).toEqual(ids));
});
