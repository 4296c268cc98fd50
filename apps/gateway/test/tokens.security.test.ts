import { generateSigningKey, readSigningKey, signMessage, signToken } from '@presign/crypto';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type StorelessGateway, startStorelessGateway } from './storeless-gateway.ts';

let gateway: StorelessGateway;
beforeAll(async () => {
  gateway = await startStorelessGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  gateway.asked.length = 0;
});

test('a model whose name would change the path is refused, even if the pattern matches', async () => {
  const claims = { ...gateway.claims(), prv: 'google', pth: ['/v1beta/models/*:generateContent'] };
  for (const [mdl, code] of [
    ['gemini-x', 'limits_unavailable'],
    ['..', 'path_not_allowed'],
    ['../../x', 'path_not_allowed'],
    ['a/../b', 'path_not_allowed'],
    ['a?b', 'path_not_allowed'],
    ['a%2fb', 'path_not_allowed'],
  ]) {
    expect((await call(sign({ ...claims, mdl }), '/v1beta/models/any:generateContent')).code).toBe(code);
  }
});

const second = 1000;
const sign = (claims: Record<string, unknown>) => signToken(claims, gateway.signingKey);
const good = () => sign(gateway.claims());
const at = (ms: number) => new Date(ms).toISOString();

async function call(
  token: string,
  to = '/v1/chat/completions',
): Promise<{ status: number; code: string | undefined }> {
  // Path as given: undici sends it byte for byte.
  const path = `/llm/t/${token}${to}`;
  const answer = await request({ origin: gateway.url, path } as never, { method: 'POST', body: '{}' });
  await answer.body.dump();
  // Each API family has its code elsewhere in the body, and all have it in this header.
  return { status: answer.statusCode, code: answer.headers['x-presign-code']?.toString() };
}

async function expectRefused(token: string, code = 'token_invalid'): Promise<void> {
  expect(await call(token)).toEqual({ status: 401, code });
  expect(gateway.asked).toEqual([]);
}

test('only after a token is verified is a store queried', async () => {
  expect(await call(good())).toEqual({ status: 503, code: 'limits_unavailable' });
  expect(gateway.asked).not.toEqual([]);
});

test('a token signed by an unknown key is refused', () =>
  expectRefused(signToken(gateway.claims(), readSigningKey(generateSigningKey()))));

test('a token signed by another key under our key id is refused', () => {
  const stranger = readSigningKey(generateSigningKey());
  const footer = Buffer.from(JSON.stringify({ kid: gateway.signingKey.kid }));
  const payload = Buffer.from(JSON.stringify(gateway.claims()));
  return expectRefused(signMessage(payload, stranger.privateKey, footer));
});

test.each([
  ['no footer', ''],
  ['an empty kid', '{"kid":""}'],
  ['a kid and more', '{"kid":"KID","alg":"none"}'],
  ['a kid with a space', '{"kid": "KID"}'],
  ['two kids', '{"kid":"KID","kid":"KID"}'],
  ['a kid that is no string', '{"kid":["KID"]}'],
  ['a footer that is no JSON', 'KID'],
])('a token with %s is refused even if our key signed it', (_what, footer) => {
  const payload = Buffer.from(JSON.stringify(gateway.claims()));
  const bytes = Buffer.from(footer.replaceAll('KID', gateway.signingKey.kid));
  return expectRefused(signMessage(payload, gateway.signingKey.privateKey, bytes));
});

test.each([
  ['for another gateway', { aud: 'https://other.example' }],
  ['for our address spelled otherwise', { aud: 'https://gateway.example/' }],
  ['for a list of gateways', { aud: ['https://gateway.example'] }],
  ['without an audience', { aud: undefined }],
  ['of the MCP server kind', { knd: 'mcp' }],
  ['of the MCP bundle kind', { knd: 'bundle' }],
  ['of no kind', { knd: undefined }],
  ['without an expiry', { exp: undefined }],
  ['with a null expiry', { exp: null }],
  ['with an expiry in seconds', { exp: 4_102_444_800 }],
  ['with an expiry in words', { exp: '1 hour' }],
  ['with an expiry that has an offset', { exp: '2031-01-01T00:00:00+02:00' }],
  ['with an expiry that is a day', { exp: '2031-01-01' }],
  ['without an issue time', { iat: undefined }],
  ['with an issue time in seconds', { iat: 1_893_456_000 }],
  ['without a grant', { jti: undefined }],
  ['with a grant id that is no UUID', { jti: '*' }],
  ['without a session', { sub: undefined }],
  ['with a partition that does not exist', { prt: 64 }],
  ['with a partition as text', { prt: '7' }],
  ['without paths', { pth: [] }],
  ['with its path as text', { pth: '/v1/chat/completions' }],
  ['without a method', { mth: undefined }],
  ['with a claim we do not know', { admin: true }],
  ['with a not-before we would not heed', { nbf: '2040-01-01T00:00:00Z' }],
])('a token %s is refused even if our key signed it', (_what, change) =>
  expectRefused(sign({ ...gateway.claims(), ...change })),
);

