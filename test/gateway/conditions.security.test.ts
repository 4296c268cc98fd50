import { brotliCompressSync, gzipSync } from 'node:zlib';
import { readPublicKeys, readSigningKey, signToken, verifyToken } from '@presign/crypto';
import { keys } from '@presign/limits';
import { llmClaims } from '@presign/schema';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
beforeAll(async () => {
  providers = await startProviders();
  stack = await startStack({ providers: providers.file, gateways: 2 });
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.seen.length = 0;
});

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const issue = async (conditions: object, more: object = {}) =>
  (await stack.issue({ ...CHAT, ...more, ...conditions })).url;

type Body = string | Buffer | AsyncIterable<Buffer>;
const post = async (url: string, body: Body, headers: Record<string, string> = {}) => {
  const sent = { 'content-type': 'application/json', ...headers };
  const answer = await request(url, { method: 'POST', body: body as string, headers: sent });
  const text = await answer.body.text();
  return { status: answer.statusCode, code: answer.headers['x-presign-code'] ?? 'sent', text };
};
/** In chunks, so that no header states the size. */
async function* chunked(body: Buffer, size = 7): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size);
}
const lastBody = () => String(providers.seen.at(-1)?.body);

describe('max_body_bytes', () => {
  const ofSize = (bytes: number) => Buffer.from(JSON.stringify({ m: 'x'.repeat(bytes - '{"m":""}'.length) }));

  test.each([
    ['that is not read', {}, { path: '/v1/x' }],
    ['that is metered', {}, {}],
    ['that a config changes', {}, { config: { model: 'small' } }],
    ['whose fields are checked', { allowed_fields: ['m'] }, {}],
  ])('a body %s passes at exactly the maximum, and not with one byte more', async (_what, more, ask) => {
    const url = await issue({ max_body_bytes: 1_000, ...more }, ask);
    for (const [bytes, code] of [
      [1_000, 'sent'],
      [1_001, 'body_too_large'],
    ] as const) {
      const body = ofSize(bytes);
      expect(body).toHaveLength(bytes);
      for (const sent of [body, chunked(body), chunked(body, 1)]) {
        const answer = await post(url, sent);
        expect(answer.code).toBe(code);
        if (code !== 'sent')
          expect(answer).toMatchObject({ status: 413, text: expect.stringContaining('1000') });
      }
    }
    expect(providers.seen).toHaveLength(3);
  });

  test('a form passes whole, and not with one byte more', async () => {
    const url = await issue({ max_body_bytes: 100 }, { path: '/v1/audio/transcriptions' });
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    const form = Buffer.alloc(100, '-');
    expect((await post(url, form, headers)).code).toBe('sent');
    expect((await post(url, chunked(form), headers)).code).toBe('sent');
    expect(providers.seen.at(-1)?.headers['content-type']).toBe(headers['content-type']);
    expect((await post(url, Buffer.alloc(101, '-'), headers)).code).toBe('body_too_large');
    expect((await post(url, chunked(Buffer.alloc(101, '-')), headers)).code).toBe('body_too_large');
  });

  test('the decoded size of a compressed body counts, and its compressed size too', async () => {
    for (const more of [{}, { config: { model: 'small' } }]) {
      const url = await issue({ max_body_bytes: 1_000 }, more);
      const codings = [
        ['gzip', gzipSync],
        ['br', brotliCompressSync],
      ] as const;
      for (const [coding, code] of codings) {
        const headers = { 'content-encoding': coding };
        expect((await post(url, code(ofSize(1_000)), headers)).code).toBe('sent');
        // The provider reads the bytes that were counted.
        expect(providers.seen.at(-1)?.headers['content-encoding']).toBeUndefined();
        expect(JSON.parse(lastBody())).toMatchObject({ m: expect.stringMatching(/^x+$/) });
        expect((await post(url, code(ofSize(1_001)), headers)).code).toBe('body_too_large');
        expect((await post(url, code(Buffer.alloc(5_000_000)), headers)).code).toBe('body_too_large');
      }
      // Empty members decode to nothing, but their bytes count.
      const empty = Buffer.concat(Array.from({ length: 60 }, () => gzipSync('')));
      expect((await post(url, empty, { 'content-encoding': 'gzip' })).code).toBe('body_too_large');
      for (const coding of ['gzip, gzip', 'compress', 'GZIP, br'])
        expect((await post(url, 'x', { 'content-encoding': coding })).code).toBe('unsupported_media_type');
    }
  });

  test('the gateway reads no more of a body that is too large', async () => {
    const url = await issue({ max_body_bytes: 10 }, { max_uses: 1 });
    async function* endless() {
      for (;;) yield Buffer.alloc(16_384, ' ');
    }
    const refused = await post(url, endless()).catch((error: Error) => ({ code: error.name }));
    expect(['body_too_large', 'SocketError', 'Error']).toContain(refused.code);
    expect((await post(url, '{}')).code).toBe('sent');
  });

  test('a call without a body passes, whatever its method', async () => {
    const url = await issue({ max_body_bytes: 1 }, { path: '/v1/models', method: 'GET' });
    expect((await request(url)).statusCode).toBe(200);
  });
});

