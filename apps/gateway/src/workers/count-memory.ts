import { hash } from 'node:crypto';
import type { CountTokens, Encoding } from '@presign/providers';
import { LRUCache } from 'lru-cache';

/** Counting a shorter text is faster than looking it up. */
const SHORT_CHARS = 128;
/** The number of cached texts of a worker: at most 10 MB. */
const REMEMBERED = 50_000;

/**
 * The counts of texts that this worker has counted before. Agents send the whole conversation again in each turn, so most of its texts are
 * cached. Accounts share no counts. Otherwise an account could infer from the time of an answer that another account has sent the same
 * text.
 */
export class CountMemory {
  readonly #counts = new LRUCache<string, number>({ max: REMEMBERED });

  /** A counter with a cache. It counts like `count`. */
  of(accountId: string, encoding: Encoding, count: CountTokens): CountTokens {
    return (text) => {
      // Ill-formed texts may have the same hash although they differ.
      if (text.length < SHORT_CHARS || !text.isWellFormed()) return count(text);
      const key = hash('sha256', `${accountId} ${encoding} ${text}`, 'base64url');
      const known = this.#counts.get(key);
      if (known !== undefined) return known;
      const counted = count(text);
      this.#counts.set(key, counted);
      return counted;
    };
  }
}
