/**
 * - `old`: the time of a socket is over. `timeout`: that of its oldest running turn is. `expired`: its URL has expired.
 * - `unset`: the upstream has not set its session. `left`: the holder has disconnected, and its running turn
 *   takes too long.
 */
export type Deadline = 'old' | 'timeout' | 'left' | 'expired' | 'unset';

/** How long a running turn may take after its holder has disconnected. Its usage is known only at its end. */
const UNHEARD_MS = 60_000;
/** How long an upstream has to set a session. */
const OPENING_MS = 30_000;
/** The longest time of a timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** The socket whose ends they are. */
type Owner = {
  readonly passed: (which: Deadline) => void;
  /** `performance.now()` when its oldest running turn began. Undefined: none runs. */
  readonly longestSince: () => number | undefined;
};

type Times = { readonly now: () => number; readonly upstreamTimeoutMs: number };

/** The deadlines of a socket. One timer serves all of them, because an idle socket should take little memory. */
export class Deadlines {
  readonly #times: Times;
  readonly #tokenEndsMs: number;
  readonly #owner: Owner;
  readonly #openedAt = performance.now();
  #leftAt: number | undefined;
  #expiresAtMs: number;
  #isOpening: boolean;
  #isExpired = false;
  /** No turn begins any more, so the oldest running turn ends first. */
  #isOld = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(times: Times, expiresAtMs: number, isOpening: boolean, owner: Owner) {
    this.#times = times;
    this.#tokenEndsMs = this.#expiresAtMs = expiresAtMs;
    this.#isOpening = isOpening;
    this.#owner = owner;
    this.#wait();
  }

  /** The session is set, so it is no longer awaited. */
  opened(): void {
    this.#isOpening = false;
  }

  /** The expiry of its URL was changed. An expiry after its token's end belongs to another URL. */
  moved(endsMs: number): void {
    this.#expiresAtMs = Math.min(endsMs, this.#tokenEndsMs);
    this.#waitAgain();
  }

  /** The holder has disconnected. */
  left(): void {
    this.#leftAt = performance.now();
    this.#waitAgain();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Waits for what has changed, unless the socket has ended. */
  #waitAgain(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#wait();
  }

  #wait(): void {
    const soonest = Math.min(...this.#waits().map(({ ms }) => ms));
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(1, soonest), TIMER_MAX_MS));
  }

  #look(): void {
    const { which } = this.#waits().find(({ ms }) => ms <= 0) ?? {};
    if (which === 'expired') this.#isExpired = true;
    if (which === 'unset') this.#isOpening = false;
    if (which === 'old') this.#isOld = true;
    if (which === 'left') this.#timer = undefined;
    else this.#wait();
    if (which) this.#owner.passed(which);
  }

  /** How long it is until each of them, in ms. */
  #waits(): { readonly which: Deadline; readonly ms: number }[] {
    const { now, upstreamTimeoutMs } = this.#times;
    const at = performance.now();
    const waits: { which: Deadline; ms: number }[] = [];
    if (!this.#isOld) waits.push({ which: 'old', ms: this.#openedAt + upstreamTimeoutMs - at });
    // A turn begins after its socket, and ends after the socket's time.
    const since = this.#isOld ? this.#owner.longestSince() : undefined;
    if (since !== undefined) waits.push({ which: 'timeout', ms: since + upstreamTimeoutMs - at });
    if (this.#leftAt !== undefined) waits.push({ which: 'left', ms: this.#leftAt + UNHEARD_MS - at });
    if (this.#isOpening) waits.push({ which: 'unset', ms: this.#openedAt + OPENING_MS - at });
    if (!this.#isExpired) waits.push({ which: 'expired', ms: this.#expiresAtMs - now() });
    return waits;
  }
}
