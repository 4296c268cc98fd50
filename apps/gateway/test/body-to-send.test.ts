import { Readable } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bodyToSend } from '../src/http/body.ts';

const KB = 1_024;
const bytesOf = (size: number, seed: number) => Buffer.alloc(size, `${seed}, a body of several pieces; `);

/** The bytes that a body writes, and the number of times that the end of its memory is reported. */
async function written(body: Parameters<typeof bodyToSend>[0]) {
  let released = 0;
  const sent = bodyToSend(body, () => {
    released++;
  });
  const chunks = sent instanceof Readable ? ((await sent.toArray()) as Buffer[]) : [sent ?? Buffer.alloc(0)];
  return { chunks, released, isWhole: sent instanceof Buffer };
}

test('a body is the same however many pieces it has, and a large one is written in as few as it can be', async () => {
  const sizes = fc.array(fc.constantFrom(0, 1, 100, 30 * KB, 64 * KB - 1, 64 * KB, 64 * KB + 1, 300 * KB), {
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(sizes, async (lengths) => {
      const pieces = lengths.map(bytesOf);
      const all = Buffer.concat(pieces);
      const isLarge = all.length > 64 * KB;
      for (const body of [pieces, all]) {
        const { chunks, released, isWhole } = await written(body);
        expect(Buffer.concat(chunks).equals(all)).toBe(true);
        expect(chunks).toHaveLength(Math.max(1, Math.ceil(all.length / (64 * KB))));
        expect([released, isWhole]).toEqual([isLarge ? 1 : 0, !isLarge]);
      }
    }),
  );
});

test('the bytes of a large piece are not copied', async () => {
  const piece = bytesOf(200 * KB, 1);
  const { chunks } = await written([Buffer.from('{'), piece, Buffer.from('}')]);
  expect(chunks.filter(({ buffer }) => buffer === piece.buffer)).toHaveLength(2);
});
