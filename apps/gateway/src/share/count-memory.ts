import { hash } from 'node:crypto';
import type { Encoding } from '@presign/providers';
import { LRUCache } from 'lru-cache';

/** The number of remembered texts: at most 10 MB. */
const REMEMBERED = 50_000;

/**
 * How much counting has saved for texts (`SavedTokens`). Agents send the whole conversation again in each turn, so most of its texts are
 * remembered. Accounts share nothing. Otherwise an account could infer from the time of an answer that another account has sent the same
 * text.
 */
export class CountMemory {
  readonly #saved = new LRUCache<string, number>({ max: REMEMBERED });

  get(key: string): number | undefined {
    return this.#saved.get(key);
  }

  set(key: string, saved: number): void {
    this.#saved.set(key, saved);
  }
}

/**
 * The key of a text in the memory.
 * @param json the text as JSON, because texts with lone surrogates may have the same UTF-8 although they differ
 */
export const keyOfText = (accountId: string, encoding: Encoding, json: string | Uint8Array): string =>
  `${accountId} ${encoding} ${hash('sha256', json, 'base64url')}`;
