import { expect } from 'vitest';
import type { Seen } from '../harness/upstream.ts';

/** The provider's key, which the issuer is given; the sandbox takes it too. */
export const REAL_KEY = 'sk-sandbox-real-key';
/** The text that the holder of a URL writes where its SDK wants a key. */
export const PLACEHOLDER_KEY = 'placeholder-key';

/** Checks that a provider got the real key, in one header, and nothing of the holder's. */
export function expectRealKeyAlone(seen: Seen | undefined, header: string, value = REAL_KEY): void {
  expect(seen?.headers[header]).toBe(value);
  const all = [seen?.url, ...(seen?.rawHeaders ?? []), seen?.body.toString()].join('\n');
  expect(all).not.toContain(PLACEHOLDER_KEY);
  expect(all.split(REAL_KEY)).toHaveLength(2);
}
