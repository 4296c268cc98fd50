import type { LeftOut, TextPlaces } from '@presign/schema';
import type { ModelPrice } from './facts/rates.ts';
import type { JsonObject } from './json.ts';
import type { Reported, Statement } from './usage/record.ts';

/**
 * Amounts that were used or can be used, in the units of @pydantic/genai-prices: `input_tokens` (all input, cached input
 * included), `cache_read_tokens`, `cache_write_tokens`, `cache_write_1h_tokens`, `input_audio_tokens`,
 * `output_tokens` (all output, reasoning included), `output_reasoning_tokens`, `output_audio_tokens`, `web_searches`…
 */
export type Usage = Readonly<Record<string, number>>;

/** The most tokens of a text, whatever stands before and after it. */
export type CountTokens = (text: string) => number;

/** How far the most tokens of a text are below one for each byte of its JSON. */
export type SavedTokens = (text: string | LeftOut) => number;

/** The facts about a model that a bound needs. A fact that is not known is undefined. */
export type ModelFacts = {
  /** Tokens of input and output together. */
  readonly contextWindow: number | undefined;
  readonly maxOutput: number | undefined;
  /** The model thinks before it answers, so a call without an output bound gets a larger one. */
  readonly reasoning: boolean;
};

/** The most that a call can use. Admission may lower the output. */
export type Bound = {
  /** Most input tokens: at most the context window, if it is known, for each prompt or turn. */
  readonly inputTokens: number;
  /**
   * The least input tokens, if the model reads its input once, so that a stream can state all of it at its start. A statement of fewer
   * is not true. Absent: it may read it more than once, or the dialect does not know.
   */
  readonly leastInput?: number;
  /** Nothing in the body asks for a cache that lasts longer than five minutes. Absent: something may. */
  readonly isShortCache?: true;
  /** Most units of everything else that is billed: `{ web_searches: 5 }`. */
  readonly fees: Usage;
  /** Undefined if the endpoint has no output that is billed (embeddings, rerank). */
  readonly output:
    | {
        /** Output tokens of one choice that the call asks for, or gets by default. */
        readonly asked: number;
        /** The lowest bound that the API takes and that covers the requested thinking. */
        readonly least: number;
        /** The number of choices. Each is billed. */
        readonly times: number;
        /**
         * False if the API's bound does not cover reasoning. The hold is then the model's maximum, and a lower bound
         * saves no money.
         */
        readonly coversReasoning: boolean;
      }
    | undefined;
};

/** A field or tool that has no bound, as the caller wrote it, and the reason. */
export type Unbounded = {
  readonly param: string;
  readonly reason: string;
  /** No list has it, so an operator may declare it harmless. Otherwise it is known to have a fee or no maximum. */
  readonly isUnknown?: true;
  /** Its name among the names of places, where `param` is a place of betas. */
  readonly beta?: string;
};

/** A call's bound, or the part of the call that has none. */
export type Bounded = { readonly bound: Bound } | { readonly unbounded: Unbounded };

/** The facts about a call that its body does not contain. */
export type CallFacts = {
  readonly path: string;
  /** Most tokens of the body's own text: its length as JSON in UTF-8, plus the tokens that the vendor adds. */
  readonly bytes: number;
  readonly facts: ModelFacts;
  /** Counts plain text in the encoding of the model. Absent: each of its bytes is a token. */
  readonly saved?: SavedTokens | undefined;
};

/** Headers by their names in lower case, as Node has them. */
export type CallHeaders = { readonly [name: string]: string | readonly string[] | undefined };

/** Facts of a request that the reader of its answer needs. */
export type RequestFacts = {
  /** The answer repeats the prompt, so text in it need not be written by the model. */
  readonly echoes?: boolean | undefined;
};

/** Reads what one stream states, event by event, in the words of its dialect. */
export type EventReader = {
  /**
   * Whether an event, by its bytes, may state counts, or what else decides how the stream ends. The rest of a stream, nearly all of
   * it, need not be parsed. Absent: every event may.
   */
  readonly matters?: (event: Buffer) => boolean;
  /** Whether an event, by its bytes, may hold what the model wrote. It is asked until some is found. Absent: every event may. */
  readonly mayBeWritten?: (event: Buffer) => boolean;
  /** Takes one event's data as text, and its `event:` name if it has one. Returns what the event states. */
  readonly event: (data: string, name: string | undefined) => Statement | undefined;
  /** Whether the stream has stated its whole input, and is not at the end of its output. */
  readonly statesInput?: () => boolean;
  /** Whether the stream has ended, and stated its usage there. */
  readonly isWhole: () => boolean;
};