describe('allowed_fields', () => {
  const allowed = ['messages', 'model', 'ünïcode', '__proto__', 'constructor'];
  const outcome = async (body: string | object, headers?: Record<string, string>, url?: string) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return post(url ?? (await issue({ allowed_fields: allowed })), text, headers);
  };

  test('listed fields pass, in any order and with any value', async () => {
    for (const body of [
      {},
      { model: 'm', messages: [{ role: 'user', tools: [], temperature: 1 }] },
      '{"\\u006dodel": "m"}',
      '{"__proto__": {"x": 1}, "constructor": null}',
      { ünïcode: 1 },
    ])
      expect((await outcome(body)).code, JSON.stringify(body)).toBe('sent');
  });

  test.each([
    ['another field', '{"model":"m","tools":[]}', 'tools'],
    ['another field in escapes', '{"to\\u006fls":[]}', 'tools'],
    ['another case', '{"Model":"m"}', 'Model'],
    ['a space', '{"model ":"m"}', 'model '],
    ['an invisible character', '{"model\\u200b":"m"}', 'model\u200b'],
    ['another Unicode form', '{"u\\u0308ni\\u0308code":1}', 'u\u0308ni\u0308code'],
    ['a name of the prototype', '{"toString":1}', 'toString'],
    ['no name', '{"":1}', ''],
    ['a field that is null', '{"tools":null}', 'tools'],
  ])('%s is refused by name', async (_what, body, field) => {
    const { status, code, text } = await outcome(body);
    expect({ status, code }).toEqual({ status: 403, code: 'field_not_allowed' });
    expect(JSON.parse(text).error).toMatchObject({ param: field, allowed });
    expect(providers.seen).toHaveLength(0);
  });

  test.each([
    ['a field twice', '{"model":"m","model":"n"}', 'invalid_request'],
    ['a list', '[{"tools":[]}]', 'unsupported_media_type'],
    ['a text', '"tools"', 'unsupported_media_type'],
    ['no JSON', 'tools=1', 'invalid_json'],
    ['JSON after JSON', '{"model":"m"}{"tools":[]}', 'invalid_json'],
  ])('%s is refused', async (_what, body, code) => {
    expect((await outcome(body)).code).toBe(code);
    expect(providers.seen).toHaveLength(0);
  });

  test('a form is refused, and a body is read as JSON whatever its headers say', async () => {
    const form = 'multipart/form-data; boundary=b';
    expect((await outcome('--b--', { 'content-type': form })).code).toBe('unsupported_media_type');
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=utf-7',
    ]) {
      expect((await outcome({ tools: [] }, { 'content-type': type })).code).toBe('field_not_allowed');
      expect((await outcome({ model: 'm' }, { 'content-type': type })).code).toBe('sent');
      expect(providers.seen.pop()?.headers['content-type']).toBe('application/json');
    }
  });

  test('a compressed body is decoded first, and is sent decoded', async () => {
    const url = await issue({ allowed_fields: allowed });
    const send = (body: object) => post(url, gzipSync(JSON.stringify(body)), { 'content-encoding': 'gzip' });
    expect((await send({ tools: [] })).code).toBe('field_not_allowed');
    expect((await send({ model: 'm' })).code).toBe('sent');
    expect(providers.seen[0]?.headers['content-encoding']).toBeUndefined();
    expect(lastBody()).toBe('{"model":"m"}');
  });

  test('a config may add fields that the holder may not', async () => {
    const url = await issue({ allowed_fields: ['messages'] }, { config: { model: 'm', max_tokens: 5 } });
    expect((await outcome({ messages: [] }, {}, url)).code).toBe('sent');
    expect(JSON.parse(lastBody())).toEqual({ messages: [], model: 'm', max_completion_tokens: 5 });
    expect((await outcome({ messages: [], model: 'n' }, {}, url)).code).toBe('field_not_allowed');
  });

  test('an empty list allows no field', async () => {
    const url = await issue({ allowed_fields: [] });
    expect((await outcome({}, {}, url)).code).toBe('sent');
    expect((await outcome({ a: 1 }, {}, url)).code).toBe('field_not_allowed');
  });

  test('applies to a large body, which a worker reads, and a refusal costs no use', async () => {
    const url = await issue({ allowed_fields: allowed }, { max_uses: 1 });
    const messages = [{ role: 'user', content: 'x'.repeat(3_000_000) }];
    for (let i = 0; i < 3; i++)
      expect((await outcome({ messages, tools: [] }, {}, url)).code).toBe('field_not_allowed');
    expect((await outcome({ messages }, {}, url)).code).toBe('sent');
  });
});

