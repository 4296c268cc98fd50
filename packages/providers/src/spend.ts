import type { JsonObject } from './dialect.ts';

/**
 * What was or can be used, in the units that prices are given for: `input_tokens` (all input, cached too),
 * `cache_read_tokens`, `cache_write_tokens`, `cache_write_1h_tokens`, `input_audio_tokens`, `output_tokens` (all output,
 * reasoning too), `output_reasoning_tokens`, `output_audio_tokens`, `web_searches`… The names are those of
 * @pydantic/genai-prices.
 */
export type Usage = Readonly<Record<string, number>>;

/** What must be known of a model to bound a call; undefined where it is not. */
export type ModelFacts = {
  /** Tokens of input and output together. */
  readonly contextWindow: number | undefined;
  readonly maxOutput: number | undefined;
  /** It thinks before it answers, so an omitted output bound needs more room. */
  readonly reasoning: boolean;
};

/** The most a call can use, but for its output, which is still to be bounded. */
export type Bound = {
  /** Most input tokens, already at most the context window where that is known, for each prompt or turn. */
  readonly inputTokens: number;
  /** Other things that are paid for, at their most: `{ web_searches: 5 }`. */
  readonly fees: Usage;
  /** Undefined: the endpoint makes no output that is paid for (embeddings, rerank). */
  readonly output:
    | {
        /** Output tokens the call asks for, or gets by default, of one choice. */
        readonly asked: number;
        /** Lowest bound that the API takes and that leaves room for what was asked to think. */
        readonly least: number;
        /** Choices: output is paid this many times. */
        readonly times: number;
        /**
         * False: the API's bound does not cover reasoning, so the hold must be the model's maximum and the
         * bound cannot be lowered to save money.
         */
        readonly coversReasoning: boolean;
      }
    | undefined;
};

/** A field or tool whose cost is not known, as the caller wrote it, and why. */
export type Unbounded = { readonly param: string; readonly reason: string };

/** What a stream or an answer said of usage; undefined when it did not say it in full. */
export type Reported = { readonly model: string | undefined; readonly usage: Usage };

/** Reads the usage of one stream, event by event. */
export type StreamReader = {
  /** One event's data (and its `event:` name if it has one), as text. */
  readonly event: (data: string, name: string | undefined) => void;
  /** After the last event: the usage, only if the stream said its last word. */
  readonly end: () => Reported | undefined;
};

/** What a dialect knows of spending: bounds before a call, usage after it. */
export type Spend = {
  /** The model of a call, from body or path; undefined when it names none. */
  readonly model: (body: JsonObject, path: string) => string | undefined;
  /** Whether the answer will be a stream. */
  readonly streams: (body: JsonObject, path: string, query: string) => boolean;
  /**
   * The most a call can use, or what about it has no bound. Allow-lists: a field or tool it does not know is
   * unbounded.
   * @param bytes length of the body as JSON in UTF-8
   */
  readonly bound: (
    body: JsonObject,
    call: { readonly path: string; readonly bytes: number; readonly facts: ModelFacts },
  ) => { readonly bound: Bound } | { readonly unbounded: Unbounded };
  /** The body with the output bound under the API's one name for it, every other spelling removed. */
  readonly withOutputBound?: (body: JsonObject, tokens: number) => JsonObject;
  /**
   * The body with what changes the price set to the standard tier (`service_tier`…), where forcing is harmless;
   * what cannot be forced is unbounded.
   */
  readonly atStandardPrice?: (body: JsonObject) => JsonObject;
  /** Request headers that change the price: dropped under a spend limit (lower case). */
  readonly pricedHeaders?: readonly string[];
  /** Of a priced header that holds a comma-separated list: the values that change no price and may stay. */
  readonly harmlessHeaderValues?: { readonly [header: string]: ReadonlySet<string> };
  /** A streamed call's body that asks for usage; undefined when it does already or cannot. */
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
