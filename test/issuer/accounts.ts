import { randomUUID } from 'node:crypto';
import { apiKeyHint, generateApiKey, hashApiKey, readEncryptionKeys, seal } from '@presign/crypto';
import { homePartition } from '@presign/schema';
import {
  accounts,
  apiKeys,
  budgets,
  credentialContext,
  credentials,
  virtualKeys,
} from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import type { Stack } from '../harness/stack.ts';

export type Account = { readonly id: string; readonly apiKey: string };

/** The account that the stack's own key belongs to. */
export async function ownAccount(stack: Stack): Promise<string> {
  const [row] = await stack.db
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.hash, hashApiKey(stack.apiKey)));
  return row?.accountId ?? '';
}

/** Another account with one API key that may presign. */
export async function addAccount(stack: Stack): Promise<Account> {
  const id = randomUUID();
  await stack.db.insert(accounts).values({ id, name: 'another' });
  return { id, apiKey: await addApiKey(stack, id) };
}

/** An API key of an account, as the issuer would have made it. */
export async function addApiKey(
  stack: Stack,
  accountId: string,
  fields: Partial<typeof apiKeys.$inferInsert> = {},
): Promise<string> {
  const apiKey = generateApiKey();
  await stack.db.insert(apiKeys).values({
    id: randomUUID(),
    accountId,
    name: 'test',
    hash: hashApiKey(apiKey),
    hint: apiKeyHint(apiKey),
    scopes: ['presign'],
    ...fields,
  });
  return apiKey;
}

/** A virtual key of an account, with a budget in the home partition of the account. `budget` is its `max_uses`. */
export async function addVirtualKey(
  stack: Stack,
  accountId: string,
  fields: Partial<typeof virtualKeys.$inferInsert> & {
    readonly secret?: string;
    readonly budget?: number;
  } = {},
): Promise<string> {
  const { secret = 'sk-of-virtual-key', budget, ...row } = fields;
  const id = `vk_${randomUUID()}`;
  const credentialId = randomUUID();
  const keys = readEncryptionKeys(stack.keys.encryption);
  const sealed = seal(keys, secret, credentialContext(accountId, credentialId));
  await stack.db.insert(credentials).values({ id: credentialId, accountId, sealed });
  const budgetId = randomUUID();
  await stack.db
    .insert(budgets)
    .values({ id: budgetId, partition: homePartition(accountId), maxUses: budget });
  await stack.db
    .insert(virtualKeys)
    .values({ id, accountId, name: 'test', provider: 'openai', credentialId, budgetId, ...row });
  return id;
}
