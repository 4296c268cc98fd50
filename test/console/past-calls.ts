import { addLateCalls, addToHours, holdMarks } from '@presign/issuer';
import { ledger } from '@presign/schema/ledger-tables';
import { inArray } from 'drizzle-orm';
import type { Stack } from '../harness/stack.ts';
import { addToLedger, type LedgerRow } from '../issuer/ask-usage.ts';

/** Adds calls with the same fields that settled at any time, to the ledger and to the sums that are made of it. */
export async function addPastCalls({ db }: Pick<Stack, 'db'>, calls: readonly LedgerRow[]): Promise<void> {
  const ids = calls.map(({ holdId }) => holdId);
  await db.transaction(async (tx) => {
    // Sums must not move on between the steps.
    await holdMarks(tx);
    await addToLedger({ db: tx }, calls);
    await addLateCalls(tx, ids);
    await addToHours(tx, await tx.select().from(ledger).where(inArray(ledger.holdId, ids)));
  });
}
