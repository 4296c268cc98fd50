import { randomUUID } from 'node:crypto';
import { seal } from '@presign/crypto';
import { type VirtualKeyRequest, virtualKeyAnswer, virtualKeyRequest } from '@presign/schema';
import { budgets, credentialContext, credentials, virtualKeys } from '@presign/schema/tables';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { choosePartition } from '../issue/choose-partition.ts';
import { findProvider } from '../issue/find-provider.ts';
import { route } from '../route.ts';
import { readVirtualKey, tellVirtualKey } from './tell-virtual-key.ts';

/** `POST /v1/virtual-keys`: keeps a provider's key under an id, that URLs may be issued with it. */
export const createVirtualKey = route(
  {
    method: 'post',
    path: '/v1/virtual-keys',
    summary: "Keep a provider's key under an id of its own",
    scope: 'admin',
    body: virtualKeyRequest,
    answer: virtualKeyAnswer,
    status: 201,
    errors: ['unknown_provider'],
  },
  (deps) =>
    async ({ apiKey: { accountId }, body }) => {
      const id = await inTime(keepVirtualKey(deps, accountId, body));
      return tellVirtualKey(deps.redis, await inTime(readVirtualKey(deps.db, accountId, id)));
    },
);

type Deps = Pick<IssuerDeps, 'db' | 'encryptionKeys' | 'providers' | 'now'>;

/**
 * Writes a virtual key with its credential and, where it has a budget, the budget of it.
 * @returns its id
 * @throws RefusedError `unknown_provider`
 */
export async function keepVirtualKey(
  { db, encryptionKeys, providers, now }: Deps,
  accountId: string,
  { provider, name, key, config, budget }: VirtualKeyRequest,
): Promise<string> {
  findProvider(providers, provider);
  const id = `vk_${randomUUID()}`;
  const credentialId = randomUUID();
  // Sealed before it leaves this process: neither Postgres nor Redis ever has it in clear.
  const sealed = seal(encryptionKeys, key, credentialContext(accountId, credentialId));
  const budgetId = budget ? randomUUID() : null;
  const createdAt = new Date(now());
  await db.transaction(async (tx) => {
    await tx.insert(credentials).values({ id: credentialId, accountId, sealed, createdAt });
    if (budgetId !== null) await tx.insert(budgets).values({ id: budgetId, ...limitsOf(budgetId, budget) });
    const row = { id, accountId, name, provider, credentialId, config: config ?? null, budgetId, createdAt };
    await tx.insert(virtualKeys).values(row);
  });
  return id;
}

/** All grants of the key come to lie in the partition of its budget, so that one script judges both. */
const limitsOf = (budgetId: string, budget: VirtualKeyRequest['budget']) => ({
  partition: choosePartition(budgetId),
  maxUses: budget?.max_uses === undefined || budget.max_uses === -1 ? null : budget.max_uses,
  costLimitMicrousd: budget?.cost_limit ?? null,
});
