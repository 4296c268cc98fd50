import { expect } from 'vitest';
import type { Pace } from './upstreams/paced.ts';

/**
 * Reads a stream whose upstream sends its next event only after this has got the one before. Whatever
 * held chunks back on the way would stop both for good.
 */
export async function takeInStep<T>(stream: AsyncIterable<T>, pace: Pace): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
    expect(pace.sent()).toBe(chunks.length);
    pace.next();
  }
  return chunks;
}
