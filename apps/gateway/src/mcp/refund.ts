import { isJsonObject, isModest } from '@presign/schema';
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  type Message,
  MODEST,
  PARSE_ERROR,
} from './messages.ts';
import type { Charged } from './price.ts';

/** With these a server says that it did not run a request (JSON-RPC 2.0 §5.1). */
const NOT_RUN: ReadonlySet<unknown> = new Set([
  PARSE_ERROR,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  INVALID_PARAMS,
]);

/** Uses and cost of requests. */
export type Amount = { readonly uses: number; readonly costMicrousd: number };

export const NOTHING: Amount = { uses: 0, costMicrousd: 0 };

/** Which of a POST's charged requests surely did not run, as its own answer tells. */
export class UnrunRequests {
  readonly #waiting: Map<string, Charged>;
  readonly #all: Amount;
  readonly #isAlone: boolean;
  #unrun: Amount = NOTHING;

  /** @param sent all messages of the POST, free ones too */
  constructor(charged: readonly Charged[], sent: readonly Message[] = charged.map(({ message }) => message)) {
    const ids = sent.map(({ id }) => id);
    // What is said of an id that stands twice may be said of either.
    const distinct = charged.filter(({ message: { id } }) => ids.indexOf(id) === ids.lastIndexOf(id));
    this.#waiting = new Map(distinct.map((each) => [JSON.stringify(each.message.id), each]));
    this.#isAlone = sent.length === 1;
    this.#all = {
      uses: charged.length,
      costMicrousd: charged.reduce((sum, each) => sum + each.costMicrousd, 0),
    };
  }

  /** Everything that was charged. */
  get all(): Amount {
    return this.#all;
  }

  /** What is known by now not to have run. */
  get unrun(): Amount {
    return this.#unrun;
  }

  /** Whether all that could be told has been told, and some of it did not run. */
  get isDone(): boolean {
    return this.#unrun.uses > 0 && this.#waiting.size === 0;
  }

  /** Takes note of an answer: a JSON-RPC message, or a batch of them, as text. */
  see(text: string): void {
    if (this.#waiting.size === 0) return;
    const value = parse(text);
    for (const message of Array.isArray(value) ? value : [value]) this.#note(message);
  }

  #note(message: unknown): void {
    if (!isJsonObject(message) || (message.result === undefined && message.error === undefined)) return;
    const meant = this.#meant(message.id);
    if (!meant) return;
    this.#waiting.delete(JSON.stringify(meant.message.id));
    if (!isJsonObject(message.error) || !NOT_RUN.has(message.error.code)) return;
    this.#unrun = {
      uses: this.#unrun.uses + 1,
      costMicrousd: this.#unrun.costMicrousd + meant.costMicrousd,
    };
  }

  /** What could not be read has no id (JSON-RPC 2.0 §5): that tells of a message only where it came alone. */
  #meant(id: unknown): Charged | undefined {
    // The answer to what has no id has none either, but so has many a server's complaint about something else.
    if (id === undefined) return undefined;
    if (id !== null) return this.#waiting.get(JSON.stringify(id));
    return this.#isAlone ? [...this.#waiting.values()][0] : undefined;
  }
}

/** Up to so many characters, parsing is over at once, whatever they are. */
const SHORT_CHARS = 16_000;

function parse(text: string): unknown {
  if (text.length > SHORT_CHARS && !isModest(Buffer.from(text), MODEST)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
