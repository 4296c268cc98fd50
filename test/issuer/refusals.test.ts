import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { grants, sessions } from '@presign/schema/tables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { least as ask, refused, send } from './ask.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

describe('the body', () => {
  const json = JSON.stringify(ask);

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON ;charset=UTF-8'])(
    'is accepted as %s',
    async (type) =>
      expect((await send(stack, { body: json, headers: { 'content-type': type } })).status).toBe(200),
  );

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'application/json5',
    'text/json',
    '',
  ])('of content type "%s" is refused with 415', async (type) => {
    const sent = await send(stack, { body: Buffer.from(json), headers: { 'content-type': type } });
    expect(refused(sent, 'unsupported_media_type', 'Content-Type')).toMatch(/expected application\/json/);
  });

  test('that is compressed is refused with 415, and the error says so', async () => {
    const sent = await send(stack, { body: gzipSync(json), headers: { 'content-encoding': 'gzip' } });
    expect(refused(sent, 'unsupported_media_type', 'Content-Encoding')).toMatch(/uncompressed/);
    const plain = await send(stack, { body: json, headers: { 'content-encoding': 'identity' } });
    expect(plain.status).toBe(200);
  });

  test.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['half an object', json.slice(0, -1)],
    ['a comment', `${json} // x`],
    ['two objects', json + json],
    ['a trailing comma', `${json.slice(0, -1)},}`],
    ['single quotes', json.replaceAll('"', "'")],
    ['NaN', '{"max_uses": NaN}'],
    ['a raw line end in a string', '{"provider": "open\nai"}'],
  ])('that is %s is refused as invalid_json, without quoting it', async (_what, body) => {
    const message = refused(await send(stack, { body: Buffer.from(body) }), 'invalid_json');
    expect(message).toMatch(/^The body is (empty|not valid JSON)/);
  });

  test('that is not UTF-8 is refused, never guessed', async () => {
    const latin = Buffer.from(json.replace('openai', 'op\u00ebnai'), 'latin1');
    expect(refused(await send(stack, { body: latin }), 'invalid_json')).toBe('The body is not valid UTF-8.');
    // A surrogate by itself (RFC 3629 §3), and UTF-16.
    const surrogate = Buffer.from(json.replace('openai', '\u00ed\u00a0\u0080'), 'latin1');
    for (const body of [surrogate, Buffer.from(json, 'utf16le')])
      refused(await send(stack, { body }), 'invalid_json');
  });

  test('may begin with a byte order mark', async () => {
    expect((await send(stack, { body: `\ufeff${json}` })).status).toBe(200);
  });

  test.each(['[]', 'null', '1', '"x"', `[${json}]`])(
    'that is %s is refused: an object is expected',
    async (body) => {
      expect(refused(await send(stack, { body }), 'invalid_request')).toBe(
        'The body: expected a JSON object.',
      );
    },
  );

  test.each([
    ['cost_limit', '"cost_limit":1,"cost_limit":1000000'],
    ['cost_limit', '"cost_limit":1,"\\u0063ost_limit":1000000'],
    ['max_uses', '"max_uses":1,"max_uses":1'],
    ['metadata.a', '"metadata":{"a":1,"a":2}'],
    ['config.stop[1].x', '"config":{"stop":[0,{"x":1,"x":1}]}'],
  ])('with %s twice is refused, because it is ambiguous', async (param, twice) => {
    const sent = await send(stack, { body: `${json.slice(0, -1)},${twice}}` });
    expect(refused(sent, 'invalid_request', param)).toBe(`${param}: this key appears twice in one object.`);
  });

  test('of 1,048,576 bytes passes and one more byte is refused, with or without a stated length', async () => {
    const room = 1_048_576 - json.length;
    expect((await send(stack, { body: json + ' '.repeat(room) })).status).toBe(200);
    const long = json + ' '.repeat(room + 1);
    const sent = await send(stack, { body: long });
    refused(sent, 'body_too_large');
    expect(sent.headers.get('connection')).toBe('close');
    const streamed = await sendChunked(long);
    expect(streamed.status).toBe(413);
    expect(JSON.parse(streamed.text)).toMatchObject({ error: { code: 'body_too_large' } });
    expect((await sendChunked(json)).status).toBe(200);
  });

  test.each(['a', '{', '[', '"', '\\'])('of a million "%s" is refused without harm', async (piece) => {
    refused(await send(stack, { body: piece.repeat(1_000_000) }), 'invalid_json');
  });

  test('of a million nested members is refused and names the outermost', async () => {
    refused(await send(stack, { body: '{"a":'.repeat(200_000) }), 'invalid_request', 'a');
  });

  test.each([
    ['metadata', '{"k":'],
    ['config', '{"k":'],
    ['path', '['],
    ['provider', '['],
  ])('with 100,000 levels in %s is refused without harm', async (field, opening) => {
    const { [field as 'path']: _left, ...rest } = ask;
    const closing = opening === '[' ? ']' : '}';
    const deep = `${opening.repeat(100_000)}1${closing.repeat(100_000)}`;
    const body = `${JSON.stringify(rest).slice(0, -1)},"${field}":${deep}}`;
    refused(await send(stack, { body }), 'invalid_request', field);
  });

  test('leaves nothing behind if it is refused', async () => {
    const count = () => Promise.all([stack.db.$count(grants), stack.db.$count(sessions)]);
    const before = await count();
    refused(await send(stack, { body: { ...ask, cost_limt: 1 } }), 'invalid_request', 'cost_limt');
    refused(
      await send(stack, { body: { ...ask, virtual_key: 'vk_none' } }),
      'invalid_request',
      'virtual_key',
    );
    expect(await count()).toEqual(before);
  });
});

describe('other methods and routes', () => {
  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s on the route is 405 in the error format',
    async (method) => {
      const sent = await send(stack, { method, ...(method === 'GET' ? {} : { body: ask }) });
      refused(sent, 'method_not_supported');
      expect(sent.headers.get('access-control-allow-origin')).toBeNull();
    },
  );

  test('HEAD is 405 without a body', async () => {
    const sent = await send(stack, { method: 'HEAD' });
    expect([sent.status, sent.text]).toEqual([405, '']);
  });

  test.each(['/v1', '/v1/presign/', '/V1/presign', '/v1/presign/x', '/v3/presign', '/%2e%2e/etc'])(
    '%s is 404 in the error format',
    async (path) => void refused(await send(stack, { path, body: ask }), 'not_found'),
  );
});

/** A body whose length is not said beforehand. */
function sendChunked(body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${stack.issuerUrl}/v1/presign`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    });
    outgoing.on('response', async (answer) => {
      let text = '';
      for await (const chunk of answer) text += String(chunk);
      resolve({ status: answer.statusCode ?? 0, text });
    });
    outgoing.on('error', reject);
    for (let at = 0; at < body.length; at += 65_536) outgoing.write(body.slice(at, at + 65_536));
    outgoing.end();
  });
}
