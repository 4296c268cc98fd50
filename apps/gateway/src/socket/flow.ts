import type { Refusal } from '@presign/schema';
import { WebSocket } from 'ws';
import type { BodyMemory } from '../share/body-memory.ts';
import { msOfWork, type QuotaOwner, type ReadQuota } from '../share/read-quota.ts';
import { type End, FULL, NO_ROOM } from './dialects/end.ts';
import { watchExcess } from './framing.ts';
import { Unfinished } from './unfinished.ts';

/** The most bytes that may wait for a peer before the other side is paused. */
const HIGH_BYTES = 256 * 1024;
/** The longest head of a frame (RFC 6455 §5.2). */
const HEAD_BYTES = 14;
/** Answers to pings, and events on the fast path, wait for a peer that reads. */
const SMALL_BYTES = 16 * 1024;
/** The cost of a control frame, and of a message in addition to its bytes. One URL may send 2,048 of either a second. */
const FRAME_WORK = 8 * 1024;
/** A socket with a larger debt gets no answers to its pings. One read may contain ten thousand pings. */
const ANSWERED_WORK = 32 * FRAME_WORK;
/** A peer that has not answered for this many heartbeats counts as gone. */
const MISSED_MAX = 2;
/** The most fast-path events before other work gets the event loop. One read may contain a thousand. */
const MOST_AT_ONCE = 32;

const SIDES = ['holder', 'upstream'] as const;
type Side = (typeof SIDES)[number];
type Sides = Readonly<Record<Side, WebSocket>>;

/** The receiver of a socket's messages. */
export type Taker = {
  /** Takes a message of the holder. The next one waits for it. */
  readonly take: (frame: Buffer, isBinary: boolean) => Promise<void>;
  /** Whether a message of the holder is forwarded unchanged and at once. */
  readonly passes: (frame: Buffer) => boolean;
  /** Takes a message of the upstream. */
  readonly hear: (frame: Buffer) => void;
  /** Refuses a message of the holder, which is dropped. */
  readonly refuse: (refusal: Refusal, frame: Buffer) => void;
  /** Called when a message of the holder cannot be read to its end. */
  readonly unread: (end: End) => void;
};

type FlowDeps = { readonly readQuota: ReadQuota; readonly bodyMemory: BodyMemory };

/**
 * Passes the messages of a socket: the holder's one at a time and in order, and the upstream's as fast as the holder reads.
 *
 * A side is read unless something makes it wait, and only `#readOn` resumes it. The holder waits for its message in progress and for the
 * read quota. It waits forever if there is no memory for its message. The upstream waits for a holder that does not read, and for the quota
 * if its events draw on it. A paused side adds at most the rest of one read. Pings and pongs beyond the quota are a debt of this socket and
 * not of its URL, so a flood pauses its own socket. After the gateway's close frame, messages are dropped unread and count in the same way.
 *
 * It creates nothing that an idle socket does not need, because a gateway has thousands of them.
 */
export class Flow {
  readonly #deps: FlowDeps;
  readonly #owner: QuotaOwner;
  readonly #sides: Sides;
  readonly #taker: Taker;
  readonly #unfinished: Unfinished;
  #waiting: { readonly frame: Buffer; readonly isBinary: boolean }[] | undefined;
  readonly #missed = { holder: 0, upstream: 0 };
  readonly #buffered = { holder: 0, upstream: 0 };
  #atOnce = 0;
  #isFull = false;
  /** Until this wait is over, no message of the holder and no event that draws on the quota is read. */
  #wait: NodeJS.Timeout | undefined;
  /** Work beyond the quota, for which this socket waits additionally. */
  #owed = 0;
  /** Continues with the waiting messages. */
  #goOn: (() => void) | undefined;

