import { WebSocket } from 'ws';
import type { BodyMemory } from '../share/body-memory.ts';
import type { QuotaOwner, ReadQuota } from '../share/read-quota.ts';
import { Unfinished } from './unfinished.ts';

/** So many bytes may wait for a peer before the other one is paused. */
const HIGH_BYTES = 256 * 1024;
/** Answers to pings, and events that pass at once, wait for a peer that reads. */
const SMALL_BYTES = 16 * 1024;
/** The cost of a control frame, and of a message in addition to its bytes: one URL may send 2,048 of them a second. */
const FRAME_WORK = 8 * 1024;
/** A peer that has answered nothing for so many beats is gone. */
const MISSED_MAX = 2;
/** Events that pass at once before others get the event loop: one read may hold a thousand of them. */
const MOST_AT_ONCE = 32;

const SIDES = ['holder', 'upstream'] as const;
type Side = (typeof SIDES)[number];
type Sides = Readonly<Record<Side, WebSocket>>;

/** The one that takes the messages of a socket. */
export type Taker = {
  /** Takes a message of the holder. The next one waits for it. */
  readonly take: (frame: Buffer, isBinary: boolean) => Promise<void>;
  /** Whether a message of the holder is sent on as it is, at once. */
  readonly passes: (frame: Buffer) => boolean;
  /** Takes a message of the upstream. */
  readonly hear: (frame: Buffer) => void;
  /** There is no memory for a message of the holder, which is dropped. */
  readonly noRoom: () => void;
  /** There is no memory for a message of the holder that is not whole yet. */
  readonly full: () => void;
};

type FlowDeps = { readonly readQuota: ReadQuota; readonly bodyMemory: BodyMemory };

