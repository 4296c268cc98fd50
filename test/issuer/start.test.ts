import { generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { describe, expect, test } from 'vitest';
import { GATEWAY_MAIN, ISSUER_MAIN, run } from './issuer-process.ts';

const signing = generateSigningKey();
/** Nobody listens there; a start that gets so far has read all its variables. */
const good = {
  HOST: '127.0.0.1',
  ISSUER_PORT: '0',
  GATEWAY_PORT: '0',
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  REDIS_URL: 'redis://127.0.0.1:1',
  TOKEN_SIGNING_KEY: signing,
  TOKEN_PUBLIC_KEYS: readSigningKey(signing).publicKey,
  ENCRYPTION_KEYS: generateEncryptionKey('k1'),
};

/** Runs a service to its end: its exit code and what it wrote. */
async function outcome(main: string, changed: Readonly<Record<string, string | undefined>>) {
  const child = run(main, { ...good, ...changed }, 'pipe');
  let [out, err] = ['', ''];
  child.stdout?.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr?.on('data', (chunk) => {
    err += String(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, err };
}

// Which values are refused, and how each is said, is tested beside each service's `env.ts`.
describe.each([
  ['issuer', ISSUER_MAIN],
  ['gateway', GATEWAY_MAIN],
])('the start of the %s', (name, main) => {
  test.each([
    ['missing', 'DATABASE_URL', undefined],
    ['malformed', 'ENCRYPTION_KEYS', 'k1:c2hvcnQ='],
  ])(
    'stops at a %s variable (%s) with exit code 1 and one line that names it',
    async (problem, variable, value) => {
      const { code, out, err } = await outcome(main, { [variable]: value });
      expect([code, out]).toEqual([1, '']);
      expect(err).toMatch(
        new RegExp(`^presign ${name}: ${variable} is ${problem}.*, for example ${variable}=.*\n$`),
      );
    },
  );

  test('stops with one line that names REDIS_URL when Redis does not answer', async () => {
    const { code, err } = await outcome(main, {});
    expect([code, err]).toEqual([1, `presign ${name}: REDIS_URL: Redis does not answer\n`]);
  });
});
