import { type PresignRequest, RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets, virtualKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';

/** What a grant takes over from its virtual key. */
export type VirtualKey = {
  readonly id: string;
  readonly credentialId: string;
  readonly config: Record<string, unknown> | null;
  /** Partition of its budget, which its grants must share; undefined without a budget. */
  readonly partition: number | undefined;
};

/** The virtual key a request names; it goes before `client_api_key` when both are given. */
export async function findVirtualKey(
  tx: Transaction,
  accountId: string,
  request: PresignRequest,
): Promise<VirtualKey | undefined> {
  if (request.virtual_key === undefined) return undefined;
  const [row] = await tx
    .select()
    .from(virtualKeys)
    .leftJoin(budgets, eq(budgets.id, virtualKeys.budgetId))
    .where(and(eq(virtualKeys.accountId, accountId), eq(virtualKeys.id, request.virtual_key)));
  const key = row?.virtual_keys;
  if (!key) throw refuse('this virtual key does not exist.');
  if (key.revokedAt) throw refuse('this virtual key has been revoked.');
  if (key.provider !== request.provider) throw refuse(`this virtual key is for ${key.provider}.`);
  return {
    id: key.id,
    credentialId: key.credentialId,
    config: key.config,
    partition: row.budgets?.partition,
  };
}

const refuse = (problem: string) =>
  new RefusedError({ code: 'invalid_request', param: 'virtual_key', message: `virtual_key: ${problem}` });
