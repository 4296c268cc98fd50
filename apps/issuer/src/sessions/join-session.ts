import { RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { sessions } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';

/**
 * Opens the session that a caller asks for, or joins it when it is there and of the same account.
 * @throws RefusedError `session_conflict` for a session of another account, or a revoked one
 */
export async function joinSession(
  tx: Transaction,
  accountId: string,
  id: string,
  createdAt: Date,
): Promise<void> {
  const row = { id, accountId, createdAt };
  const opened = await tx.insert(sessions).values(row).onConflictDoNothing().returning({ id: sessions.id });
  if (opened.length > 0) return;
  // Shared lock: a revocation of the session waits until this grant is written, and then revokes it too.
  const [session] = await tx.select().from(sessions).where(eq(sessions.id, id)).for('share');
  if (session?.accountId !== accountId) {
    throw conflict('session_id: this session cannot be joined.');
  }
  if (session.revokedAt) throw conflict('session_id: this session has been revoked.');
}

const conflict = (message: string) =>
  new RefusedError({ code: 'session_conflict', param: 'session_id', message });
