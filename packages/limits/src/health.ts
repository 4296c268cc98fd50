import { Cluster } from 'ioredis';
import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/**
 * Finds settings with which Redis could lose uses and money, by the `INFO` of every master. A setting that a Redis
 * service hides is not checked.
 * @returns a sentence for the operator about each
 */
export async function findRisks(redis: RedisClient): Promise<readonly string[]> {
  const infos = await Promise.all(
    mastersOf(redis).map(async (each) => `${await each.info('persistence')}${await each.info('memory')}`),
  );
  return RISKS.filter(([sign]) => infos.some((info) => sign.test(info))).map(([, says]) => says);
}

const mastersOf = (redis: RedisClient) => (redis instanceof Cluster ? redis.nodes('master') : [redis]);

/** The part of `maxmemory` that the fullest master uses; 0 if no master has or states a `maxmemory`. */
export async function readMemoryShare(redis: RedisClient): Promise<number> {
  const shares = (await readMemory(redis)).flatMap(({ used, most }) => (most > 0 ? [used / most] : []));
  return Math.max(0, ...shares);
}

/** The memory of a master, in bytes. 0: it does not state its memory, or has no `maxmemory`. */
export type RedisMemory = { readonly used: number; readonly most: number; readonly system: number };

/** The memory of every master. Throws what ioredis throws. */
export function readMemory(redis: RedisClient): Promise<readonly RedisMemory[]> {
  const readOf = async (each: { info: (section: 'memory') => Promise<string> }) => {
    const info = await each.info('memory');
    const of = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
    return { used: of('used_memory'), most: of('maxmemory'), system: of('total_system_memory') };
  };
  return Promise.all(mastersOf(redis).map(readOf));
}

const RISKS: readonly (readonly [sign: RegExp, says: string])[] = [
  [
    /^aof_enabled:0/m,
    'Redis has no append-only file (appendonly no): a restart loses what is not yet in the ledger',
  ],
  [
    /^maxmemory_policy:(?!noeviction)/m,
    'Redis may drop keys when its memory is full (maxmemory-policy): set it to noeviction',
  ],
];

/** Whether Redis can take calls now. */
export type RedisHealth = {
  /** `refused`: it answers, but takes no writes, as at `maxmemory` or with a full disk. */
  readonly writes: 'taken' | 'read_only' | 'refused' | 'no_answer';
  /** Partitions that admit calls. */
  readonly open: number;
};

/** Checks whether Redis takes writes, and how many of the partitions 0 to `partitions` - 1 are open. Never throws. */
export async function readHealth(redis: RedisClient, partitions: number): Promise<RedisHealth> {
  const all = Array.from({ length: partitions }, (_, at) => redis.hget(keys.partition(at), 'state'));
  const [writes, ...states] = await Promise.all([
    tryWrite(redis),
    ...all.map((asked) => asked.catch(() => null)),
  ]);
  return { writes, open: states.filter((state) => state === 'open').length };
}

const PROBE_MS = 60_000;

async function tryWrite(redis: RedisClient): Promise<RedisHealth['writes']> {
  try {
    await redis.set(keys.probe(), '1', 'PX', PROBE_MS);
    return 'taken';
  } catch (error) {
    // Redis' own errors begin with a word in capitals (Redis manual, RESP, simple errors).
    const [word = ''] = error instanceof Error ? error.message.split(' ', 1) : [];
    if (word === 'READONLY') return 'read_only';
    return /^[A-Z]{3,}$/.test(word) && word !== 'LOADING' ? 'refused' : 'no_answer';
  }
}

/** Compares the clock of this process with that of Redis. */
export type ClockWatch = {
  /** How far this process is ahead of Redis, in ms. Undefined until Redis has answered. */
  readonly offsetMs: () => number | undefined;
  /** The same, if it is large enough to affect URLs and their expiry. */
  readonly farMs: () => number | undefined;
  readonly close: () => void;
};

/** More than a busy machine with NTP is ever off. A gateway tolerates 60 s in a token. */
const FAR_MS = 5_000;
const FIRST_MS = 100;
const EVERY_MS = 10_000;
/** After a slower answer, the moment at which Redis read its clock is too uncertain. */
const SLOW_MS = 1_000;

type Log = Readonly<Record<'warn' | 'info', (fields: object, message: string) => void>>;

/** Reads the clock of Redis every ten seconds, and logs when the clocks begin and stop to differ too much. */
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
  // While Redis does not answer, the last offset is kept.
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

/** Whether expired leases of a partition may be swept, after an answer with the partition's time. */
export type JumpWatch = (partition: number, answer: { askedMs: number; redisMs: number }) => boolean;

/**
 * Detects when leases may have expired although their gateways are alive. Sweeps then pause for the length of a lease, in which gateways
 * renew their leases and settle ended calls. The cases are:
 * - Redis or this process did not respond for some time. Having no answer yet counts too, because another gateway may have waited for Redis
 *   until now.
 * - The clock of Redis has jumped ahead: it was set, or a replica with another clock took over.
 *
 * It compares the clock of Redis with this process' monotonic clock, which never jumps. A slow answer is not a jump: the smallest possible
 * offset now is compared with the largest possible offset before.
 */
export function watchForJumps(leaseMs: number, now: () => number = () => performance.now()): JumpWatch {
  const last = new Map<number, { readonly mostAheadMs: number; readonly answeredMs: number }>();
  const waitsUntil = new Map<number, number>();
  return (partition, { askedMs, redisMs }) => {
    const answeredMs = now();
    const before = last.get(partition);
    last.set(partition, { mostAheadMs: redisMs - askedMs, answeredMs });
    const wasSilent = !before || answeredMs - before.answeredMs > leaseMs * HARMLESS_SILENCE;
    const hasJumped = before && redisMs - answeredMs > before.mostAheadMs + leaseMs * HARMLESS_JUMP;
    if (wasSilent || hasJumped) waitsUntil.set(partition, answeredMs + leaseMs);
    return answeredMs >= (waitsUntil.get(partition) ?? 0);
  };
}

/** Leases are renewed every third of their length, so a pause up to these fractions ends none. Gateways sweep every sixth. */
const HARMLESS_JUMP = 1 / 6;
const HARMLESS_SILENCE = 1 / 3;
