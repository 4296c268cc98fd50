import { describe, expect, test } from 'vitest';
import { invalidRequest, METHODS, type PresignRequest, presignRequest } from '../src/index.ts';

const least = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-1' };

/** The request as read, or `field: what was expected`. */
function read(fields: object, base: object = least): PresignRequest | string {
  const result = presignRequest.safeParse({ ...base, ...fields });
  if (result.success) return result.data;
  const refusal = invalidRequest(result.error);
  expect(refusal.code).toBe('invalid_request');
  expect(refusal.message).toMatch(new RegExp(`^${quoted(refusal.param ?? 'The body')}: .+\\.$`));
  return refusal.message ?? '';
}

const quoted = (text: string) => text.replace(/[.[\]]/g, '\\$&');
const accepted = (fields: object) => expect(read(fields)).toMatchObject(fields);
const MAX = Number.MAX_SAFE_INTEGER;

describe('defaults', () => {
  test('a request with only the required fields has the documented defaults', () => {
    expect(read({})).toEqual({
      ...least,
      path: ['/v1/chat/completions'],
      method: 'POST',
      expires_in: 3600,
      max_uses: -1,
    });
  });

  test.each([
    'virtual_key',
    'method',
    'expires_in',
    'max_uses',
    'cost_limit',
    'tokens_per_minute',
    'max_body_bytes',
    'allowed_fields',
    'config',
    'external_session',
    'external_user',
    'session_id',
    'metadata',
  ])('null for %s means omitted', (field) => {
    expect(read({ [field]: null })).toEqual(read({}));
  });

  test('null for client_api_key means omitted, so a virtual key is required', () => {
    expect(read({ client_api_key: null, virtual_key: 'vk_1' })).toMatchObject({ virtual_key: 'vk_1' });
    expect(read({ client_api_key: null })).toMatch(/^client_api_key: .*virtual_key/);
  });
});

describe('numbers', () => {
  test.each([
    ['expires_in', [-1, 1, 3600, 31_536_000], [0, -2, 31_536_001, 1.5, '3600', true, [60], {}]],
    ['max_uses', [-1, 1, MAX], [0, -2, 1.5, '1', MAX + 1, 1e300, false]],
    ['cost_limit', [0, 1, MAX], [-1, 0.5, '0', MAX + 1, true]],
    ['max_body_bytes', [1, 1_073_741_824], [0, -1, 1.5, '1', 1_073_741_825, true]],
    ['tokens_per_minute', [1, 1_000_000_000], [0, -1, 1.5, '1', 1_000_000_001, [1]]],
  ])('%s accepts its bounds and nothing beyond, and the error states the bounds', (field, good, bad) => {
    for (const value of good) accepted({ [field]: value });
    for (const value of bad)
      expect(read({ [field]: value })).toMatch(new RegExp(`^${field}: expected .*whole`));
  });

  test('cost_limit 0 stays 0, and is never read as no limit', () => {
    expect(read({ cost_limit: 0 })).toHaveProperty('cost_limit', 0);
    expect(read({})).not.toHaveProperty('cost_limit', expect.anything());
  });
});

describe('allowed_fields', () => {
  test('accepts up to 100 names in any Unicode text, and an empty list', () => {
    for (const names of [[], ['a'], ['__proto__', 'ü', ' '], Array.from({ length: 100 }, (_, i) => `f${i}`)])
      accepted({ allowed_fields: names });
  });

  test.each([
    ['messages', /^allowed_fields: expected an array/],
    [[1], /^allowed_fields\[0\]: expected a string/],
    [['a', ''], /^allowed_fields\[1\]: expected the name/],
    [['a\0'], /^allowed_fields\[0\]: expected Unicode/],
    [['\ud800'], /^allowed_fields\[0\]: expected Unicode/],
    [['a'.repeat(256)], /^allowed_fields\[0\]: expected at most 255/],
    [Array.from({ length: 101 }, (_, i) => `f${i}`), /^allowed_fields: expected at most 100/],
  ])('%j is refused with its position', (names, message) => {
    expect(read({ allowed_fields: names })).toMatch(message);
  });
});

describe('external_session and external_user', () => {
  const astral = '😀';
  const combining = 'e\u0301';
  test.each(['external_session', 'external_user'])(
    '%s accepts 255 characters of any Unicode plane, and refuses 256',
    (field) => {
      for (const text of ['', 'a'.repeat(255), astral.repeat(255), `${combining.repeat(127)}x`]) {
        accepted({ [field]: text });
      }
      for (const text of ['a'.repeat(256), astral.repeat(256), combining.repeat(128)]) {
        expect(read({ [field]: text })).toBe(`${field}: expected at most 255 characters.`);
      }
    },
  );

  test.each(['external_session', 'external_user'])('%s refuses text that Postgres cannot store', (field) => {
    for (const text of ['a\0b', '\ud800', 'x\udc00']) {
      expect(read({ [field]: text })).toBe(`${field}: expected Unicode text without NUL or lone surrogates.`);
    }
    expect(read({ [field]: 7 })).toBe(`${field}: expected a string.`);
  });
});

