import { RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { sessions } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';

/**
 * Opens the session a grant belongs to, or joins one of the same account.
 * @param fresh the id to use when the caller asked for none
 */
export async function joinSession(
  tx: Transaction,
  accountId: string,
  fresh: string,
  asked: string | undefined,
  createdAt: Date,
): Promise<string> {
  const id = asked ?? fresh;
  const row = { id, accountId, createdAt };
  const opened = await tx.insert(sessions).values(row).onConflictDoNothing().returning({ id: sessions.id });
  if (opened.length > 0) return id;
  // Shared lock: a revocation of the session waits until this grant is written, and then revokes it too.
  const [session] = await tx.select().from(sessions).where(eq(sessions.id, id)).for('share');
  if (session?.accountId !== accountId) {
    throw conflict('session_id: this session cannot be joined.');
  }
  if (session.revokedAt) throw conflict('session_id: this session has been revoked.');
  return id;
}

const conflict = (message: string) =>
  new RefusedError({ code: 'session_conflict', param: 'session_id', message });
