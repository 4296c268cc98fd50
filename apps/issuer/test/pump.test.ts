import { expect, test } from 'vitest';
import { pump } from '../src/answers/pump.ts';

async function* texts() {
  for (;;) yield 'text';
}

/** An answer that nothing is read of. */
const stalled = () => new TransformStream<Uint8Array, Uint8Array>().writable;

/** Whether it has ended after so many ms. */
const endsWithin = (ms: number, pumped: Promise<void>) =>
  Promise.race([
    pumped.then(
      () => 'whole',
      () => 'broken off',
    ),
    new Promise((resolve) => setTimeout(resolve, ms, 'open')),
  ]);

test('an answer whose caller reads nothing ends once others wait for what it keeps, and not before', async () => {
  let isWanted = false;
  const pumped = pump(stalled(), texts(), { wantedMs: 300, isWanted: () => isWanted });
  expect(await endsWithin(1_000, pumped)).toBe('open');
  isWanted = true;
  expect(await endsWithin(5_000, pumped)).toBe('broken off');
});

test('an answer that is read goes on, however many wait', async () => {
  let count = 0;
  async function* some() {
    // The time in which a text is made does not count.
    for (; count < 5; count++) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      yield 'text';
    }
  }
  const pumped = pump(new WritableStream(), some(), { wantedMs: 300, isWanted: () => true });
  expect(await endsWithin(10_000, pumped)).toBe('whole');
});
