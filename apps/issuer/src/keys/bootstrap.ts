import { apiKeyHint, hashApiKey } from '@presign/crypto';
import { accounts, apiKeys } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { byItself, recordChange } from '../events/audit-log.ts';

/** The account of the operator's own key. */
export const FIRST_ACCOUNT = '00000000-0000-4000-8000-000000000001';

/**
 * Makes the operator's key valid, with the scopes `operator` and `admin` in the first account. A key that already
 * exists is not changed.
 */
export async function bootstrap(db: Database, apiKey: string): Promise<void> {
  await db.insert(accounts).values({ id: FIRST_ACCOUNT, name: 'default' }).onConflictDoNothing();
  const fields = { name: 'bootstrap', scopes: ['admin', 'operator'] };
  const row = { accountId: FIRST_ACCOUNT, hash: hashApiKey(apiKey), hint: apiKeyHint(apiKey), ...fields };
  await db.transaction(async (tx) => {
    const [created] = await tx
      .insert(apiKeys)
      .values({ id: crypto.randomUUID(), ...row })
      .onConflictDoNothing()
      .returning({ id: apiKeys.id });
    if (!created) return;
    const target = { kind: 'api_key', id: created.id } as const;
    const by = byItself('issuer', FIRST_ACCOUNT);
    await recordChange(tx, by, { action: 'api_key.created', target, after: fields });
  });
}
