import { RefusedError } from '@presign/schema';
import { describe, expect, test } from 'vitest';
import { countFailedSignIns, FAILED_SIGN_INS } from '../src/console/sign-in.ts';

/** Fails a sign-in as often as it may. */
function failAll(count: ReturnType<typeof countFailedSignIns>, address: string): void {
  for (let i = 0; i < FAILED_SIGN_INS; i++) count(address);
}

describe('failed sign-ins', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['::ffff:192.0.2.7', '::ffff:192.0.2.8', false],
    ['2001:db8:0:1::7', '2001:db8:0:1:ffff::8', true],
    ['2001:db8:0:1::7', '2001:db8:0:2::7', false],
    ['2001:db8::7', '2001:db8:0:0:1::', true],
    ['::1', '::2', true],
    ['2001:db8::7', '192.0.2.7', false],
  ])('from %s count together with those from %s: %s', (one, other, isSame) => {
    const count = countFailedSignIns(() => 0);
    failAll(count, one);
    if (isSame) expect(() => count(other)).toThrow(RefusedError);
    else expect(() => count(other)).not.toThrow();
  });

  test('are remembered for the 10,000 addresses that failed last', () => {
    const count = countFailedSignIns(() => 0);
    for (const address of ['first', 'second']) failAll(count, address);
    expect(() => count('first')).toThrow(RefusedError);
    for (let i = 0; i < 9_999; i++) count(`other ${i}`);
    expect(() => count('first')).toThrow(RefusedError);
    expect(() => count('second')).not.toThrow();
  });
});
