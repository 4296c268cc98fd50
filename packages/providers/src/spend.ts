import type { JsonObject } from './json.ts';

/**
 * What was used or can be used, in the units of @pydantic/genai-prices: `input_tokens` (all input, cached input
 * included), `cache_read_tokens`, `cache_write_tokens`, `cache_write_1h_tokens`, `input_audio_tokens`,
 * `output_tokens` (all output, reasoning included), `output_reasoning_tokens`, `output_audio_tokens`, `web_searches`…
 */
export type Usage = Readonly<Record<string, number>>;

/** Facts about a model that bounding a call needs; undefined where a fact is not known. */
export type ModelFacts = {
  /** Tokens of input and output together. */
  readonly contextWindow: number | undefined;
  readonly maxOutput: number | undefined;
  /** The model thinks before it answers, so an omitted output bound needs more room. */
  readonly reasoning: boolean;
};

/** The most a call can use. The output is bounded later, by the tokens that admission allows. */
export type Bound = {
  /** Most input tokens: at most the context window, where it is known, for each prompt or turn. */
  readonly inputTokens: number;
  /** Most units of everything else that is paid for: `{ web_searches: 5 }`. */
  readonly fees: Usage;
  /** undefined: the endpoint makes no output that is paid for (embeddings, rerank). */
  readonly output:
    | {
        /** Output tokens that the call asks for, or gets by default, for one choice. */
        readonly asked: number;
        /** Lowest bound that the API takes and that leaves room for the thinking that was asked for. */
        readonly least: number;
        /** Choices: the output is paid this many times. */
        readonly times: number;
        /**
         * False: the API's bound does not cover reasoning. The hold is then the model's maximum, and lowering the
         * bound saves no money.
         */
        readonly coversReasoning: boolean;
      }
    | undefined;
};

/** A field or tool whose cost is not known, as the caller wrote it, and why. */
export type Unbounded = { readonly param: string; readonly reason: string };

/** A call's bound, or the part of it that has none. */
export type Bounded = { readonly bound: Bound } | { readonly unbounded: Unbounded };

/** A call to be bounded, beside its body. */
export type CallFacts = {
  readonly path: string;
  /** Most tokens that the body's own text can make: its length as JSON in UTF-8, plus what the vendor adds. */
  readonly bytes: number;
  readonly facts: ModelFacts;
};

/** The usage that a stream or an answer reported in full. */
export type Reported = { readonly model: string | undefined; readonly usage: Usage };

/** Reads the usage of one stream, event by event. */
export type StreamReader = {
  /** One event's data (and its `event:` name if it has one), as text. */
  readonly event: (data: string, name: string | undefined) => void;
  /** After the last event: the usage, or undefined if the stream broke off before its end. */
  readonly end: () => Reported | undefined;
};

/** How the gateway meters an endpoint of a vendor: bounds before a call, usage after it. Made by `spendOf`. */
export type Spend = Metering & {
  /** The most a call can use under the vendor's rules, or the part of it that has no bound. */
  readonly bound: (body: JsonObject, call: CallFacts) => Bounded;
};

/**
 * How one dialect is metered, before the rules of the vendor that speaks it. It has no `bound`, so that nothing
 * can be planned without those rules (`underRules`).
 */
export type DialectSpend = Metering & {
  /**
   * The most that a body can use, or the part of it that has no bound. It judges by allow-lists: a field or tool
   * that it does not know is unbounded. One more of `bytes` is one more input token, until the window is full.
   */
  readonly boundBody: (body: JsonObject, call: CallFacts) => Bounded;
};

type Metering = {
  /** The model of a call, from body or path; undefined when it names none. */
  readonly model: (body: JsonObject, path: string) => string | undefined;
  /** Whether the answer will be a stream. */
  readonly streams: (body: JsonObject, path: string, query: string) => boolean;
  /** The body with the output bound under the API's one name for it, every other spelling removed. */
  readonly withOutputBound?: (body: JsonObject, tokens: number) => JsonObject;
  /**
   * The body with every field that changes the price set to the standard tier (`service_tier`…), where that is
   * harmless. A field that cannot be set is unbounded.
   */
  readonly atStandardPrice?: (body: JsonObject) => JsonObject;
  /** Request headers that change the price, in lower case: dropped under a cost limit. */
  readonly pricedHeaders?: readonly string[];
  /** For priced headers that hold a comma-separated list: the values that change no price and may stay. */
  readonly harmlessHeaderValues?: { readonly [header: string]: ReadonlySet<string> };
  /** A streamed call's body that asks for usage; undefined when it already does or cannot. */
  readonly askUsage?: (body: JsonObject) => JsonObject | undefined;
  /** Whether an event of the stream is there only because usage was asked for. */
  readonly isUsageEvent?: (data: string) => boolean;
  /** Usage of a whole answer, parsed. */
  readonly readAnswer: (answer: unknown) => Reported | undefined;
  /** Usage of a stream: server-sent events, JSON texts one a line, or one JSON array whose elements are the events. */
  readonly readStream?: () => StreamReader;
  /** Whether an error's body is the provider's own, not an intermediary's page. */
  readonly isOwnError: (answer: unknown) => boolean;
};

/** Usage without the counts that are 0, except input and output; undefined if a count is malformed (NaN). */
export function usageOf(counts: Usage): Usage | undefined {
  if (Object.values(counts).some(Number.isNaN)) return undefined;
  const always = ['input_tokens', 'output_tokens'];
  return Object.fromEntries(Object.entries(counts).filter(([unit, n]) => n > 0 || always.includes(unit)));
}
