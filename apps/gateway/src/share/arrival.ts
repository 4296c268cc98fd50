import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Chunks } from './body-memory.ts';
import { newTurns, type Turn } from './turns.ts';

/**
 * All requests of a process share its event loop, so they share these turns. Answers have turns of their own: a URL is refused while many
 * of its answers wait, and its bodies must not count as such.
 */
const turns = newTurns();

/** Owns the turn of all refused requests together. */
const REFUSED = '';
/** Other URLs have more of the time than refused requests. */
const REFUSED_TIMES = 2;

/** Node calls back for each chunk, however short it is. That takes some microseconds, as long as reading this many bytes. */
const CHUNK_BYTES = 256;
/** Node reads at most this much of a connection at a time. */
const READ_BYTES = 64 * 1024;
/** A refusal waits no longer for its turn. */
const REFUSAL_MS = 1_000;

const arrivals = new WeakMap<IncomingMessage, Arrival>();

/**
 * Reads the body of a request in turns with those of other URLs, and not before the gateway needs it. Its connection is
 * not read meanwhile, so the rest of the body waits at its sender. It must begin before the body is read in another way.
 * @param grantId whose turn it is. Requests without a grant share one turn with all refused requests.
 */
export function arriveInTurns(request: IncomingMessage, grantId = REFUSED): void {
  // A whole body is in memory already.
  if (!request.complete && !arrivals.has(request)) arrivals.set(request, new Arrival(request, grantId));
}

/** The body of a request, in turns if it arrives in turns. */
export const bodyOf = (request: IncomingMessage): Readable => arrivals.get(request) ?? request;

/** Forgets the rest of a body while it arrives. All refused requests together have one turn. */
export function forgetBody(request: IncomingMessage): void {
  if (!request.complete && !request.destroyed) arriveInTurns(request);
  arrivals.get(request)?.forget();
  request.resume();
}

/** Resolves when refused requests may take the time for this many bytes more. */
export function turnOfRefused(bytes: number): Promise<void> | undefined {
  const turn = turns.of(REFUSED);
  return turn.take(REFUSED_TIMES * bytes) ? undefined : new Promise((resolve) => turn.next(resolve));
}

/** Resolves when a refused request has its turn, so that a URL that repeats it is slowed. Waits for at most a second. */
export function refusalTurn(request: IncomingMessage): Promise<void> | undefined {
  return arrivals.get(request)?.nextTurn();
}

/** A body on its way in. */
class Arrival extends Readable {
  readonly #request: IncomingMessage;
  #turn: Turn;
  #costTimes: number;
  readonly #chunks = new Chunks();
  #cost = 0;
  /** Taken from the turn before a read. */
  #paid = 0;
  #isFlushing = false;
  #isReading = true;
  #isResuming = false;
  #isWanted = false;
  #isTurn = true;
  #isForgotten = false;
  readonly #waiting: (() => void)[] = [];

  constructor(request: IncomingMessage, grantId: string) {
    super({ highWaterMark: READ_BYTES });
    this.#request = request;
    this.#turn = turns.of(grantId);
    this.#costTimes = grantId === REFUSED ? REFUSED_TIMES : 1;
    this.#noteResumed();
    const begun = request.read() as Buffer | null;
    const end = request.push.bind(request, null);
    // Node's parser hands each chunk to `push`. Events come later, and a kilobyte is kept for each chunk until then.
    request.push = (chunk: Buffer | null) => {
      if (chunk) this.#take(chunk);
      else this.#end();
      return chunk ? true : end();
    };
    request.once('close', () => {
      if (!request.complete) this.destroy(new Error('the body broke off'));
    });
    // Without a listener an error would end the process.
    this.on('error', () => {});
    request.resume();
    if (begun) this.#take(begun);
  }

  override _read(): void {
    this.#isWanted = true;
    this.#steer();
  }

  forget(): void {
    this.#isForgotten = true;
    this.#costTimes = REFUSED_TIMES;
    this.#turn = turns.of(REFUSED);
    this.#isWanted = true;
    this.resume();
    this.#steer();
  }

  nextTurn(): Promise<void> | undefined {
    if (this.#isFlushing) this.#flush();
    if (this.#isTurn) return undefined;
    return new Promise((resolve) => {
      const late = setTimeout(resolve, REFUSAL_MS);
      this.#waiting.push(() => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #take(chunk: Buffer): void {
    this.#cost += chunk.length + CHUNK_BYTES;
    if (!this.#isForgotten && !this.destroyed) this.#chunks.push(chunk);
    // Without this Node would read 32 times before anything else runs.
    if (this.#cost >= READ_BYTES) this.#setReading(false);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => this.#flush());
  }

  /** Passes on everything that has arrived, and pays for it. */
  #flush(): void {
    if (!this.#isFlushing) return;
    this.#isFlushing = false;
    for (const part of this.#chunks.take())
      if (!this.#isForgotten && !this.destroyed && !this.push(part)) this.#isWanted = false;
    const isTurn = this.#turn.take(this.#costTimes * this.#cost - this.#paid);
    this.#cost = 0;
    this.#paid = 0;
    if (!isTurn && this.#isTurn) this.#awaitTurn();
    this.#steer();
  }

  #end(): void {
    this.#flush();
    if (!this.destroyed) this.push(null);
  }

  #awaitTurn(): void {
    this.#isTurn = false;
    this.#turn.next(() => {
      this.#isTurn = true;
      if (!this.#request.complete && !this.#request.destroyed) {
        this.#turn.take(READ_BYTES);
        this.#paid = READ_BYTES;
        this.#steer();
      }
      for (const go of this.#waiting.splice(0)) go();
    });
  }

  /** Reads the connection, or lets it wait. */
  #steer(): void {
    this.#setReading(this.#isTurn && (this.#isWanted || this.destroyed));
  }

  #setReading(isReading: boolean): void {
    const { complete, socket } = this.#request;
    // After the body the connection belongs to the next request.
    if (complete || isReading === this.#isReading || (!isReading && this.#isResuming)) return;
    this.#isReading = isReading;
    if (!isReading) return void socket.pause();
    this.#noteResumed();
    socket.resume();
  }

  /** Node resumes a socket a tick later, also if it is paused meanwhile. So it may be paused only after that. */
  #noteResumed(): void {
    this.#isResuming = true;
    process.nextTick(() =>
      process.nextTick(() => {
        this.#isResuming = false;
        if (!this.#isFlushing) this.#steer();
      }),
    );
  }
}
