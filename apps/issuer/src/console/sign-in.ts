import { RefusedError } from '@presign/schema';
import { consoleSessions } from '@presign/schema/console-tables';
import type { Transaction } from '@presign/schema/database';
import { and, desc, eq, lte, notInArray } from 'drizzle-orm';
import type { Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { recordChange } from '../audit/audit-log.ts';
import type { IssuerDeps, IssuerEnv } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { findApiKey } from '../middleware/authenticate.ts';
import {
  eraseSession,
  hashSession,
  mustBeConsole,
  newSession,
  readSession,
  SESSION_SECONDS,
  writeSession,
} from './cookie.ts';
import { countFailedSignIns } from './failed-sign-ins.ts';

/** Sessions of one API key. The oldest end when there are more. */
const MOST_SESSIONS = 20;

/** `POST /console/session` opens a session with an API key, and `DELETE` ends it: the only routes that the console has to itself. */
export function signIn(app: Hono<IssuerEnv>, deps: IssuerDeps): void {
  const { db, issuerUrl, now } = deps;
  const find = findApiKey(deps);
  const count = countFailedSignIns(now);
  app.post('/console/session', bodyLimit({ maxSize: 2_048, onError: refuseBody }), async (c) => {
    mustBeConsole(c, issuerUrl);
    const key = await readApiKey(c);
    const remoteAddress = c.env.incoming.socket.remoteAddress ?? null;
    const counted = count(remoteAddress ?? '');
    const { id, accountId } = await find(key).catch((error: unknown) => {
      if (!isUnknown(error)) counted.giveBack();
      throw error;
    });
    counted.giveBack();
    const { value, hash } = newSession();
    const opened = db.transaction(async (tx) => {
      await openSession(tx, id, hash, now());
      const by = { id, accountId, requestId: c.get('requestId'), remoteAddress };
      await recordChange(tx, by, { action: 'console.signed_in', target: { kind: 'api_key', id } });
    });
    await inTime(opened);
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
async function openSession(tx: Transaction, apiKeyId: string, hash: string, now: number): Promise<void> {
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
export async function forgetSessions({ db, now }: Pick<IssuerDeps, 'db' | 'now'>): Promise<boolean> {
  await db.delete(consoleSessions).where(lte(consoleSessions.expiresAt, new Date(now())));
  return false;
}
