import type { DialectSpend } from './spend.ts';

/**
 * The facts about one endpoint of an API, without code per call.
 * Vendors share dialects. `vendors/` says which vendor has which dialect on which path.
 */
export type Dialect = {
  id: string;
  settings: readonly Setting[];
  modelInPath?: ModelInPath;
  /** How its calls are bounded and metered. Absent: the endpoint is refused under a cost limit. */
  spend?: DialectSpend;
  /** Fields that the gateway adds to a body before planning. The code that adds them has judged the holder's fields. */
  addedFields?: readonly string[];
  /** The form of its errors. Absent: OpenAI's. */
  errors?: ErrorShape;
  /**
   * The API reads protocol-buffer JSON, which has two names for every field
   * (`generationConfig`, `generation_config`): both are one field.
   * https://protobuf.dev/programming-guides/json/#field-names
   * `callersOwn` lists the fields below which the caller chooses the names, such as a schema's.
   */
  protoJson?: { callersOwn: readonly string[] };
};

/** A refusal of the gateway, before it gets the form of an API's errors. */
export type PlainError = {
  readonly status: number;
  readonly code: string;
  /** Contains the code, because some SDKs drop every other field. */
  readonly message: string;
  /** The class of the error, as OpenAI names it. */
  readonly type: string;
  /** The field at fault, as the caller wrote it. */
  readonly param: string | null;
  readonly requestId: string;
  readonly details: Readonly<Record<string, unknown>>;
};

/** Writes a refusal as an API writes its own errors. Returns a body to serialize as JSON. */
export type ErrorShape = {
  (error: PlainError): object;
  /** The status for a URL that is no longer valid, in place of 401, which agents of the API repeat. */
  readonly ofDeadUrl?: 403;
};

/** One setting of an API, as `config` and holders may spell it. */
export type Setting = {
  /**
   * Where the API keeps it: names that lead into the JSON body.
   * undefined: the endpoint has no such setting, so `config` leaves it out. A provider would refuse an
   * output bound on a call that only counts tokens, and it would bound nothing.
   */
  at: readonly [string, ...string[]] | undefined;
  /** Top-level names that mean it, in `config` and in the holder's body. */
  names: readonly string[];
  /** Top-level fields of a holder's body that would override it: removed when `config` sets it. */
  rivals?: readonly string[];
  /** The API takes only a list, so a single string becomes a list of one. */
  list?: true;
};

/** For APIs that name the model in the path: its segments, and the fields of the body that repeat it. */
export type ModelInPath = {
  /** The model's segment follows one of these; the first is used when `config` names none. */
  collections: readonly [string, ...string[]];
  /** Fields that repeat the model, replaced where present; `[]` stands for each element of a list. */
  repeatedAt: readonly (readonly string[])[];
  /** The model's segment ends in `:method`, and the body repeats it as `models/name`, as Google's APIs do. */
  withMethod: boolean;
};

/** Names in use for a setting, whatever the API: `config` may use any of them. */
export const NAMES = {
  model: ['model'],
  outputBound: ['max_tokens', 'max_completion_tokens', 'max_output_tokens'],
  temperature: ['temperature'],
  topP: ['top_p'],
  topK: ['top_k'],
  stop: ['stop', 'stop_sequences'],
  count: ['n', 'candidate_count'],
  seed: ['seed', 'random_seed'],
  presencePenalty: ['presence_penalty'],
  frequencyPenalty: ['frequency_penalty'],
} as const;

/**
 * The model, where the body names it.
 * `models` (https://openrouter.ai/docs/features/model-routing) and `fallbacks` (Anthropic) name other models that
 * the provider may use instead.
 */
export const MODEL: Setting = { at: ['model'], names: NAMES.model, rivals: ['models', 'fallbacks'] };

/** For endpoints that write no text: the settings that shape output are left out. */
export const NO_OUTPUT: readonly Setting[] = [
  NAMES.outputBound,
  NAMES.temperature,
  NAMES.topP,
  NAMES.topK,
  NAMES.stop,
  NAMES.count,
  NAMES.seed,
  NAMES.presencePenalty,
  NAMES.frequencyPenalty,
].map((names) => ({ at: undefined, names }));

/** The form of a field's name in which two spellings are equal. */
export function fieldName(dialect: Dialect | undefined, name: string): string {
  if (dialect?.protoJson === undefined || !name.includes('_')) return name;
  return name.replace(/(?<=[^_])_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
