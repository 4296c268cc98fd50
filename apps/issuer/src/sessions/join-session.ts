import { RefusedError } from '@presign/schema';
import { sessions } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { eq } from 'drizzle-orm';

/**
 * Creates the session that a caller asks for, or joins it when it exists and belongs to the same account. Its row
 * stays locked until the transaction ends: a revocation waits for the new grant, and then revokes it, too.
 * @throws RefusedError `session_conflict` for a session of another account, or a revoked one
 */
export async function joinSession(
  tx: Transaction,
  accountId: string,
  id: string,
  createdAt: Date,
): Promise<void> {
  const row = { id, accountId, createdAt };
  const created = await tx.insert(sessions).values(row).onConflictDoNothing().returning({ id: sessions.id });
  if (created.length > 0) return;
  const [session] = await tx.select().from(sessions).where(eq(sessions.id, id)).for('share');
  if (session?.accountId !== accountId) throw conflict('session_id: this session cannot be joined.');
  if (session.revokedAt) throw conflict('session_id: this session has been revoked.');
}

const conflict = (message: string) =>
  new RefusedError({ code: 'session_conflict', param: 'session_id', message });
