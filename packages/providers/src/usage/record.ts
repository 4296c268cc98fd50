/** As in `spend.ts`, which imports this file. */
type Usage = Readonly<Record<string, number>>;

/** The part of an answer, or of one event of a stream, that says something about the usage of its call. */
export type Statement = {
  readonly model?: string | undefined;
  /**
   * The counts that it states. A count that it leaves out is absent, which is not 0. `total_tokens` is input and output
   * together. Absent: it states none. `unreadable`: it states some that cannot be read in full at the standard price.
   */
  readonly usage?: Usage | 'unreadable';
  /**
   * The sums of the parts of its counts, such as text and pictures of the input, or results of searches. `UsageRecord` raises a count
   * that is below its sum. NaN: a part cannot be read.
   */
  readonly parts?: Usage | undefined;
  /** Other units that the answer shows: searches, pictures. They do not say that a usage was stated. */
  readonly fees?: Usage | undefined;
  /** Something that the model wrote, or a result of another kind, such as vectors. */
  readonly content?: Content | undefined;
  /** Names of its counts and parts that may cost money and are not counted. */
  readonly unknown?: readonly string[];
  /** It states 0 for counts that it stated before, and the dialect ignores these. */
  readonly zeroed?: boolean;
};

export type Content = 'written' | 'result';

/** The money in a vendor's own usage. Neither a model nor a holder can write into that object. */
export type StatedCost = {
  /** The bill for the call, in microdollars. Undefined: none is stated. NaN: the statement cannot be read. */
  readonly microusd?: number | undefined;
  /** The part of the price that each call has (`requests`), where it depends on the call. */
  readonly requestMicrousd?: number | undefined;
};

/** The usage that a stream or an answer reported in full. */
export type Reported = {
  readonly model: string | undefined;
  /** Undefined: it cannot be believed or may be incomplete, for the reason in `doubt`. */
  readonly usage: Usage | undefined;
  /** With a usage: the doubt was resolved by the larger count. */
  readonly doubt?: Doubt | undefined;
  /** The cost that the vendor itself states. Absent: none. */
  readonly stated?: StatedCost;
};

/**
 * Why a usage is in doubt.
 * - `falls`: a count is lower than the same answer stated before
 * - `twice`: one JSON object states it under one name twice
 * - `parts`: a count is lower than the parts of it that the same answer states
 * - `no_input`, `no_output`: it is 0 although there is content
 * - `model`: another model answered than the one that was called, and no price of it is known
 * - `unknown`: counts or parts of the answer, by name, may cost money and are not counted
 */
export type Doubt =
  | {
      readonly why: 'falls' | 'twice' | 'parts' | 'no_input' | 'no_output' | 'model';
      readonly names?: undefined;
    }
  | { readonly why: 'unknown'; readonly names: readonly string[] };

/** The report of an answer that states its usage under one name twice. */
export const STATED_TWICE: Reported = { model: undefined, usage: undefined, doubt: { why: 'twice' } };

/** More names of one answer are not kept. */
const MOST_NAMES = 8;
/** Names go to logs and metrics, so they are short and have no other characters. */
const IS_NAME = /^[A-Za-z][\w.]{0,79}$/;

/**
 * The usage of one answer, from everything that it states. Here the rules hold that are the same for all dialects:
 * - Within an answer no count falls. Two statements of one count mean the larger one, never the sum.
 * - A count is not below its parts. Otherwise it is what they sum to.
 * - Output is not 0 if the model wrote something.
 * - Input, with what was read from a cache, is not 0 if there is any content or output. An answer without both may be all zeros: it was
 *   refused, or is empty.
 * - A count or a part that is not known to be free makes the usage unknown.
 */
export class UsageRecord {
  readonly #isFree: (name: string) => boolean;
  readonly #counts = new Map<string, number>();
  readonly #parts = new Map<string, number>();
  readonly #unknown = new Set<string>();
  #model: string | undefined;
  #content: Content | undefined;
  #isReadable = false;
  #falls = false;
  #isZeroed = false;

