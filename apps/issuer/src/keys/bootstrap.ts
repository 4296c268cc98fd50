import { apiKeyHint, hashApiKey } from '@presign/crypto';
import type { Database } from '@presign/schema/database';
import { accounts, apiKeys } from '@presign/schema/tables';

/** The account of the operator's own key. */
export const FIRST_ACCOUNT = '00000000-0000-4000-8000-000000000001';

/** Makes the operator's key valid, as an admin of the first account. A key that already exists is not changed. */
export async function bootstrap(db: Database, apiKey: string): Promise<void> {
  await db.insert(accounts).values({ id: FIRST_ACCOUNT, name: 'default' }).onConflictDoNothing();
  await db
    .insert(apiKeys)
    .values({
      id: crypto.randomUUID(),
      accountId: FIRST_ACCOUNT,
      name: 'bootstrap',
      hash: hashApiKey(apiKey),
      hint: apiKeyHint(apiKey),
      scopes: ['admin'],
    })
    .onConflictDoNothing();
}
