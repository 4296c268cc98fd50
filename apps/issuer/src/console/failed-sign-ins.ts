import { count, RefusedError } from '@presign/schema';

/** Failed sign-ins that one address may have at once, and that it regains in a minute. */
export const FAILED_SIGN_INS = 20;
const ALL_MS = 60_000;
const EACH_MS = ALL_MS / FAILED_SIGN_INS;

/** Addresses that are remembered. Those that failed longest ago are forgotten first. */
const ADDRESSES_MAX = 10_000;

/** Takes a sign-in before it is judged, and gives it back if it has not failed. */
export type CountSignIn = (address: string) => { readonly giveBack: () => void };

/**
 * Counts failed sign-ins of each address in this process, so that a program cannot try keys at will. A sign-in counts from its
 * beginning, so that parallel ones cannot all pass.
 * @returns a function that throws RefusedError `rate_limited`
 */
export function countFailedSignIns(now: () => number): CountSignIn {
  /** When an address has regained all of its sign-ins, in Unix milliseconds. The one that has failed last comes last. */
  const regained = new Map<string, number>();
  const keep = (key: string, at: number) => {
    regained.delete(key);
    regained.set(key, at);
    const [oldest] = regained.keys();
    if (regained.size > ADDRESSES_MAX && oldest !== undefined) regained.delete(oldest);
  };
  return (address) => {
    const key = networkOf(address);
    const nowMs = now();
    // A clock that is set back must not keep an address out.
    const at = Math.max(nowMs, Math.min(regained.get(key) ?? 0, nowMs + ALL_MS));
    const waitMs = at + EACH_MS - nowMs - ALL_MS;
    keep(key, waitMs > 0 ? at : at + EACH_MS);
    if (waitMs > 0) throw tooMany(waitMs);
    return { giveBack: () => keep(key, (regained.get(key) ?? 0) - EACH_MS) };
  };
}

/** A subscriber of IPv6 has a network of 64 bits (RFC 6177 §2), and each of its addresses counts for all. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.toLowerCase().startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const after = tail?.split(':').filter((group) => group !== '') ?? [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  return [...groups, ...Array<string>(zeros).fill('0'), ...after].slice(0, 4).join(':');
}

function tooMany(waitMs: number): RefusedError {
  const seconds = Math.ceil(waitMs / 1000);
  const message = `Too many sign-ins from this address have failed. Try again in ${count(seconds, 'second')}.`;
  return new RefusedError({ code: 'rate_limited', message, retryAfterSeconds: seconds });
}