  /** @param isFree whether a count or a part of this name costs nothing at the vendor */
  constructor(isFree: (name: string) => boolean) {
    this.#isFree = isFree;
  }

  /** The content that is known so far. */
  get content(): Content | undefined {
    return this.#content;
  }

  add({ model, usage, parts, fees, content, unknown, zeroed = false }: Statement): void {
    this.#model = model ?? this.#model;
    if (content !== undefined && this.#content !== 'written') this.#content = content;
    this.#isZeroed ||= zeroed;
    for (const name of unknown ?? NO_NAMES)
      if (this.#unknown.size < MOST_NAMES && !this.#isFree(name))
        this.#unknown.add(IS_NAME.test(name) ? name : 'other');
    for (const unit in fees) raise(this.#counts, unit, fees[unit]);
    const isWhole = parts === undefined || !isUnreadable(parts);
    if (isWhole) for (const unit in parts) raise(this.#parts, unit, parts[unit]);
    if (usage === undefined) return;
    // The last statement decides whether the usage can be read.
    this.#isReadable = usage !== 'unreadable' && isWhole;
    if (usage === 'unreadable' || !isWhole) return;
    for (const unit in usage) {
      const count = usage[unit] as number;
      this.#falls ||= count < (this.#counts.get(unit) ?? 0);
      raise(this.#counts, unit, count);
    }
  }

  /** Returns undefined if no usage was stated that can be read. */
  read(): Reported | undefined {
    if (!this.#isReadable) return undefined;
    const usage = this.#usage();
    const model = this.#model;
    const why = this.#contradiction(usage);
    if (why) return { model, usage: undefined, doubt: { why } };
    if (this.#unknown.size > 0)
      return { model, usage: undefined, doubt: { why: 'unknown', names: [...this.#unknown] } };
    if (this.#isZeroed) return { model, usage, doubt: { why: 'falls' } };
    return this.#isBelowParts() ? { model, usage, doubt: { why: 'parts' } } : { model, usage };
  }

  #isBelowParts(): boolean {
    for (const [unit, sum] of this.#parts) if (sum > (this.#counts.get(unit) ?? 0)) return true;
    return false;
  }

  /** Tokens that only the total contains are output: Gemini, for one, does not count its thoughts as completion. */
  #usage(): Usage {
    const usage: Record<string, number> = {};
    for (const [unit, count] of this.#counts)
      if (unit !== TOTAL && (count > 0 || ALWAYS.includes(unit))) usage[unit] = count;
    for (const [unit, sum] of this.#parts)
      if (sum > (usage[unit] ?? 0) || ALWAYS.includes(unit)) usage[unit] = Math.max(sum, usage[unit] ?? 0);
    const beyond = (this.#counts.get(TOTAL) ?? 0) - (usage.input_tokens ?? 0);
    if (usage.output_tokens !== undefined) usage.output_tokens = Math.max(usage.output_tokens, beyond);
    return usage;
  }

  #contradiction(usage: Usage): 'falls' | 'no_input' | 'no_output' | undefined {
    if (this.#falls) return 'falls';
    const { input_tokens: input, output_tokens: output } = usage;
    if (this.#content === 'written' && output === 0) return 'no_output';
    if (this.#content === undefined && !output) return undefined;
    const isPaidOtherwise =
      input === undefined && Object.keys(usage).some((unit) => !unit.endsWith('_tokens'));
    return input || isPaidOtherwise ? undefined : 'no_input';
  }
}

const raise = (counts: Map<string, number>, unit: string, count = 0): void =>
  void counts.set(unit, Math.max(count, counts.get(unit) ?? 0));

function isUnreadable(counts: Usage): boolean {
  for (const unit in counts) if (Number.isNaN(counts[unit])) return true;
  return false;
}

const NO_NAMES: readonly string[] = [];
const TOTAL = 'total_tokens';
/** Units that are kept at 0. Without a count of cached sound and pictures, they may be any part of what was cached. */
const ALWAYS: readonly string[] = [
  'input_tokens',
  'output_tokens',
  'cache_audio_read_tokens',
  'cache_image_read_tokens',
];
