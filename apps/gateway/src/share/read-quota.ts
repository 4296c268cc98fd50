import { isAscii } from 'node:buffer';
import type { Modesty, Refusal, Scan, scanJson } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/**
 * How much a gateway reads and plans for one URL, and for all URLs of one session. Refused calls draw on it too, because they cost no use.
 * Otherwise one URL could keep a gateway busy for free.
 */
export type ReadQuota = {
  /** Returns 0, or in how many ms the URL may send a body again. */
  readonly waitMs: (grant: QuotaOwner) => number;
  /** Charges the work of one body to the quota. It may exceed what is left, because the work is known only after the body has arrived. */
  readonly take: (grant: QuotaOwner, work: number) => void;
};

export type QuotaOwner = { readonly id: string; readonly sessionId: string };

/**
 * Refuses a request before any other work if its URL, or the URL's session, has already sent too much.
 * @param grant of its token, if a key of this gateway has signed the token. A request without a grant has no quota.
 */
export function checkQuota(quota: ReadQuota, grant: QuotaOwner | undefined): Refusal | undefined {
  const waitMs = grant ? quota.waitMs(grant) : 0;
  if (waitMs === 0) return undefined;
  const retryAfterSeconds = Math.ceil(waitMs / 1_000);
  const message = `This URL has sent more than this gateway reads for one URL. Try again in ${retryAfterSeconds} s.`;
  return { code: 'rate_limited', message, retryAfterSeconds };
}

/**
 * Charges the work of reading a body to its URL's quota.
 * @param scan scans a body within bounds
 * @param mostBytes of a body that may be read on the event loop
 * @returns the result of the scan if the body takes less than 10 ms and can be read on the event loop; otherwise a
 * worker reads it
 */
export function takeWork(
  quota: ReadQuota,
  grant: QuotaOwner,
  body: Buffer,
  scan: (most: Modesty) => Scanned,
  mostBytes = SCANNED_BYTES,
): Scan | undefined {
  const found = body.length > mostBytes ? undefined : scan(LITTLE);
  const little = found && !('excess' in found) ? found : undefined;
  quota.take(grant, workOf(body, little));
  return little && isLittle(body, little) ? little : undefined;
}

/**
 * Charges a body that is read a second time with its long texts, because its plan without them failed.
 * @returns whether that can be done on the event loop
 */
export function takeAgain(quota: ReadQuota, grant: QuotaOwner, body: Buffer, scan: Scan): boolean {
  quota.take(grant, workOf(body, scan));
  return isLittle(body, { ...scan, texts: [], values: [] });
}

const workOf = ({ length }: Buffer, scan: Scan | undefined): number =>
  length + PART_WORK * (scan?.parts ?? 0);

type Scanned = ReturnType<typeof scanJson>;

/**
 * Whether a body takes less than 10 ms to scan, read and plan. Its long texts are only scanned. Text beyond ASCII may have to be
 * normalised, which takes ten times as long. Its words are counted only if the result depends on them.
 */
function isLittle(body: Buffer, { parts, members, texts, values }: Scan): boolean {
  const unread = [...texts, ...values.filter(({ known }) => known)];
  const readBytes = unread.reduce((left, { start, end }) => left - (end - start), body.length);
  const knownUs = body.length * SCAN_US + readBytes * BYTE_US + parts * PART_US + members.length * MEMBER_US;
  const mostWords = Math.floor((LITTLE_US - knownUs) / WORD_US);
  if (mostWords < 0) return false;
  return mostWords > readBytes / 4 || isAscii(body) || wordsBeyondAscii(body, texts) <= mostWords;
}

/** Escapes take the most. */
const SCAN_US = 0.002;
const BYTE_US = 0.008;
/** Warm code takes at most 0.2 µs, and the first body of its kind 0.5 µs. */
const PART_US = 0.4;
/** A top-level member is compared with the names of settings, in each spelling. */
const MEMBER_US = 10;
const WORD_US = 0.36;
const LITTLE_US = 10_000;