describe('a URL with conditions', () => {
  const claimsOf = (url: string) => {
    const token = /\/t\/([^/]+)/.exec(url)?.[1] ?? '';
    const verified = verifyToken(token, readPublicKeys(stack.keys.publicKeys));
    return { token, claims: llmClaims.parse(verified.ok && verified.claims) };
  };

  test('has them in its token, and a gateway that does not know one of them refuses the token', async () => {
    const url = await issue({ allowed_fields: ['a'], max_body_bytes: 10, tokens_per_minute: 1_000 });
    const { token, claims } = claimsOf(url);
    expect(claims.crt).toEqual(['tokens_per_minute', 'max_body_bytes', 'allowed_fields']);
    expect(claimsOf(await issue({})).claims).not.toHaveProperty('crt');
    const signing = readSigningKey(stack.keys.signing);
    const withClaims = (changed: object) =>
      url.replace(token, signToken({ ...claims, ...changed } as typeof claims, signing));
    expect((await post(withClaims({}), '{"a":1}')).code).not.toBe('token_invalid');
    for (const changed of [{ crt: ['of_a_later_version'] }, { crt: [] }, { crt: 'bind' }, { xyz: 1 }])
      expect((await post(withClaims(changed), '{"a":1}')).code).toBe('token_invalid');
  });

  test('has them enforced by every gateway, from a seed, from Redis and from Postgres', async () => {
    const at = (url: string, gateway: number) =>
      url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
    for (const isSeeded of [true, false]) {
      const url = await issue({ allowed_fields: ['a'] });
      const { jti, prt } = claimsOf(url).claims;
      const seed = keys.seed(prt, jti);
      await eventually(async () => (await stack.redis.exists(seed)) === 1);
      if (!isSeeded) await stack.redis.del(seed);
      for (const gateway of [0, 1]) {
        expect((await post(at(url, gateway), '{"b":1}')).code).toBe('field_not_allowed');
        expect((await post(at(url, gateway), '{"a":1}')).code).toBe('sent');
      }
    }
  });

  test('is issued once under an Idempotency-Key, and its session shows them', async () => {
    const asked = { ...CHAT, allowed_fields: ['a'], max_body_bytes: 10 };
    const once = async () => {
      const answer = await stack.presign(asked, { 'idempotency-key': 'conditions' });
      return (await answer.json()) as { url: string; session_id: string };
    };
    const answers = await Promise.all([once(), once()]);
    expect(answers[0]).toEqual(answers[1]);
    const session = await fetch(`${stack.issuerUrl}/v1/sessions/${answers[0]?.session_id}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    expect(await session.json()).toMatchObject({
      grants: [{ conditions: { allowed_fields: ['a'], max_body_bytes: 10 } }],
    });
  });
});
