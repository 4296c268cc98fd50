import {
  ISSUE_LIMITS,
  type KeyPolicy,
  type LimitRange,
  type LimitsAnswer,
  limitsAnswer,
  NO_LIMITS,
  REQUEST_LIMITS,
  SCOPES,
} from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import type { ApiKey } from '../identity/caller.ts';
import { hasScope } from '../identity/caller.ts';
import { readPolicy } from '../issue/obey-policy.ts';
import { route } from '../middleware/route.ts';

/** `GET /v1/limits`: what the API key of the request may issue, and how large its requests may be. */
export const getLimits = route(
  {
    method: 'get',
    path: '/v1/limits',
    summary: 'Get the limits of your API key, and those of every request',
    description:
      'The ranges of what it may issue are those that its policy and the limits of its account leave.',
    scope: 'any',
    answer: limitsAnswer,
    errors: ['policy_forbids'],
  },
  ({ db, requestsPerMinute, usageMetadata }) =>
    async ({ apiKey }) => {
      const names = await namesOf(db, apiKey);
      return {
        api_key: {
          id: apiKey.id,
          name: names.key,
          scopes: SCOPES.filter((scope) => apiKey.scopes.includes(scope)),
          expires_at: apiKey.expiresAt && unixSeconds(apiKey.expiresAt),
          requests_per_minute: apiKey.requestsPerMinute ?? requestsPerMinute,
          policy: apiKey.policy as LimitsAnswer['api_key']['policy'],
        },
        account: { ...NO_LIMITS, ...apiKey.limits },
        account_name: names.account,
        usage_metadata: [...usageMetadata],
        ...issuing(apiKey),
        requests: REQUEST_LIMITS,
      };
    },
);

async function namesOf(db: Database, { id }: ApiKey): Promise<{ key: string; account: string }> {
  const [names] = await db
    .select({ key: apiKeys.name, account: accounts.name })
    .from(apiKeys)
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(eq(apiKeys.id, id));
  // Retention deletes a key long after it has ended, and an ended key makes no request.
  return names ?? { key: '', account: '' };
}

/** The limits of both kinds of issuing. Null: the key may not issue them. */
function issuing(apiKey: ApiKey): Pick<LimitsAnswer, 'presign' | 'mcp_presign'> {
  const policy = readPolicy(apiKey);
  if (!hasScope(apiKey, 'presign')) return { presign: null, mcp_presign: null };
  const { providers, required = [] } = policy ?? {};
  const most = { ...policy?.highest, ...mostCost(apiKey, policy) };
  return {
    presign: providers?.every((name) => name === 'mcp')
      ? null
      : narrowed(ISSUE_LIMITS.presign, most, required),
    mcp_presign:
      providers?.includes('mcp') === false ? null : narrowed(ISSUE_LIMITS.mcp_presign, most, required),
  };
}

type Highest = Partial<NonNullable<KeyPolicy['highest']>>;

/** The lower of the highest costs that the policy and the account allow. */
function mostCost({ limits }: ApiKey, policy: KeyPolicy | undefined): Highest {
  const most = limits?.cost_limit ?? null;
  return most === null ? {} : { cost_limit: Math.min(most, policy?.highest?.cost_limit ?? most) };
}

type Ranges = { readonly expires_in: LimitRange };

/** The same limits, narrowed by a policy and the account. */
function narrowed<L extends Ranges>(limits: L, highest: Highest, required: readonly string[]): L {
  const entries = Object.entries(limits).map(([name, limit]): [string, unknown] => {
    if (typeof limit === 'number') return [name, limit];
    const range = limit as LimitRange;
    const most = highest[name as keyof typeof highest];
    const maximum = Math.min(range.maximum, most ?? range.maximum);
    // A policy's longest validity shortens the default validity. Any other limit of a policy must be in the request.
    const isNeeded = range.default === null && (most !== undefined || required.includes(name));
    const usual = range.default && Math.min(range.default, maximum);
    return [name, { ...range, maximum, default: usual, required: isNeeded }];
  });
  return Object.fromEntries(entries) as L;
}
