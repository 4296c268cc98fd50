import { WebSocket } from 'ws';
import type { QuotaOwner, ReadQuota } from '../share/read-quota.ts';

/** So many bytes may wait for a peer before the other one is paused. */
const HIGH_BYTES = 256 * 1024;
/** Answers to pings wait for a peer that reads. */
const PONGS_BYTES = 16 * 1024;
/** The cost of a control frame, and of a message in addition to its bytes: one URL may send 2,048 of them a second. */
const FRAME_WORK = 8 * 1024;
/** A peer that has answered nothing for so many beats is gone. */
const MISSED_MAX = 2;

type Sides = { readonly holder: WebSocket; readonly upstream: WebSocket };
type Take = (frame: Buffer, isBinary: boolean) => Promise<void>;

/**
 * The messages of a socket: one of the holder at a time, in order and within its read quota; those of the upstream as fast as the holder
 * reads.
 */
export class Flow {
  readonly #quota: ReadQuota;
  readonly #owner: QuotaOwner;
  readonly #sides: Sides;
  readonly #take: Take;
  readonly #waiting: { readonly frame: Buffer; readonly isBinary: boolean }[] = [];
  readonly #missed = { holder: 0, upstream: 0 };
  readonly #buffered = { holder: 0, upstream: 0 };
  #isTaking = false;
  #isFull = false;
  #wait: NodeJS.Timeout | undefined;

  constructor(quota: ReadQuota, owner: QuotaOwner, sides: Sides, take: Take) {
    this.#quota = quota;
    this.#owner = owner;
    this.#sides = { holder: sides.holder, upstream: sides.upstream };
    this.#take = take;
    const { holder, upstream } = this.#sides;
    for (const side of ['holder', 'upstream'] as const) {
      const socket = this.#sides[side];
      // A close follows each error.
      socket.on('error', () => {});
      for (const event of ['message', 'ping', 'pong'] as const)
        socket.on(event, () => {
          this.#missed[side] = 0;
        });
      socket.on('ping', (data: Buffer) => {
        if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount < PONGS_BYTES) socket.pong(data);
      });
    }
    for (const event of ['ping', 'pong'] as const) holder.on(event, () => this.#throttle());
    holder.on('message', (frame: Buffer, isBinary) => {
      this.#waiting.push({ frame, isBinary });
      void this.#takeAll();
    });
    upstream.once('close', () => {
      if (!this.#isFull) holder.resume();
    });
  }

  /** Sends to the holder. While it does not read, the upstream is paused. */
  toHolder(frame: Buffer): void {
    const { holder, upstream } = this.#sides;
    if (holder.readyState !== WebSocket.OPEN) return;
    holder.send(frame, { binary: false, compress: false }, () => {
      if (upstream.isPaused && holder.bufferedAmount < HIGH_BYTES) upstream.resume();
    });
    if (holder.bufferedAmount >= HIGH_BYTES) upstream.pause();
  }

  /** Sends to the upstream. Resolves when the system has the bytes. */
  toUpstream(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#sides.upstream.send(frame, { binary: false }, () => resolve()));
  }

  /** Takes nothing more of a holder who has left. */
  drop(): void {
    this.#waiting.length = 0;
    clearTimeout(this.#wait);
    const { upstream } = this.#sides;
    if (upstream.isPaused) upstream.resume();
  }

  /** Reads nothing more of the holder, for whose message there is no memory. */
  stopReading(): void {
    this.#isFull = true;
    this.#sides.holder.pause();
  }

  /** Asks both sides whether they are there. A side that has not answered before is ended. */
  beat(): void {
    for (const side of ['holder', 'upstream'] as const) {
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

  async #takeAll(): Promise<void> {
    const { holder } = this.#sides;
    holder.pause();
    if (this.#isTaking) return;
    this.#isTaking = true;
    for (;;) {
      const next = this.#waiting.shift();
      if (!next) break;
      // Its bytes are looked through once before they are planned, whether they pass or not.
      this.#quota.take(this.#owner, FRAME_WORK + next.frame.length);
      await this.#take(next.frame, next.isBinary);
      await this.#rest();
    }
    this.#isTaking = false;
    if (!this.#wait && !this.#isFull) holder.resume();
  }

  /** Waits until the URL may send again, and lets others have the event loop: one read may hold thousands of messages. */
  #rest(): Promise<void> {
    const ms = this.#quota.waitMs(this.#owner);
    return new Promise((resolve) => {
      if (ms === 0) setImmediate(resolve);
      else setTimeout(resolve, ms);
    });
  }

  /** Takes the work of a control frame. A flood of them is read as slowly as the quota says. */
  #throttle(): void {
    this.#quota.take(this.#owner, FRAME_WORK);
    const ms = this.#quota.waitMs(this.#owner);
    if (ms === 0 || this.#wait) return;
    const { holder } = this.#sides;
    holder.pause();
    this.#wait = setTimeout(() => {
      this.#wait = undefined;
      if (!this.#isTaking && !this.#isFull) holder.resume();
    }, ms);
  }
}
