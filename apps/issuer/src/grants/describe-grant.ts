import { type GrantAnswer, type McpServerPolicy, type SessionGrant, showLimits } from '@presign/schema';
import { statusOfGrant } from '@presign/schema/grant-status';
import type { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { unixSeconds } from '../answers/unix-seconds.ts';

/** A grant with its own budget, and its virtual key if it has one. */
export type GrantRow = {
  readonly grants: typeof grants.$inferSelect;
  readonly budgets: typeof budgets.$inferSelect;
  readonly virtual_keys: typeof virtualKeys.$inferSelect | null;
};

type Revocable = { readonly revokedAt: Date | null };
type Live = NonNullable<SessionGrant['live']>;

/** A grant as its owner sees it. */
export const describeGrant = (
  row: GrantRow,
  live: Live | null,
  session: Revocable,
  now: number,
): SessionGrant => {
  const { grants: grant, budgets: budget, virtual_keys: virtualKey } = row;
  const settled = { used: budget.used, spent: budget.settledMicrousd };
  const figures = { used: (live ?? settled).used, spentMicrousd: (live ?? settled).spent };
  return {
    id: grant.id,
    kind: grant.kind,
    provider: grant.provider,
    method: grant.method,
    paths: grant.paths && [...grant.paths],
    models: grant.models && [...grant.models],
    server: grant.server && serverOf(grant.server),
    bundle_id: grant.bundleId,
    external_session: grant.externalSession,
    external_user: grant.externalUser,
    virtual_key: grant.virtualKeyId,
    api_key: grant.apiKeyId,
    metadata: grant.metadata,
    issued_at: unixSeconds(grant.issuedAt),
    expires_at: unixSeconds(grant.expiresAt),
    status: statusOfGrant({ grant, session, virtualKey, budget, figures }, now),
    ...showLimits(budget),
    conditions: grant.conditions,
    shared_budgets: [...(grant.sharedBudgetIds ?? [])],
    revision: budget.revision,
    settled,
    live,
  };
};

/** A grant as its owner sees it by itself, with its session. */
export const describeOwn = (
  row: GrantRow & { readonly sessions: typeof sessions.$inferSelect },
  live: Live | null,
  now: number,
): GrantAnswer => ({
  ...describeGrant(row, live, row.sessions, now),
  session_id: row.sessions.id,
  session_name: row.sessions.name,
});

const serverOf = ({ name, url, transport, tools, arguments: conditions }: McpServerPolicy) => ({
  name,
  url,
  transport,
  tools: tools ? [...tools] : null,
  arguments: conditions ?? null,
});