/** Reads the usage of one stream, event by event. */
export type StreamReader = {
  /** As in `EventReader`, for everything that the usage needs. Absent: every event may matter. */
  readonly matters?: (event: Buffer) => boolean;
  readonly event: (data: string, name: string | undefined) => void;
  /** Returns the usage of the whole input once the stream has stated it, before its output. */
  readonly input?: () => Usage | undefined;
  /** Returns, after the last event, the usage. Undefined if the stream broke off before its end. */
  readonly end: () => Reported | undefined;
};

/** How the gateway meters an endpoint of a vendor: bounds before a call, usage after it. `spendOf` creates it. */
export type Spend = Metering & {
  /** Usage of a whole answer, parsed. */
  readonly readAnswer: (answer: unknown, request?: RequestFacts) => Reported | undefined;
  /** Usage of a stream: server-sent events, JSON texts one a line, or one JSON array whose elements are the events. */
  readonly readStream?: (request?: RequestFacts) => StreamReader;
  /** The most that a call can use under the vendor's rules, or the part of it that has no bound. */
  readonly bound: (body: JsonObject, call: CallFacts) => Bounded;
  /** The first beta of a call's headers that may change a price, or that no list has. */
  readonly refusedBeta: (headers: CallHeaders) => Unbounded | undefined;
  /** The body with the price that its bound was paid at as the highest that the vendor may take. */
  readonly withHighestPrice?: (body: JsonObject, rates: ModelPrice) => JsonObject;
};

/**
 * How one dialect is metered, before the rules of the vendor that speaks it. It has no `bound`, so that no call can be
 * planned without those rules (`underRules`).
 */
export type DialectSpend = Metering & {
  /** The field of a body that lists betas, next to the headers of betas. */
  readonly betasAt?: readonly string[];
  /**
   * The most that a body can use, or the part of it that has no bound. It judges by allow-lists: an unknown field or
   * tool is unbounded. Each of `bytes` is one input token, until the window is full.
   */
  readonly boundBody: (body: JsonObject, call: CallFacts) => Bounded;
  /** The statement of a whole answer, parsed. */
  readonly readAnswer: (answer: unknown) => Statement | undefined;
  /** Reads what a stream states. */
  readonly readStream?: () => EventReader;
};

type Metering = {
  /**
   * Texts of a body of which a bound reads no more than their length. A long one may be left out (`LeftOut`), and a rule that asks for a
   * text finds none there. Absent: every text is read.
   */
  readonly unreadTexts?: TextPlaces;
  /** The fields without which no call is served and none has a bound. Absent: a call without any has one. */
  readonly least?: JsonObject;
  /** The model of a call, from its body or path. Undefined if the call names no model. */
  readonly model: (body: JsonObject, path: string) => string | undefined;
  /** Whether the answer will be a stream. */
  readonly streams: (body: JsonObject, path: string, query: string) => boolean;
  /** The body with the output bound under the API's one name for it, every other spelling removed. */
  readonly withOutputBound?: (body: JsonObject, tokens: number) => JsonObject;
  /**
   * The body at the standard tier: every field that changes the price (`service_tier`…) is set or removed. A field
   * that cannot be set is unbounded.
   */
  readonly atStandardPrice?: (body: JsonObject) => JsonObject;
  /** Request headers that change the price, in lower case: dropped under a cost limit. */
  readonly pricedHeaders?: readonly string[];
  /** The body of a streamed call that asks for usage. Undefined if it already asks, or cannot ask. */
  readonly askUsage?: (body: JsonObject) => JsonObject | undefined;
  /** Why a streamed call must not ask for usage, so that it reports none. Undefined: it may ask. */
  readonly refusesAsking?: (body: JsonObject, query: string) => Unbounded | undefined;
  /** Whether an event of the stream exists only because the call asked for usage. */
  readonly isUsageEvent?: (data: string) => boolean;
  /** Whether the answer to a body repeats the prompt. Absent: none does. */
  readonly echoes?: (body: JsonObject) => boolean;
  /** Whether an error's body is the provider's own, not an intermediary's page. */
  readonly isOwnError: (answer: unknown) => boolean;
};

/** The counts, or `unreadable` if one is malformed (NaN). */
export const countsRead = (counts: Usage): Usage | 'unreadable' =>
  Object.values(counts).some(Number.isNaN) ? 'unreadable' : counts;
