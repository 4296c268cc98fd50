import * as COUNTS from '../facts/counts.ts';
import type { Names } from '../facts/fact.ts';
import type { KnownCounts } from './known-counts.ts';

const countsOf = (...lists: readonly Names[]): KnownCounts => new Set(lists.flatMap(({ names }) => names));

/** The counts of each API family that are counted, or change no price. A vendor has more of its own (`freeUsage`). */
export const CHAT_COUNTS = countsOf(COUNTS.CHAT, COUNTS.DEEPSEEK, COUNTS.PERPLEXITY);

/** Without output. */
export const EMBEDDINGS_COUNTS: KnownCounts = new Set(
  [...CHAT_COUNTS].filter((name) => !name.startsWith('completion_tokens')),
);

export const RESPONSES_COUNTS = countsOf(COUNTS.RESPONSES);
export const REALTIME_COUNTS = countsOf(COUNTS.REALTIME);
export const IMAGES_COUNTS = countsOf(COUNTS.IMAGES);
export const ANTHROPIC_COUNTS = countsOf(COUNTS.ANTHROPIC, COUNTS.ANTHROPIC_FETCHES);
export const GEMINI_COUNTS = countsOf(COUNTS.GEMINI);
export const CONVERSE_COUNTS = countsOf(COUNTS.CONVERSE);
export const COHERE_COUNTS = countsOf(COUNTS.COHERE, COUNTS.RANKS);
