import type { VendorRefusal } from '../refusals.ts';
import type { CacheWrites, FEE_UNITS, ModelPrice } from './rates.ts';

/** Where a fact is from, and the day on which it was last read there. */
export type Cited = { readonly source: string; readonly date: string };

/**
 * The effect of a field, or of a kind of objects, on the bound of its call, in the words of a knowledge file:
 * - `harmless`: its bytes bound its cost. If it has `values`, any other value is refused for the `reason`.
 * - `whole window`: it brings input that is not in the body, so the input is the whole context window.
 * - `refused`: nothing bounds its cost, for the `reason`.
 * - `judged`: the function that `by` names decides by its value. `unit` is the fee that this function counts.
 */
export type Entry<By extends string = string> = Partial<Cited> &
  (
    | { readonly effect: 'harmless'; readonly values?: undefined }
    | { readonly effect: 'harmless'; readonly values: readonly unknown[]; readonly reason: string }
    | { readonly effect: 'whole window' }
    | { readonly effect: 'refused'; readonly reason: string }
    | { readonly effect: 'judged'; readonly by: By; readonly unit?: (typeof FEE_UNITS)[number] }
  );

/** The entries of one place in a body. An entry without a source or a date has that of its group. */
export type Group<By extends string = string> = Cited & {
  /** The place, as a refusal names it (`nameOfPlace`): `messages[]`. '' is the body. */
  readonly at: string;
  /** Its entries are fields of the object there, or kinds of this object, which its `type` names. */
  readonly of: 'fields' | 'kinds';
  readonly entries: { readonly [name: string]: Entry<By> };
};

/** Names that share one known fact, such as the harmless betas. */
export type Names = Cited & { readonly names: readonly string[] };

/** Names of models about which one thing is known, in lower case. A pattern decides nothing: a function does. */
export type Matching = Cited & { readonly matching: RegExp };

/** Cache writes of models, in multiples of the input. */
export type Writes = Matching & { readonly times: CacheWrites };

/** Most tokens, or most of another thing, that something takes. */
export type Most = Cited & { readonly most: number };

/** Fewest tokens, or fewest of another thing, that something takes. */
export type Least = Cited & { readonly least: number };

/** Rates that a vendor publishes, and the models that have them. */
export type Rates = Matching & { readonly rates: ModelPrice };

/** Parts of names, in lower case. Each is sticky (`y`), so that it is found where another one ended. */
export type Parts = Cited & { readonly parts: readonly RegExp[] };

/** Most tokens that markers add around each message, and around each tool in addition to its text. */
export type Markers = Cited & { readonly perMessage: number; readonly perTool: number };

/** A figure for each model, by its name without a date. */
export type ByModel<T> = Cited & { readonly models: Readonly<Record<string, T>> };

/**
 * Models by name without a date: context window and most output in tokens, and whether the model thinks before it answers. A figure that is
 * not known is left out. If two readings of a figure are published (128K as 128,000 or 131,072), the row has the larger, because holds
 * follow from it.
 */
export type Models = ByModel<
  Partial<Cited> & { readonly window?: number; readonly output?: number; readonly thinks?: true }
>;

/** The encodings whose ranks and patterns OpenAI publishes (https://github.com/openai/tiktoken, openai_public.py). */
export type Encoding = 'o200k_base' | 'cl100k_base';

/** The tokens in "1K" of a context window. */
export const K = 1_024;

/**
 * A call that is free with any query and body: its hold is 0 and it is not metered. It is matched byte for byte
 * (`costsNothing`), so that no spelling of a billed path matches it.
 */
export type FreeCall = Partial<Cited> & {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As in a route: `*` stands for one or more characters except `/`. */
  readonly path: string;
};

/** Calls that are free. */
export type FreeCalls = Cited & { readonly calls: readonly FreeCall[] };

/** Errors whose billing a vendor documents. */
export type Refusals = Cited & { readonly errors: readonly (Partial<Cited> & VendorRefusal)[] };

/** How an API that follows OpenAI's states usage and errors. */
export type UsageForm = Cited & {
  /**
   * The value of `service_tier` that means the standard price. It is written into every call, because a call without one gets the tier
   * of the project. Undefined: a call without one gets the standard tier, so the field is removed.
   */
  readonly standardTier: string | undefined;
  /** It sends a stream's usage only when asked by `stream_options.include_usage`, and takes that field. */
  readonly asksUsage: boolean;
  /** The last word of a stream that did not break off. */
  readonly lastWord: '[DONE]' | 'finish_reason';
  /** Reasoning is counted separately from `completion_tokens`. */
  readonly reasoningApart?: true;
  /** A field of the vendor's own in which a stream's chunk also reports usage (`usage`) and errors (`error`). */
  readonly ownField?: string;
  readonly errors: readonly ErrorForm[];
};

/** Forms of error bodies: `{error: {message}}`, `{error: "text"}`, a list of the first, `{message}`, `{detail}` (FastAPI). */
export type ErrorForm = 'error object' | 'error text' | 'error list' | 'message' | 'detail';