/** The approximate number of the body's four-byte words that contain a non-ASCII character, outside of some texts. */
function wordsBeyondAscii({ buffer, byteOffset, length }: Buffer, texts: Scan['texts']): number {
  const from = Math.ceil(byteOffset / 4);
  const words = new Uint32Array(buffer, from * 4, Math.max(0, Math.floor((byteOffset + length) / 4) - from));
  let count = 0;
  let at = 0;
  const countTo = (end: number) => {
    for (; at < end; at++) if (((words[at] as number) & 0x80808080) !== 0) count++;
  };
  for (const { start, end } of texts) {
    countTo(start / 4);
    at = Math.floor(end / 4);
  }
  countTo(words.length);
  return count;
}

/** Charges the work of a refusal. If nothing is left, the refusal is that of the quota itself, and the wait does not grow. */
export function takeRefused(quota: ReadQuota, grant: QuotaOwner): void {
  if (quota.waitMs(grant) === 0) quota.take(grant, REFUSED_WORK);
}

/** Charges the work of a call that was admitted, not sent, and refunded in full: two scripts and a row of the ledger. */
export const takeUnsent = (quota: ReadQuota, grant: QuotaOwner): void => quota.take(grant, UNSENT_WORK);

/** A larger body is scanned in its worker. */
const SCANNED_BYTES = 2 * 1024 * 1024;
/** No reader takes an object of more members. */
const LITTLE = { depth: 200, parts: LITTLE_US / PART_US, members: 10_000 };

/** As if a part took 2.5 µs to plan, and a byte 20 ns, more than any takes: a URL's quota is at most about a third of one core. */
const PART_WORK = 128;

/** 2,048 a second of one URL, and 8,192 at once. */
const REFUSED_WORK = 8 * 1024;
/** 256 a second of one URL, and a thousand at once. */
const UNSENT_WORK = 64 * 1024;

const URL_WORK_PER_SECOND = 16 * 1024 * 1024;
/** The work that takes so many ms. */
export const workOfMs = (ms: number): number => (ms / 1_000) * URL_WORK_PER_SECOND;
/** How many ms of a URL's quota a piece of work takes. */
export const msOfWork = (work: number): number => (work / URL_WORK_PER_SECOND) * 1_000;
/** Four seconds' worth at once: a burst of a few of the largest bodies. */
const BURST_SECONDS = 4;
/** A session may have many URLs. */
const SESSION_TIMES = 4;
/** The number of remembered URLs and sessions. An evicted one starts with a full quota. */
const REMEMBERED = 20_000;

export function readQuota(now: () => number): ReadQuota {
  const urls = buckets(URL_WORK_PER_SECOND, now);
  const sessions = buckets(SESSION_TIMES * URL_WORK_PER_SECOND, now);
  return {
    waitMs: ({ id, sessionId }) => Math.max(urls.waitMs(id), sessions.waitMs(sessionId)),
    take: ({ id, sessionId }, work) => {
      urls.take(id, work);
      sessions.take(sessionId, work);
    },
  };
}

function buckets(perSecond: number, now: () => number) {
  const most = BURST_SECONDS * perSecond;
  const levels = new LRUCache<string, { level: number; atMs: number }>({ max: REMEMBERED });
  const levelAt = (known: { level: number; atMs: number } | undefined, atMs: number): number =>
    known ? Math.min(most, known.level + (Math.max(0, atMs - known.atMs) / 1_000) * perSecond) : most;
  return {
    waitMs: (key: string): number =>
      Math.ceil((Math.max(0, -levelAt(levels.get(key), now())) / perSecond) * 1_000),
    take: (key: string, work: number): void => {
      const known = levels.get(key);
      const atMs = now();
      const level = levelAt(known, atMs) - work;
      // Changed in place, because each call runs this code twice.
      if (!known) levels.set(key, { level, atMs });
      else {
        known.level = level;
        known.atMs = atMs;
      }
    },
  };
}
