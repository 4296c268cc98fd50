import type { AuditAction, AuditEntry, AuditTarget } from '@presign/schema';
import { audit } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { lt, sql } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import type { Actor } from '../identity/caller.ts';
import { mustNotHaveEnded } from '../identity/standing.ts';
import { recordEvents } from './record-events.ts';

/** A change. `before` and `after` have the changed fields as an answer of the API shows them, and nothing secret. */
type Change = {
  readonly action: AuditAction;
  readonly target: { readonly kind: AuditTarget; readonly id: string };
  readonly before?: Readonly<Record<string, unknown>>;
  readonly after?: Readonly<Record<string, unknown>>;
};

/**
 * Writes the one entry of a change, and its event `audit.entry`. It uses the transaction of the change, so that neither exists
 * without the other. A change by an API key that has ended since its request began is not made.
 * @throws KeyEnded
 */
export async function recordChange(
  tx: Transaction,
  by: Actor,
  { action, target, before, after }: Change,
): Promise<void> {
  const { accountId, id, requestId, remoteAddress } = by;
  // A key may end itself.
  if (requestId !== null && target.id !== id) await mustNotHaveEnded(tx, by);
  const what = { action, targetKind: target.kind, targetId: target.id };
  const states = { before: before ?? null, after: after ?? null };
  const row = { accountId, actor: id, ...what, requestId, remoteAddress, ...states };
  const [written] = await tx.insert(audit).values(row).returning();
  if (!written) throw new Error('Postgres wrote no row');
  const event = {
    type: 'audit.entry',
    timestamp: written.at.toISOString(),
    data: { ...describeEntry(written), at: written.at.toISOString() },
  } as const;
  await recordEvents(tx, [{ accountId, event }]);
}

/** An entry as the API shows it. */
export const describeEntry = (row: typeof audit.$inferSelect): AuditEntry => ({
  id: row.id,
  at: unixSeconds(row.at),
  actor: row.actor,
  action: row.action,
  target: { kind: row.targetKind, id: row.targetId },
  request_id: row.requestId,
  remote_address: row.remoteAddress,
  before: row.before,
  after: row.after,
});

/** A person at the command line. */
export const byCli = (accountId: string): Actor => byItself('cli', accountId);

/** A process that makes a change without a request. */
export const byItself = (id: 'cli' | 'issuer', accountId: string): Actor => ({
  accountId,
  id,
  revision: null,
  requestId: null,
  remoteAddress: null,
});

/** The host of a URL: its path and query may hold a secret of its receiver. */
export const hostOf = (url: string): string => new URL(url).host;

/**
 * Makes a task that deletes entries some days after their change. Any number of issuers may run it.
 * @returns whether there may be more
 */
export function forgetAudit(db: Database, keptDays: number): () => Promise<boolean> {
  const old = lt(audit.at, sql`now() - ${keptDays} * interval '1 day'`);
  const some = sql`ctid in (select ctid from ${audit} where ${old} limit ${FORGOTTEN_AT_ONCE})`;
  return async () => {
    const gone = await db.delete(audit).where(some).returning({ id: audit.id });
    return gone.length === FORGOTTEN_AT_ONCE;
  };
}

/** Rows that one statement deletes. */
const FORGOTTEN_AT_ONCE = 5_000;