describe('metadata and config', () => {
  /** A JSON object of so many bytes. */
  const ofSize = (bytes: number, letter = 'a') => {
    const width = Buffer.byteLength(letter);
    const room = bytes - Buffer.byteLength('{"k":""}');
    return { k: letter.repeat(Math.floor(room / width)) + 'x'.repeat(room % width) };
  };

  test.each([
    ['metadata', 65_536, 'a'],
    ['metadata', 65_536, 'é'],
    ['metadata', 65_536, '😀'],
    ['config', 16_384, 'a'],
    ['config', 16_384, 'é'],
  ])('%s accepts %i bytes of UTF-8 JSON written with "%s", and not one more', (field, bytes, letter) => {
    accepted({ [field]: ofSize(bytes, letter) });
    expect(read({ [field]: ofSize(bytes + 1, letter) })).toBe(
      `${field}: expected at most ${bytes} bytes of JSON.`,
    );
  });

  test.each(['metadata', 'config'])(
    '%s accepts 64 levels and refuses 65, however wide or deep the rest is',
    (field) => {
      const nested = (levels: number) => {
        let value: unknown = 1;
        for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { k: value };
        return { k: value };
      };
      accepted({ [field]: nested(63) });
      for (const levels of [64, 100_000]) {
        expect(read({ [field]: nested(levels) })).toBe(`${field}: expected at most 64 levels of nesting.`);
      }
    },
  );

  test.each(['metadata', 'config'])('%s must be an object: other JSON is refused', (field) => {
    for (const value of [[], 'x', 1, true])
      expect(read({ [field]: value })).toBe(`${field}: expected a JSON object.`);
  });

  test.each(['metadata', 'config'])('%s refuses a number that would be stored as null', (field) => {
    const value = { [field]: JSON.parse('{"a": [{"b": -1e999}]}') };
    expect(read(value)).toMatch(new RegExp(`^${field}: expected numbers below`));
  });

  test.each(['metadata', 'config'])('%s stores NUL, lone surrogates and __proto__ as data', (field) => {
    const value = JSON.parse('{"a": "\\u0000\\ud800", "__proto__": {"b": 1}}') as object;
    expect(JSON.stringify(read({ [field]: value }))).toContain(JSON.stringify(value));
  });
});

