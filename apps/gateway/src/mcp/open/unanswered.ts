import type { RpcId } from '../ids/rpc-id.ts';

/** The approximate memory of one id, without its text. */
const ID_OVERHEAD_BYTES = 64;
/** How much memory the ids of one stream may take. A POST has at most 100 requests, but its stream may belong to many POSTs. */
const IDS_MAX_BYTES = 128 * 1024;

/**
 * Why nothing waits for an answer to a request. `cancelled`: its client cancelled it and needs no answer. `listens`: it stays open until
 * its stream ends, and then gets an error like waiting requests. `doubtful`: a client cancelled it, perhaps a different one, or the answer
 * has its id as a string.
 */
type Unawaited = 'cancelled' | 'listens' | 'doubtful';

/** The requests that one stream still has to answer. */
export class UnansweredRequests {
  readonly #ids = new Set<RpcId>();
  readonly #unawaited = new Map<RpcId, Unawaited>();
  /** Some requests have no unique known id, so no answer can show that all are answered. */
  readonly #hasOthers: boolean;
  readonly #hadAny: boolean;
  #bytes = 0;
  #whenNone: (() => void)[] = [];

  /** @param requests their number, including those without an id or with a repeated id */
  constructor(ids: readonly RpcId[] = [], requests = ids.length) {
    this.add(ids);
    this.#hadAny = requests > 0;
    this.#hasOthers = this.#ids.size < requests;
  }

  /** The requests that get an error if the stream ends first. */
  get ids(): readonly RpcId[] {
    return [...this.#ids].filter((id) => this.#unawaited.get(id) !== 'cancelled');
  }

  /** The unanswered requests, including cancelled ones. */
  get size(): number {
    return this.#ids.size;
  }

  /** Whether there were requests, and each is answered or cancelled. */
  get areOver(): boolean {
    return this.#hadAny && !this.#hasOthers && this.ids.length === 0;
  }

  has(id: RpcId): boolean {
    return this.#ids.has(id);
  }

  get hasCancelled(): boolean {
    return [...this.#unawaited.values()].includes('cancelled');
  }

  /** Adds requests. Requests whose ids exceed the memory are not stored. */
  add(ids: readonly RpcId[]): void {
    for (const id of ids) {
      const bytes = id.length + ID_OVERHEAD_BYTES;
      if (this.#ids.has(id) || this.#bytes + bytes > IDS_MAX_BYTES) continue;
      this.#ids.add(id);
      this.#bytes += bytes;
    }
  }

  answered(ids: readonly (RpcId | undefined)[]): void {
    for (const id of ids) {
      if (id === undefined) continue;
      const number = numberIn(id);
      if (this.#ids.delete(id)) this.#bytes -= id.length + ID_OVERHEAD_BYTES;
      else if (number !== undefined && this.#ids.has(number) && !this.#unawaited.has(number))
        this.#unawaited.set(number, 'doubtful');
      this.#unawaited.delete(id);
    }
    this.#tell();
  }

  /** @returns whether the request is one of these */
  waitsNoMore(id: RpcId, why: Unawaited): boolean {
    if (!this.#ids.has(id)) return false;
    this.#unawaited.set(id, why);
    this.#tell();
    return true;
  }

  /** Resolves when nothing waits for an answer. */
  whenNone(): Promise<void> {
    if (this.#isAwaited) return new Promise((resolve) => this.#whenNone.push(resolve));
    return Promise.resolve();
  }

  get #isAwaited(): boolean {
    return this.#hasOthers || this.#ids.size > this.#unawaited.size;
  }

  #tell(): void {
    if (this.#isAwaited) return;
    for (const resolve of this.#whenNone.splice(0)) resolve();
  }
}

/**
 * The number in an id that is a string. Some servers answer 1 with "1". The official SDKs accept that as the answer (python-sdk pull 1720,
 * `Protocol` of the TypeScript SDK), and other clients keep waiting.
 */
const numberIn = (id: RpcId): RpcId | undefined => /^"(-?\d+)"$/.exec(id)?.[1];
