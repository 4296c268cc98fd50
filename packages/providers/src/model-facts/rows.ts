/**
 * What is known of a provider's models, by name without a date: context window and most output, in tokens, and
 * `thinks` where a model reasons before it answers. Of two published readings of a figure (128K as 128,000 or
 * 131,072) the larger stands, since holds are made from it.
 */
export type Rows = { readonly [name: string]: Row };

export type Row = readonly [
  contextWindow: number | undefined,
  maxOutput: number | undefined,
  thinks?: 'thinks' | undefined,
];

/** What "K" counts. */
export const K = 1_024;
