import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { VARIABLES, type VariableName } from '@presign/service';
import { expect, test } from 'vitest';
import { readIssuerEnv } from '../src/env.ts';

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
  ['ISSUER_PORT', 'no number', MARK],
  ['ISSUER_PORT', 'too large', '65536'],
  ['ISSUER_URL', 'no address', MARK],
  ['TOKEN_SIGNING_KEY', 'missing', undefined],
  ['TOKEN_SIGNING_KEY', 'too short', `k4.secret.${MARK}`],
  ['TOKEN_SIGNING_KEY', 'a public key', good.TOKEN_PUBLIC_KEYS],
  ['TOKEN_SIGNING_KEY', 'of two halves that do not belong together', `k4.secret.${'A'.repeat(86)}`],
  ['TOKEN_PUBLIC_KEYS', 'too short', `k4.public.${MARK}`],
  ['BOOTSTRAP_API_KEY', 'too short', MARK],
];

function problemOf(environment: Partial<Record<string, string | undefined>>): string {
  try {
    readIssuerEnv(environment);
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
  expect(readIssuerEnv(good)).toMatchObject({
    port: 8787,
    issuerUrl: 'http://localhost:8787',
    gatewayUrl: 'http://localhost:8788',
    bootstrapApiKey: undefined,
    olderPublicKeys: [good.TOKEN_PUBLIC_KEYS],
    logLevel: 'info',
  });
  expect(readIssuerEnv({ ...good, ISSUER_PORT: '1', GATEWAY_PORT: '2' })).toMatchObject({
    issuerUrl: 'http://localhost:1',
    gatewayUrl: 'http://localhost:2',
  });
});
