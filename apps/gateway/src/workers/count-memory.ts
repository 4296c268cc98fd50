import { hash } from 'node:crypto';
import type { CountTokens, Encoding } from '@presign/providers';
import { LRUCache } from 'lru-cache';

/** A shorter text is counted in less time than it takes to look it up. */
const SHORT_CHARS = 128;
/** Texts of a worker that are remembered: 10 MB at most. */
const REMEMBERED = 50_000;

/**
 * The counts of texts that this worker has counted before. Agents send a conversation again in each turn with a little more, so most
 * of its texts are known. Accounts share no counts: else an account could learn from the time of an answer that another one has sent its
 * text.
 */
export class CountMemory {
  readonly #counts = new LRUCache<string, number>({ max: REMEMBERED });

  /** A counter that remembers. It counts as `count` does. */
  of(accountId: string, encoding: Encoding, count: CountTokens): CountTokens {
    return (text) => {
      // Texts that are not well-formed may have one hash although they differ.
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
