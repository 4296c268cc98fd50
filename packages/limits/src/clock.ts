import type { RedisClient } from './redis.ts';

/** Compares the clock of this process with that of Redis. */
export type ClockWatch = {
  /** How far this process is ahead of Redis, in ms. Undefined until Redis has answered. */
  readonly offsetMs: () => number | undefined;
  /** The same, if it is so far that URLs and their expiry suffer. */
  readonly farMs: () => number | undefined;
  readonly close: () => void;
};

/** More than a busy machine with NTP is ever off. A gateway tolerates 60 s in a token. */
const FAR_MS = 5_000;
const FIRST_MS = 100;
const EVERY_MS = 10_000;
/** An answer that took longer says too little about the moment at which Redis read its clock. */
const SLOW_MS = 1_000;

type Log = Readonly<Record<'warn' | 'info', (fields: object, message: string) => void>>;

/** Reads the clock of Redis every ten seconds, and logs when the clocks are far apart, and when they no longer are. */
export function watchClock(redis: RedisClient, now: () => number, log: Log): ClockWatch {
  let offsetMs: number | undefined;
  let isFar = false;
  const look = async () => {
    const asked = performance.now();
    const [seconds, micros] = await redis.time();
    const tookMs = performance.now() - asked;
    if (tookMs > SLOW_MS) return;
    offsetMs = now() - tookMs / 2 - (Number(seconds) * 1_000 + Number(micros) / 1_000);
    const far = Math.abs(offsetMs) > FAR_MS;
    const fields = { clock_offset_ms: Math.round(offsetMs) };
    if (far && !isFar) log.warn(fields, 'the clock differs from that of Redis');
    if (!far && isFar) log.info(fields, 'the clock agrees with that of Redis again');
    isFar = far;
  };
  // While Redis does not answer, the last offset stands.
  const lookAgain = async () => {
    await look().catch(() => {});
    if (!closed) timer = setTimeout(lookAgain, EVERY_MS).unref();
  };
  let closed = false;
  let timer = setTimeout(lookAgain, FIRST_MS).unref();
  const close = () => {
    closed = true;
    clearTimeout(timer);
  };
  return { offsetMs: () => offsetMs, farMs: () => (isFar ? offsetMs : undefined), close };
}