describe('the names of a config', () => {
  const named = (count: number, chars = 0) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}`.padStart(chars, 'n'), 1]));

  test('are at most 200 at the top level', () => {
    accepted({ config: named(200) });
    expect(read({ config: named(201) })).toBe('config: expected at most 200 fields.');
  });

  test('are at most 2,000 in all, in lists and objects', () => {
    const spread = (count: number) => ({ k: [named(999), { inner: named(count - 1_001) }] });
    accepted({ config: spread(2_000) });
    expect(read({ config: spread(2_001) })).toBe(
      'config: expected at most 2000 names of fields, those of inner objects included.',
    );
  });

  test('have at most 256 characters each, and the error names the long one', () => {
    accepted({ config: { k: [named(1, 256)] } });
    expect(read({ config: { k: [named(1, 257)] } })).toMatch(
      /^config\.k\[0\]\.n+0: expected names of at most 256 characters\.$/,
    );
  });
});

describe('path', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `/${i}`);
  const exactly = (bytes: number) => ['/a', `/${'b'.repeat(bytes - 3)}`];

  test('a single path and an array of one path are equal', () => {
    expect(read({ path: ['/v1/x'] })).toEqual(read({ path: '/v1/x' }));
  });

  test('50 paths pass; 51 and an empty list are refused', () => {
    expect(read({ path: many(50) })).toHaveProperty('path', many(50));
    expect(read({ path: many(51) })).toBe('path: expected 1 to 50 paths.');
    expect(read({ path: [] })).toBe('path: expected 1 to 50 paths.');
  });

  test('paths of 1,536 bytes in total pass, and 1,537 are refused', () => {
    expect(read({ path: exactly(1536) })).toHaveProperty('path', exactly(1536));
    const refusal = 'path: expected at most 1536 bytes for all paths together.';
    expect(read({ path: exactly(1537) })).toBe(refusal);
    expect(read({ path: `/${'é'.repeat(768)}` })).toBe(refusal);
  });

  test('an invalid path is named by its position', () => {
    expect(read({ path: ['/a', 7] })).toBe('path[1]: expected a string.');
    expect(read({ path: [null] })).toBe('path[0]: expected a string.');
    for (const path of [7, {}, null, true]) expect(read({ path })).toMatch(/^path: expected a path, such as/);
  });
});

describe('method', () => {
  test.each(METHODS)('%s is accepted in either case', (method) => {
    expect(read({ method })).toHaveProperty('method', method);
    expect(read({ method: method.toLowerCase() })).toHaveProperty('method', method);
  });

  test('any other is refused, and the error lists the accepted ones', () => {
    for (const method of ['OPTIONS', 'CONNECT', 'TRACE', '', ' POST', 'POST ', 7, ['POST']]) {
      expect(read({ method })).toBe('method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE.');
    }
  });
});

describe('keys', () => {
  test('one of client_api_key and virtual_key is required, and both are allowed', () => {
    const { client_api_key, ...none } = least;
    accepted({ virtual_key: 'vk_1' });
    expect(read({ virtual_key: 'vk_1' }, none)).toMatchObject({ virtual_key: 'vk_1' });
    expect(read({}, none)).toMatch(/^client_api_key: .*virtual_key/);
  });

  test('client_api_key refuses characters that could end a header, without quoting the key', () => {
    accepted({ client_api_key: 'k'.repeat(4096) });
    for (const key of ['', ' ', 'a b', 'a\r\nx: y', 'a\0', 'é', 'k'.repeat(4097), 7, {}]) {
      expect(read({ client_api_key: key })).toMatch(
        /^client_api_key: expected (a string|1 to 4096 visible ASCII)/,
      );
    }
    expect(read({ client_api_key: 'marked secret' })).not.toContain('marked');
  });

  test('virtual_key refuses characters that Postgres cannot store', () => {
    accepted({ virtual_key: 'v'.repeat(255) });
    for (const key of ['', 'a\0', 'a b', '\ud800', 'v'.repeat(256), 7]) {
      expect(read({ virtual_key: key })).toMatch(/^virtual_key: expected (a string|the id of a virtual key)/);
    }
  });
});

describe('session_id', () => {
  const id = '123e4567-e89b-42d3-a456-426614174000';
  test('any UUID is accepted, and stored in lower case', () => {
    for (const each of [id, id.toUpperCase(), '018f4e2a-0000-7000-8000-000000000000']) {
      expect(read({ session_id: each })).toHaveProperty('session_id', each.toLowerCase());
    }
  });

  test('other spellings and other types are refused', () => {
    for (const each of [
      '',
      'x',
      `{${id}}`,
      `urn:uuid:${id}`,
      id.replaceAll('-', ''),
      `${id} `,
      `${id}0`,
      7,
    ]) {
      expect(read({ session_id: each })).toMatch(/^session_id: expected a UUID/);
    }
  });
});

describe('fields', () => {
  test.each(['provider', 'path'])('%s is required', (field) => {
    const { [field]: _left, ...rest } = least as Record<string, unknown>;
    expect(read({}, rest)).toBe(`${field}: this field is required.`);
  });

  test('provider is a string of 1 to 64 characters', () => {
    accepted({ provider: 'p'.repeat(64) });
    for (const provider of ['', 'p'.repeat(65), 7, null])
      expect(read({ provider })).toMatch(/^provider: expected/);
  });

  test.each(['COST_LIMIT', 'temperature', 'constructor', 'toString', 'x', ''])(
    'unknown field "%s" is refused',
    (field) => {
      expect(read({ [field]: 1 })).toBe(`${field === '' ? '""' : field}: this field is not known.`);
    },
  );

  test.each([
    ['cost_limt', 'cost_limit'],
    ['costLimit', 'cost_limit'],
    ['cost-limit', 'cost_limit'],
    ['max_use', 'max_uses'],
    ['maxUses', 'max_uses'],
    ['paths', 'path'],
    ['model', 'models'],
    ['expires_ni', 'expires_in'],
    ['externalUser', 'external_user'],
  ])('the error about an unknown field "%s" suggests the nearest known name: %s', (field, meant) => {
    expect(read({ [field]: 1 })).toBe(`${field}: this field is not known (did you mean ${meant}?).`);
  });

  test('the error names an unknown field before a missing or wrong field', () => {
    const { path, ...rest } = least as Record<string, unknown>;
    expect(read({ pth: path, max_uses: 0 }, rest)).toBe('pth: this field is not known (did you mean path?).');
  });

  test('an own __proto__ is an unknown field', () => {
    const body = JSON.parse('{"__proto__": {"cost_limit": 1}}') as object;
    const result = presignRequest.safeParse(
      Object.defineProperties({ ...least }, Object.getOwnPropertyDescriptors(body)),
    );
    expect(result.success ? result.data : invalidRequest(result.error).param).toBe('__proto__');
  });

  test('a long name of an unknown field does not make the error long', () => {
    expect(read({ ['x'.repeat(500_000)]: 1 }).toString().length).toBeLessThan(200);
  });

  test.each([[[]], [null], ['x'], [1], [true]])('a body that is %j is refused', (body) => {
    const result = presignRequest.safeParse(body);
    expect(result.success ? result.data : invalidRequest(result.error)).toEqual({
      code: 'invalid_request',
      message: 'The body: expected a JSON object.',
    });
  });
});