/**
 * The messages of a socket: one of the holder at a time, in order and within its read quota; those of the upstream as fast as the holder
 * reads. It makes nothing ahead of time that an idle socket does not need: a gateway has thousands of them.
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
  #wait: NodeJS.Timeout | undefined;

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
        .on('pong', () => this.#heardControl(side));
    this.#unfinished = new Unfinished(holder, deps.bodyMemory, owner.id, taker.full);
    holder.on('message', (frame: Buffer, isBinary) => this.#got(frame, isBinary));
    upstream.on('message', (frame: Buffer) => {
      this.#missed.upstream = 0;
      taker.hear(frame);
    });
  }

  /** Sends to the holder. While it does not read, the upstream is paused. */
  toHolder(frame: Buffer): void {
    const { holder, upstream } = this.#sides;
    if (holder.readyState !== WebSocket.OPEN) return;
    const isSlow = holder.bufferedAmount + frame.length >= HIGH_BYTES;
    holder.send(frame, TO_HOLDER, isSlow ? () => this.#holderRead() : undefined);
    if (holder.bufferedAmount >= HIGH_BYTES) upstream.pause();
  }

  /** Sends to the upstream. Resolves when the system has the bytes. */
  toUpstream(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#sides.upstream.send(frame, TO_UPSTREAM, () => resolve()));
  }

  /**
   * Takes work of a side that costs no use from the read quota. Where it is spent, that side is read as slowly as it says. The holder is in any
   * case, because its events may be what the upstream answers.
   */
  draw(side: Side, work: number): void {
    const { readQuota } = this.#deps;
    readQuota.take(this.#owner, work);
    const ms = this.#wait ? 0 : readQuota.waitMs(this.#owner);
    if (ms === 0) return;
    const { holder, upstream } = this.#sides;
    holder.pause();
    if (side === 'upstream') upstream.pause();
    this.#wait = setTimeout(() => {
      this.#wait = undefined;
      this.#holderRead();
      if (!this.#waiting && !this.#isFull) holder.resume();
    }, ms);
  }

  /** Takes nothing more of a holder who has left. */
  drop(): void {
    if (this.#waiting) this.#waiting.length = 0;
    this.#unfinished.release();
    clearTimeout(this.#wait);
    this.#wait = undefined;
    const { upstream } = this.#sides;
    if (upstream.isPaused) upstream.resume();
  }

  /** Reads what a holder has sent before its upstream closed. */
  upstreamClosed(): void {
    if (!this.#isFull) this.#sides.holder.resume();
  }

  /** Reads nothing more of the holder, for whose message there is no memory. */
  stopReading(): void {
    this.#isFull = true;
    this.#sides.holder.pause();
  }

  /** Asks both sides whether they are there. A side that has not answered before is ended. */
  beat(): void {
    for (const side of SIDES) {
      const socket = this.#sides[side];
      const waiting = socket.bufferedAmount;
      // It is there while it reads. While it is not read, it cannot answer, unless it has bytes to read first.
      if (waiting !== this.#buffered[side] || (socket.isPaused && waiting === 0)) this.#missed[side] = 0;
      if (this.#missed[side]++ >= MISSED_MAX) socket.terminate();
      else if (socket.readyState === WebSocket.OPEN) socket.ping();
      // A ping that waits, too, is no sign of a peer that reads.
      this.#buffered[side] = socket.bufferedAmount;
    }
  }

  stop(): void {
    clearTimeout(this.#wait);
  }

  /** The upstream is read on, unless the holder or the quota keeps it waiting. */
  #holderRead(): void {
    const { holder, upstream } = this.#sides;
    const isSlow = holder.bufferedAmount >= HIGH_BYTES && holder.readyState === WebSocket.OPEN;
    if (upstream.isPaused && !this.#wait && !isSlow) upstream.resume();
  }

  #got(frame: Buffer, isBinary: boolean): void {
    this.#missed.holder = 0;
    this.#unfinished.whole();
    if (!isBinary && this.#isClear(frame) && this.#taker.passes(frame)) {
      this.#atOnce++;
      this.#sides.upstream.send(frame, TO_UPSTREAM);
      this.draw('holder', FRAME_WORK + frame.length);
      return;
    }
    if (this.#waiting) this.#waiting.push({ frame, isBinary });
    else void this.#takeAll({ frame, isBinary });
  }

  /** Whether nothing waits before a message, and it would not wait either. */
  #isClear({ length }: Buffer): boolean {
    if (this.#waiting || this.#wait || length > SMALL_BYTES || this.#atOnce >= MOST_AT_ONCE) return false;
    return this.#sides.upstream.bufferedAmount === 0;
  }

  async #takeAll(first: { readonly frame: Buffer; readonly isBinary: boolean }): Promise<void> {
    const { holder } = this.#sides;
    holder.pause();
    this.#waiting = [first];
    for (;;) {
      const next = this.#waiting.shift();
      if (!next) break;
      // Its bytes are looked through once before they are planned, whether they pass or not.
      this.#deps.readQuota.take(this.#owner, FRAME_WORK + next.frame.length);
      await this.#takeInRoom(next.frame, next.isBinary);
      await this.#rest();
    }
    this.#waiting = undefined;
    this.#atOnce = 0;
    if (!this.#wait && !this.#isFull) holder.resume();
  }

  /** A message takes memory of bodies until the upstream has it, or it is refused. */
  async #takeInRoom(frame: Buffer, isBinary: boolean): Promise<void> {
    const memory = this.#deps.bodyMemory.newReservation();
    memory.belongsTo(this.#owner.id);
    if (!memory.reserve(frame.length)) return this.#taker.noRoom();
    try {
      await this.#taker.take(frame, isBinary);
    } finally {
      memory.release();
    }
  }

  /** Waits until the URL may send again, and lets others have the event loop: one read may hold thousands of messages. */
  #rest(): Promise<void> {
    const ms = this.#deps.readQuota.waitMs(this.#owner);
    return new Promise((resolve) => {
      if (ms === 0) setImmediate(resolve);
      else setTimeout(resolve, ms);
    });
  }

  #pinged(side: Side, data: Buffer): void {
    this.#heardControl(side);
    const socket = this.#sides[side];
    if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount < SMALL_BYTES) socket.pong(data);
  }

  #heardControl(side: Side): void {
    this.#missed[side] = 0;
    this.draw(side, FRAME_WORK);
  }
}

const TO_HOLDER = { binary: false, compress: false };
const TO_UPSTREAM = { binary: false };
const ignore = () => {};