  constructor(deps: FlowDeps, owner: QuotaOwner, { holder, upstream }: Sides, taker: Taker) {
    this.#deps = deps;
    this.#owner = owner;
    this.#sides = { holder, upstream };
    this.#taker = taker;
    for (const side of SIDES)
      this.#sides[side]
        // A close follows each error.
        .on('error', ignore)
        .on('ping', (data: Buffer) => this.#pinged(side, data))
        .on('pong', () => this.#heardUnpaid(side, FRAME_WORK));
    this.#unfinished = new Unfinished(holder, deps.bodyMemory, owner.id, () => this.#full());
    watchExcess(holder, (end) => {
      deps.readQuota.take(owner, FRAME_WORK);
      taker.unread(end);
    });
    holder.on('message', (frame: Buffer, isBinary) => this.#got(frame, isBinary));
    upstream.on('message', (frame: Buffer) => {
      this.#missed.upstream = 0;
      taker.hear(frame);
    });
  }

  /** Sends to the holder. While the holder does not read, the upstream is paused. */
  toHolder(frame: Buffer): void {
    const { holder, upstream } = this.#sides;
    if (holder.readyState !== WebSocket.OPEN) return;
    const isSlow = holder.bufferedAmount + frame.length + HEAD_BYTES >= HIGH_BYTES;
    holder.send(frame, TO_HOLDER, isSlow ? () => this.#readOn() : undefined);
    if (isSlow && holder.bufferedAmount >= HIGH_BYTES) upstream.pause();
  }

  /** Resolves when the system has the bytes. */
  toUpstream(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#sides.upstream.send(frame, TO_UPSTREAM, () => resolve()));
  }

  /**
   * Charges free work of a side to the read quota. If the quota is used up, that side is read at the pace of the quota. The holder always
   * is, because the upstream may be answering the holder's events.
   */
  draw(side: Side, work: number): void {
    this.#deps.readQuota.take(this.#owner, work);
    this.#slowDown(side);
  }

  /** Accepts nothing more from a holder who has disconnected. */
  drop(): void {
    if (this.#waiting) this.#waiting.length = 0;
    this.#unfinished.release();
    this.stop();
  }

  /** Pings both sides. A side that has not answered the last ping is ended. */
  beat(): void {
    this.#readOn();
    for (const side of SIDES) {
      const socket = this.#sides[side];
      const waiting = socket.bufferedAmount;
      // A side that reads counts as alive. A side that is not being read cannot answer, unless it first has bytes to
      // read.
      if (waiting !== this.#buffered[side] || (socket.isPaused && waiting === 0)) this.#missed[side] = 0;
      if (this.#missed[side]++ >= MISSED_MAX) socket.terminate();
      else if (socket.readyState === WebSocket.OPEN) socket.ping();
      // A ping that waits as well does not show that the peer reads.
      this.#buffered[side] = socket.bufferedAmount;
    }
  }

  /** Ends all waiting for the quota. */
  stop(): void {
    clearTimeout(this.#wait);
    this.#owed = 0;
    this.#waited();
  }

  /** Reads nothing more of the holder, for whose message there is no memory. */
  #full(): void {
    this.#isFull = true;
    this.#sides.holder.pause();
    this.#taker.unread(FULL);
  }

  /** Resumes each side that has nothing to wait for. */
  #readOn(): void {
    if (this.#wait) return;
    const { holder, upstream } = this.#sides;
    if (holder.isPaused && !this.#waiting && !this.#isFull) holder.resume();
    const isSlow = holder.bufferedAmount >= HIGH_BYTES && holder.readyState === WebSocket.OPEN;
    if (upstream.isPaused && !isSlow) upstream.resume();
  }

  /** Pauses a side, and always the holder, while the quota is used up. */
  #slowDown(side: Side): void {
    const ms = this.#wait ? 0 : this.#deps.readQuota.waitMs(this.#owner);
    if (ms > 0) this.#wait = setTimeout(() => this.#waited(), ms);
    if (!this.#wait) return;
    const { holder, upstream } = this.#sides;
    holder.pause();
    if (side === 'upstream') upstream.pause();
  }

  #waited(): void {
    const ms = msOfWork(this.#owed);
    this.#owed = 0;
    this.#wait = ms < 1 ? undefined : setTimeout(() => this.#waited(), ms);
    if (this.#wait) return;
    this.#goOn?.();
    this.#readOn();
  }

  #got(frame: Buffer, isBinary: boolean): void {
    this.#missed.holder = 0;
    this.#unfinished.whole();
    if (this.#sides.holder.readyState !== WebSocket.OPEN) {
      this.#heardUnpaid('holder', FRAME_WORK + frame.length);
      return;
    }
    if (!isBinary && this.#isClear(frame) && this.#taker.passes(frame)) {
      this.#atOnce++;
      this.#sides.upstream.send(frame, TO_UPSTREAM);
      this.draw('holder', FRAME_WORK + frame.length);
      return;
    }
    if (this.#waiting) this.#waiting.push({ frame, isBinary });
    else void this.#takeAll({ frame, isBinary });
  }

  /** Whether no message waits, and this message would not wait either. */
  #isClear({ length }: Buffer): boolean {
    if (this.#waiting || this.#wait || length > SMALL_BYTES || this.#atOnce >= MOST_AT_ONCE) return false;
    return this.#sides.upstream.bufferedAmount === 0;
  }

  async #takeAll(first: { readonly frame: Buffer; readonly isBinary: boolean }): Promise<void> {
    this.#sides.holder.pause();
    this.#waiting = [first];
    for (;;) {
      const next = this.#waiting.shift();
      if (!next) break;
      // Its bytes are scanned once before planning, whether they pass or not.
      this.#deps.readQuota.take(this.#owner, FRAME_WORK + next.frame.length);
      await this.#takeInRoom(next.frame, next.isBinary);
      await this.#rest();
    }
    this.#waiting = undefined;
    this.#atOnce = 0;
    this.#readOn();
  }

  /** A message uses the memory for bodies until the upstream has it, or it is refused. */
  async #takeInRoom(frame: Buffer, isBinary: boolean): Promise<void> {
    const memory = this.#deps.bodyMemory.newReservation();
    memory.belongsTo(this.#owner.id);
    if (!memory.reserve(frame.length)) return this.#taker.refuse(NO_ROOM, frame);
    try {
      await this.#taker.take(frame, isBinary);
    } finally {
      memory.release();
    }
  }

  /** Waits until the URL may send again, and yields the event loop, because one read may contain thousands of messages. */
  #rest(): Promise<void> {
    if (this.#sides.holder.readyState !== WebSocket.CLOSED) this.#slowDown('holder');
    return new Promise((resolve) => {
      if (this.#wait) this.#goOn = resolve;
      else setImmediate(resolve);
    });
  }

  #pinged(side: Side, data: Buffer): void {
    this.#heardUnpaid(side, FRAME_WORK);
    const socket = this.#sides[side];
    if (socket.readyState !== WebSocket.OPEN || this.#owed > ANSWERED_WORK) return;
    if (socket.bufferedAmount < SMALL_BYTES) socket.pong(data);
  }

  /** Work beyond the quota is not a debt of the URL. Otherwise one read of pings would delay all of its sockets for seconds. */
  #heardUnpaid(side: Side, work: number): void {
    this.#missed[side] = 0;
    const { readQuota } = this.#deps;
    const isSpent = this.#wait !== undefined || readQuota.waitMs(this.#owner) > 0;
    if (isSpent) this.#owed += work;
    else readQuota.take(this.#owner, work);
    this.#slowDown(side);
  }
}

const TO_HOLDER = { binary: false, compress: false };
const TO_UPSTREAM = { binary: false };
const ignore = () => {};
