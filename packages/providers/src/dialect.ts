import type { Spend } from './spend.ts';

/**
 * One setting of an API as `config` and holders may spell it.
 */
export type Setting = {
  /**
   * Where the API keeps it: names that lead into the JSON body.
   * undefined: the endpoint has no such setting, so `config` leaves it out (an output bound
   * on a call that only counts tokens would be refused by the provider, and bounds nothing).
   */
  at: readonly [string, ...string[]] | undefined;
  /** Top-level names that mean it, in `config` and in what holders send. */
  names: readonly string[];
  /** Top-level fields of a holder's body that would override it: removed when `config` sets it. */
  rivals?: readonly string[];
  /** The API takes a list only: one string becomes a list of one. */
  list?: true;
};

/** For APIs that name the model in the path: which segments do, and where the body repeats it. */
export type ModelInPath = {
  /** Segments after which the model's segment follows; the first is meant when `config` names none. */
  collections: readonly [string, ...string[]];
  /** Fields that repeat the model, replaced where present; `[]` stands for each element of a list. */
  repeatedAt: readonly (readonly string[])[];
  /** The model's segment ends in `:method`, and the body repeats it as `models/name`, as Google's APIs do. */
  withMethod: boolean;
};

/**
 * What an API's endpoint looks like to us: a small module of facts, no code per call.
 * Providers share dialects; see `providers/` for who speaks which on what path.
 */
export type Dialect = {
  id: string;
  settings: readonly Setting[];
  modelInPath?: ModelInPath;
  /** How its calls are bounded and metered; absent: nothing may be spent on it under a cost limit. */
  spend?: Spend;
  /**
   * The API reads protocol-buffer JSON, which knows every field by two names
   * (`generationConfig`, `generation_config`): both are taken for one.
   * https://protobuf.dev/programming-guides/json/#field-names
   * Given are the fields below which names are the caller's own, such as a schema's.
   */
  protoJson?: { callersOwn: readonly string[] };
};

/** A JSON object as parsed. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a parsed value is a JSON object (not an array, not null). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The one form under which two spellings of a field are compared. */
export function fieldName(dialect: Dialect | undefined, name: string): string {
  if (dialect?.protoJson === undefined || !name.includes('_')) return name;
  return name.replace(/(?<=[^_])_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