test('a token for an unconfigured provider is refused, and the error names the provider', async () => {
  expect(await call(sign({ ...gateway.claims(), prv: 'nobody' }))).toEqual({
    status: 400,
    code: 'unknown_provider',
  });
  expect(gateway.asked).toEqual([]);
});

test('a token expires exactly at its exp, even if it was verified before', async () => {
  const started = gateway.clock.ms;
  const token = good();
  try {
    gateway.clock.ms = started + 3600 * second - 1;
    expect((await call(token)).code).toBe('limits_unavailable');
    gateway.asked.length = 0;
    gateway.clock.ms = started + 3600 * second;
    await expectRefused(token, 'token_expired');
    await expectRefused(sign({ ...gateway.claims(), exp: at(gateway.clock.ms) }), 'token_expired');
  } finally {
    gateway.clock.ms = started;
  }
});

test('a token issued 59 or 60 seconds in the future is accepted, and one from 61 seconds is refused', async () => {
  const from = (seconds: number) =>
    sign({ ...gateway.claims(), iat: at(gateway.clock.ms + seconds * second) });
  expect((await call(from(59))).code).toBe('limits_unavailable');
  expect((await call(from(60))).code).toBe('limits_unavailable');
  gateway.asked.length = 0;
  await expectRefused(from(61));
});

test.each([
  'v4.local.',
  'v3.public.',
  'v3.local.',
  'v2.public.',
  'v2.local.',
  'v1.public.',
  'V4.public.',
  'v4.PUBLIC.',
])('a token whose header says %s is refused', (header) =>
  expectRefused(good().replace('v4.public.', header)),
);

test.each([
  ['a trailing dot', (token: string) => `${token}.`],
  ['another part', (token: string) => `${token}.e30`],
  ['an appended byte', (token: string) => `${token}A`],
  ['a space at the end', (token: string) => `${token}%20`],
  ['a NUL at the end', (token: string) => `${token}%00`],
  ['padding', (token: string) => `${token}=`],
  ['a part cut off', (token: string) => token.slice(0, token.lastIndexOf('.'))],
  ['its last character cut off', (token: string) => token.slice(0, -1)],
  ['a dot percent-encoded', (token: string) => token.replace('.', '%2E')],
  ['a letter percent-encoded', (token: string) => token.replace('v4', '%764')],
  ['a path parameter', (token: string) => `${token};x=1`],
  ['nothing but its header', () => 'v4.public.'],
  ['no character at all', () => ''],
  ['3,073 characters', (token: string) => token.padEnd(3073, 'A')],
])('a token with %s is refused', (_what, change) => expectRefused(change(good())));

test('a token whose body or footer uses another spelling of base64 is refused', async () => {
  const [, , body = '', footer = ''] = good().split('.');
  for (const other of ALPHABET.filter((letter) => letter !== footer.at(-1))) {
    await expectRefused(`v4.public.${body}.${footer.slice(0, -1)}${other}`);
    await expectRefused(`v4.public.${body.slice(0, -1)}${other === body.at(-1) ? '~' : other}.${footer}`);
  }
  await expectRefused(`v4.public.${body}==.${footer}`);
  await expectRefused(`v4.public.${body.slice(0, 9)}%0A${body.slice(9)}.${footer}`);
});

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

test('a token changed in any single bit is refused, and no store is queried', async () => {
  const token = good();
  const passed: string[] = [];
  let tried = 0;
  for (let i = 0; i < token.length; i++) {
    for (const bit of process.env.TEST_ALL ? [0, 1, 2, 3, 4, 5, 6] : [i % 7]) {
      const changed = String.fromCharCode(token.charCodeAt(i) ^ (1 << bit));
      // A request line holds visible ASCII only; the rest cannot be sent.
      if (changed <= ' ' || changed > '~') continue;
      tried++;
      const answer = await call(token.slice(0, i) + changed + token.slice(i + 1));
      if (answer.status !== 401 && answer.status !== 400) passed.push(`${i}:${changed} ${answer.status}`);
    }
  }
  expect(tried).toBeGreaterThan((process.env.TEST_ALL ? 4 : 0.5) * token.length);
  expect(passed).toEqual([]);
  expect(gateway.asked).toEqual([]);
});
