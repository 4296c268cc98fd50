import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MaskedSecret } from '../src/index.ts';

test('a masked secret is revealed as often as it is asked for', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 6_000 }), fc.string(), (secret, other) => {
      const masked = new MaskedSecret(secret);
      expect(masked.reveal()).toBe(secret.toWellFormed());
      expect(new MaskedSecret(other).reveal()).toBe(other.toWellFormed());
      expect(masked.reveal()).toBe(secret.toWellFormed());
    }),
  );
});

test('the same secret is masked in another way each time, and neither part shows it', () => {
  const secret = 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyz';
  const filled: Buffer[] = [];
  const allocate = Buffer.allocUnsafeSlow;
  Buffer.allocUnsafeSlow = (size) => {
    const made = allocate(size);
    filled.push(made);
    return made;
  };
  try {
    const all = [new MaskedSecret(secret), new MaskedSecret(secret)];
    for (const each of all) expect(inspect(each, { showHidden: true, depth: 9 })).not.toContain('sk-proj');
  } finally {
    Buffer.allocUnsafeSlow = allocate;
  }
  expect(filled).toHaveLength(4);
  expect(new Set(filled.map((each) => each.toString('hex'))).size).toBe(4);
  for (const each of filled) expect(each.includes('sk-proj')).toBe(false);
});
