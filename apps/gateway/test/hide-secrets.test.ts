import { randomBytes } from 'node:crypto';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isCoded, MaskedBody, SecretMask, Secrets } from '../src/http/hide-secrets.ts';
import { bodyMemory } from '../src/share/body-memory.ts';
import { roomy } from './metered.ts';

function inPieces(mask: SecretMask, text: string, size: number): string {
  const bytes = Buffer.from(text);
  const out: Buffer[] = [];
  // A mask keeps its own copy of what waits, so the caller may use the piece again.
  for (let at = 0; at < bytes.length; at += size) {
    const piece = Buffer.from(bytes.subarray(at, at + size));
    out.push(Buffer.from(mask.push(piece)));
    piece.fill(0);
  }
  return Buffer.concat([...out, mask.end()]).toString();
}

describe('a secret in a body that passes in pieces', () => {
  const SECRET = 'sk-abcabcabd';

  test('is masked wherever the pieces end, and everything else passes unchanged', () => {
    const part = fc.oneof(
      fc.constant(SECRET),
      fc.constantFrom('sk-', 'abc', 'sk-abcabc', 'sk-abcabcab', 'd', '***'),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.integer({ min: 1, max: 20 }), (parts, size) => {
        const text = parts.join('');
        const masked = text.replaceAll(SECRET, '*'.repeat(SECRET.length));
        expect(inPieces(new SecretMask(new Secrets([SECRET])), text, size)).toBe(masked);
      }),
      { numRuns: 3_000 },
    );
  });

  test('is masked in the spelling of JSON and of a query string', () => {
    const secret = 'a"b/c\\d é';
    const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
    for (const form of forms)
      for (const size of [1, 3, 100]) {
        const masked = inPieces(new SecretMask(new Secrets([secret])), `before ${form} after`, size);
        expect(masked).toMatch(/^before \*+ after$/);
      }
  });

  test('takes linear time, even for a secret that repeats itself', () => {
    const secret = `${'a'.repeat(5_000)}b`;
    const mask = new SecretMask(new Secrets([secret]));
    const piece = Buffer.alloc(64 * 1024, 'a');
    let passed = 0;
    for (let i = 0; i < 500; i++) passed += mask.push(piece).length;
    expect(passed + mask.end().length).toBe(500 * piece.length);
  });

  test('is masked in a compressed body, and a body that cannot be decoded is not passed', async () => {
    const text = `Incorrect API key provided: ${SECRET}.`;
    for (const [coding, bytes] of [
      ['gzip', gzipSync(text)],
      ['br', brotliCompressSync(text)],
    ] as const) {
      const body = new MaskedBody(coding, new Secrets([SECRET]), roomy());
      for (const byte of bytes) expect(body.push(Buffer.of(byte)).length).toBe(0);
      expect((await body.end())?.toString()).toBe(
        `Incorrect API key provided: ${'*'.repeat(SECRET.length)}.`,
      );
    }
    const broken = new MaskedBody('gzip', new Secrets([SECRET]), roomy());
    broken.push(Buffer.from(text));
    expect(await broken.end()).toBeUndefined();
    const unknown = new MaskedBody('zstd', new Secrets([SECRET]), roomy());
    unknown.push(Buffer.from(text));
    expect(await unknown.end()).toBeUndefined();
  });

  test('a compressed body is not passed if the memory to decode or encode it is missing, and no memory stays reserved', async () => {
    for (const text of ['x'.repeat(200_000), randomBytes(100_000).toString('hex')]) {
      const memory = bodyMemory(100_000, 100_000).newReservation();
      const body = new MaskedBody('gzip', new Secrets([SECRET]), memory);
      const coded = gzipSync(text);
      for (let at = 0; at < coded.length; at += 10_000) body.push(coded.subarray(at, at + 10_000));
      expect(await body.end()).toBeUndefined();
    }
  });

  test.each(['', 'identity', 'none', 'UTF-8', 'utf-8', 'iso-8859-1'])(
    'a body with the coding %j is plain text, and passes unchanged',
    async (coding) => {
      const body = new MaskedBody(coding, new Secrets([SECRET]), roomy());
      expect(body.push(Buffer.from('a'.repeat(2_000))).length).toBeGreaterThan(0);
      expect(isCoded(coding)).toBe(false);
    },
  );
});
