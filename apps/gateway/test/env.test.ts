import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { VARIABLES, type VariableName } from '@presign/service';
import { expect, test } from 'vitest';
import { readGatewayEnv } from '../src/env.ts';

/** In every bad value: must not be shown. */
const MARK = 'Zm4rkedZ';
const signing = generateSigningKey();
/** All that is required, in order. */
const good = {
  DATABASE_URL: 'postgres://presign@db/presign',
  REDIS_URL: 'redis://redis:6379',
  TOKEN_SIGNING_KEY: signing,
  TOKEN_PUBLIC_KEYS: readSigningKey(signing).publicKey,
  ENCRYPTION_KEYS: generateEncryptionKey('k1'),
};

const folder = mkdtempSync(join(tmpdir(), 'presign-'));
const fileOf = (text: string) => {
  const path = join(folder, `${MARK}-${text.length}.json`);
  writeFileSync(path, text);
  return path;
};
const key32 = Buffer.alloc(32, 7).toString('base64');
const smallOrder = `k4.public.${Buffer.alloc(32).toString('base64url')}`;

type Bad = [name: VariableName, what: string, value: string | undefined];
const bad: Bad[] = [
  ['DATABASE_URL', 'missing', undefined],
  ['DATABASE_URL', 'empty', ''],
  ['DATABASE_URL', 'of another database', `mysql://u:${MARK}@db/x`],
  ['DATABASE_URL', 'no address', `postgres://u:${MARK}@db:port/x`],
  ['REDIS_URL', 'missing', undefined],
  ['REDIS_URL', 'of another scheme', `http://${MARK}:6379`],
  ['ENCRYPTION_KEYS', 'missing', undefined],
  ['ENCRYPTION_KEYS', 'too short', `k1:${Buffer.from(MARK).toString('base64')}`],
  ['ENCRYPTION_KEYS', 'no base64', `k1:${MARK}!`],
  ['ENCRYPTION_KEYS', 'one id twice', `k1:${key32},k1:${key32}`],
  ['PROVIDERS_FILE', 'absent', join(folder, MARK)],
  ['PROVIDERS_FILE', 'a folder', folder],
  ['PROVIDERS_FILE', 'no JSON', fileOf(`{"a": "${MARK}`)],
  ['PROVIDERS_FILE', 'of an unknown field', fileOf(`{"openai": {"base_ulr": "https://${MARK}.example"}}`)],
  ['GATEWAY_URL', 'no address', MARK],
  ['GATEWAY_URL', 'with a query', `https://a.example?${MARK}`],
  ['LOG_LEVEL', 'unknown', MARK],
  ['GATEWAY_PORT', 'no number', MARK],
  ['TOKEN_PUBLIC_KEYS', 'missing', undefined],
  ['TOKEN_PUBLIC_KEYS', 'too short', `k4.public.${MARK}`],
  ['TOKEN_PUBLIC_KEYS', 'forgeable', smallOrder],
  ['TOKEN_PUBLIC_KEYS', 'a secret key', signing],
  ['ALLOW_PRIVATE_UPSTREAMS', 'no flag', MARK],
  ['HOLD_LEASE_SECONDS', 'zero', '0'],
  ['UPSTREAM_TIMEOUT_SECONDS', 'no number', MARK],
  ['MAX_BODY_BYTES', 'less than a mebibyte', '1000'],
  ['MAX_HELD_BODY_BYTES', 'less than two and a half bodies', '41943039'],
];

function problemOf(environment: Partial<Record<string, string | undefined>>): string {
  try {
    readGatewayEnv(environment);
    return 'none';
  } catch (error) {
    return error instanceof Error ? error.message : 'no error';
  }
}

test.each(bad)(
  'for %s, %s the error is one line that names the variable and shows an example, never its value',
  (name, _what, value) => {
    const problem = problemOf({ ...good, [name]: value });
    expect(problem.split('\n')).toHaveLength(1);
    expect(problem).toMatch(new RegExp(`^${name}\\b.* for example `));
    const { example } = VARIABLES[name];
    if (!problem.startsWith('PROVIDERS_FILE:')) expect(problem).toContain(`for example ${name}=${example}`);
    const shown = problem.replaceAll(example, '');
    for (const secret of [value, MARK, signing]) if (secret) expect(shown).not.toContain(secret);
  },
);

test('an unset variable has the documented default', () => {
  expect(readGatewayEnv(good)).toMatchObject({
    port: 8788,
    gatewayUrl: 'http://localhost:8788',
    allowPrivateUpstreams: false,
    leaseMs: 60_000,
    upstreamTimeoutMs: 3_600_000,
    maxHeldBodyBytes: 67_108_864,
    socketBounds: {
      perGateway: 5_000,
      perAccount: 1_000,
      perUrl: 20,
      holderMessageBytes: 1_048_576,
      upstreamMessageBytes: 16_777_216,
    },
    maxBodyBytes: 16_777_216,
    logLevel: 'info',
  });
});
