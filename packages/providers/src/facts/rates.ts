/** Kinds of tokens that a price may have a rate for: whole microdollars per million. */
export const TOKEN_KINDS = [
  ...(['input', 'cache_read', 'cache_write', 'cache_write_1h'] as const),
  ...(['input_audio', 'cache_audio_read', 'input_image', 'cache_image_read', 'input_video'] as const),
  ...(['output', 'output_reasoning', 'output_citation'] as const),
  ...(['output_audio', 'output_image', 'output_video'] as const),
] as const;

/** Other units that a dialect can bound, or that answers report: whole microdollars for each. */
export const FEE_UNITS = [
  ...(['requests', 'web_searches', 'storage_searches', 'rerank_searches'] as const),
  // Searches of the older tool of OpenAI; answers of Gemini that Google Search or Maps grounded, and queries for them.
  ...(['preview_searches', 'grounded_prompts', 'grounding_searches', 'map_prompts'] as const),
  ...(['images', 'characters'] as const),
] as const;

/**
 * An operator's rates for a model. `input` and `output` cover every kind of token that has no rate of its own. A unit
 * without a rate is not covered: a call that can use it does not pass under a spend limit.
 */
export type ModelPrice = Readonly<
  Partial<Record<(typeof TOKEN_KINDS)[number] | (typeof FEE_UNITS)[number], number>>
>;

/** Kinds of tokens that a list's price for text does not cover. */
export const MEDIA_KINDS = TOKEN_KINDS.filter((kind) => /audio|image|video/.test(kind));

/** The price of a token that is written to a cache, in multiples of an input token: for some minutes, and for an hour. */
export type CacheWrites = { readonly short: number; readonly hour: number };
