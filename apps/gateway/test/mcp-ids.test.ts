import { randomBytes } from 'node:crypto';
import { type EncryptionKeys, generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import { describe, expect, test } from 'vitest';
import type { VerifiedGrant } from '../src/grant/verify.ts';
import { idAnsweredBy } from '../src/mcp/ids/answered-id.ts';
import { sealEventId, unsealEvent } from '../src/mcp/ids/event-ids.ts';
import { handedIds } from '../src/mcp/ids/handed-ids.ts';
import { findIds, handedOut } from '../src/mcp/ids/places.ts';
import { sealScalar, unsealId } from '../src/mcp/ids/seal.ts';
import { unsealBody } from '../src/mcp/ids/unseal-body.ts';

const keys: EncryptionKeys = readEncryptionKeys(generateEncryptionKey());
const grantOf = (id: string): VerifiedGrant => ({
  ...{ id, sessionId: 's', partition: 0, expiresAtMs: 0, isBound: false },
});
const [ours, others] = [grantOf('a'), grantOf('b')];

describe('an event', () => {
  test.each([
    ['id: 7\ndata: x\n\n', '7'],
    ['data: x\nid:7\r\n\r\n', '7'],
    ['data: id: 6\ndata:id: 5\rid: ü 7 \r\r', 'ü 7 '],
    ['\ufeffid: 7\ndata: x\n\n', '7'],
    ['id: 6\nid: 7\ndata: x\n\n', '7'],
    ['\n\nid: 7', '7'],
  ])('keeps every byte except its id: %j', (event, id) => {
    const text = sealEventId(keys, ours, Buffer.from(event), false).toString();
    const sealed = text.match(/id: (\w+\.[\w-]{30,})/)?.[1] ?? '';
    expect(unsealId(keys, ours, 'event', sealed)).toBe(id);
    expect(unsealId(keys, others, 'event', sealed)).toBeUndefined();
    expect(unsealId(keys, ours, 'task', sealed)).toBeUndefined();
    expect(text.replace(`id: ${sealed}`, `id: ${id}`)).toBe(event.replace(`id:${id}`, `id: ${id}`));
  });

  test.each([
    'data: id: 7\n\n',
    'id\ndata: x\n\n',
    'id:\ndata: x\n\n',
    'id: \ndata: x\n\n',
    'ids: 7\n\n',
    '',
  ])('without an id is unchanged: %j', (event) => {
    const bytes = Buffer.from(event);
    expect(sealEventId(keys, ours, bytes, false)).toBe(bytes);
  });

  test.each([
    ['whose id is too long', `id: ${'x'.repeat(1_025)}\ndata: x\n\n`, false],
    ['that is one of too many', 'id: 7\ndata: x\n\n', true],
  ])('%s has a comment in place of its id', (_, event, isLeftOut) => {
    expect(sealEventId(keys, ours, Buffer.from(event), isLeftOut).toString()).toBe(': id\ndata: x\n\n');
  });

  test.each([
    ['none', [], []],
    ['some', ['7', '"a"', '9007199254740993'], ['7', '"a"', '9007199254740993']],
    ['more than a header holds', [`"${'x'.repeat(1_025)}"`], []],
  ])('of a stream with open requests names them: %s', (_, open, named) => {
    const text = sealEventId(keys, ours, Buffer.from('id: e\ndata: x\n\n'), false, open).toString();
    const [, sealed = ''] = /^id: (.*)\n/.exec(text) ?? [];
    expect(unsealEvent(keys, ours, sealed)).toEqual({ id: 'e', open: named });
    expect(unsealEvent(keys, others, sealed)).toBeUndefined();
    expect(sealed.length).toBeLessThan(3_000);
  });

  test('of millions of lines is processed in linear time', () => {
    // A search for the end of each line, or of the event, would take minutes.
    const lines = 'id:\rdata: id: 1\r'.repeat(1_000_000);
    expect(sealEventId(keys, ours, Buffer.from(`${lines}\r`), false).length).toBe(lines.length + 1);
  });
});

test.each([
  ['event: message\n', '1'],
  ['event:\n', '1'],
  ['', '1'],
  ['event: other\n', undefined],
])('an event answers a request if clients read its message: %j', (name, id) => {
  expect(idAnsweredBy(Buffer.from(`${name}data: {"id":1,"result":{}}\n\n`))).toBe(id);
});

describe('an id in a message', () => {
  const task = (json: string) => `{"jsonrpc":"2.0","id":1,"result":{"n":1e400,"task":{"taskId":${json}}}}`;
  const sealedIn = (text: string) =>
    findIds(text, JSON.parse(text), handedOut).map(({ kind, json }) => sealScalar(keys, ours, kind, json));

  test('is sealed to the same value in every JSON spelling', () => {
    expect(sealedIn(task('"a/b"'))).toEqual(sealedIn(task('"\\u0061\\/b"')));
    expect(sealedIn(task('1'))).not.toEqual(sealedIn(task('"1"')));
  });

  test('is not sealed if it is longer than its bound', () => {
    expect(sealedIn(task(JSON.stringify('x'.repeat(2_046))))[0]).toBeDefined();
    expect(sealedIn(task(JSON.stringify('x'.repeat(2_047))))).toEqual([undefined]);
  });

  test('is restored byte for byte, even after multi-byte characters', () => {
    for (const id of ['"t"', '7', '9007199254740993', '1e3', `"${'ü'.repeat(9)}"`]) {
      const sealed = sealScalar(keys, ours, 'task', id);
      const body = (json: unknown, at: number) =>
        `[{"note":"ü🌍", "id":${at}, "method":"tasks/get","params": {"taskId" : ${json} , "x":1e400}}]`;
      const bytes = Buffer.from(body(sealed, 1));
      const ids = handedIds(bytes.toString(), JSON.parse(bytes.toString()));
      expect(unsealBody(keys, ours, bytes, ids)).toEqual({ bytes: Buffer.from(body(id, 1)), lists: [] });
      expect(unsealBody(keys, others, bytes, ids)).toMatchObject({
        refusal: { code: 'invalid_request', param: 'params.taskId' },
      });
    }
  });

  test('is found in any message, and the rest of the message is unchanged', () => {
    for (let i = 0; i < 300; i++) {
      const value = { jsonrpc: '2.0', method: `tasks/${i}`, params: oddly(4) };
      const text = JSON.stringify([value, value]);
      const ids = handedIds(text, JSON.parse(text));
      const bytes = Buffer.from(text);
      for (const { json, start, end } of ids) expect(bytes.toString('utf8', start, end)).toBe(json);
    }
  });
});

const NAMES = ['taskId', '_meta', 'io.modelcontextprotocol/related-task', 'requestState', 'cursor', 'ü"\\'];

/** A value of any kind, with the names that matter at odd places. */
function oddly(depth: number): unknown {
  const [a = 0, b = 0] = randomBytes(2);
  if (depth === 0 || a < 40) return [null, 1, 'x', true, '{"taskId":"x"}'][b % 5];
  if (a < 90) return Array.from({ length: b % 4 }, () => oddly(depth - 1));
  return Object.fromEntries(
    Array.from({ length: b % 5 }, (_, i) => [NAMES[(a + i) % NAMES.length] ?? '', oddly(depth - 1)]),
  );
}
