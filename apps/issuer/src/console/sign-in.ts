import { count, RefusedError } from '@presign/schema';
import { consoleSessions } from '@presign/schema/console-tables';
import type { Transaction } from '@presign/service/database';
import { and, desc, eq, lte, notInArray } from 'drizzle-orm';
import type { Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { recordChange } from '../events/audit-log.ts';
import type { IssuerEnv } from '../identity/caller.ts';
import {
  eraseSession,
  hashSession,
  mustBeConsole,
  newSession,
  readSession,
  SESSION_SECONDS,
  writeSession,
} from '../identity/cookie.ts';
import { findApiKey } from '../middleware/authenticate.ts';
import { inTime } from '../middleware/in-time.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

type Needs = Pick<RouteDeps, 'db' | 'issuerUrl' | 'now'>;

/** Sessions of one API key. The oldest end when there are more. */
const MOST_SESSIONS = 20;

/** `POST /console/session` begins a session with an API key, and `DELETE` ends it: the only routes that the console has to itself. */
export function signIn(app: Hono<IssuerEnv>, deps: Needs): void {
  const { db, issuerUrl, now } = deps;
  const find = findApiKey(deps);
  const count = countFailedSignIns(now);
  app.post('/console/session', bodyLimit({ maxSize: 2_048, onError: refuseBody }), async (c) => {
    mustBeConsole(c, issuerUrl);
    const key = await readApiKey(c);
    const remoteAddress = c.env.incoming.socket.remoteAddress ?? null;
    const counted = count(remoteAddress ?? '');
    const { id, accountId, revision } = await find(key).catch((error: unknown) => {
      if (!isUnknown(error)) counted.giveBack();
      throw error;
    });
    counted.giveBack();
    const { value, hash } = newSession();
    const stored = db.transaction(async (tx) => {
      await storeSession(tx, id, hash, now());
      const by = { id, accountId, revision, requestId: c.get('requestId'), remoteAddress };
      await recordChange(tx, by, { action: 'console.signed_in', target: { kind: 'api_key', id } });
    });
    await inTime(stored);
    writeSession(c, issuerUrl, value);
    return c.body(null, 204);
  });
  app.delete('/console/session', async (c) => {
    const value = readSession(c, issuerUrl);
    if (value !== undefined)
      await inTime(db.delete(consoleSessions).where(eq(consoleSessions.hash, hashSession(value))));
    eraseSession(c, issuerUrl);
    return c.body(null, 204);
  });
}

/** Whether a sign-in failed because there is no such live API key. Without Postgres it is not judged. */
const isUnknown = (error: unknown): boolean =>
  error instanceof RefusedError && error.refusal.code === 'unauthenticated';

/** @throws RefusedError `invalid_request` that never quotes the body */
async function readApiKey(c: Context<IssuerEnv>): Promise<string> {
  const body: unknown = await c.req.json().catch(() => undefined);
  const key = typeof body === 'object' && body !== null && 'api_key' in body ? body.api_key : undefined;
  if (typeof key === 'string' && /^[\x21-\x7e]{1,512}$/.test(key)) return key;
  const message = 'api_key: expected an API key.';
  throw new RefusedError({ code: 'invalid_request', param: 'api_key', message });
}

const refuseBody = (): never => {
  throw new RefusedError({ code: 'body_too_large', message: 'The body may have at most 2048 bytes.' });
};

/** Stores a session, and deletes those of this key that are over or too many. */
async function storeSession(tx: Transaction, apiKeyId: string, hash: string, now: number): Promise<void> {
  const expiresAt = new Date(now + SESSION_SECONDS * 1_000);
  const ofKey = eq(consoleSessions.apiKeyId, apiKeyId);
  const newest = tx
    .select({ hash: consoleSessions.hash })
    .from(consoleSessions)
    .where(ofKey)
    .orderBy(desc(consoleSessions.expiresAt))
    .limit(MOST_SESSIONS);
  await tx.insert(consoleSessions).values({ hash, apiKeyId, expiresAt });
  await tx.delete(consoleSessions).where(and(ofKey, notInArray(consoleSessions.hash, newest)));
}

/**
 * Deletes sessions that are over.
 * @returns false: there are no more
 */
export async function forgetSessions({ db, now }: Pick<RouteDeps, 'db' | 'now'>): Promise<boolean> {
  await db.delete(consoleSessions).where(lte(consoleSessions.expiresAt, new Date(now())));
  return false;
}

/** Failed sign-ins that one address may have at once, and that it regains in a minute. */
export const FAILED_SIGN_INS = 20;
const ALL_MS = 60_000;
const EACH_MS = ALL_MS / FAILED_SIGN_INS;

/** Addresses that are remembered. Those that failed longest ago are forgotten first. */
const ADDRESSES_MAX = 10_000;

/** Takes a sign-in before it is judged, and gives it back if it has not failed. */
type CountSignIn = (address: string) => { readonly giveBack: () => void };

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
