import type { HttpBindings } from '@hono/node-server';
import { type AccountLimits, type ErrorCode, RefusedError, type SCOPES } from '@presign/schema';

/** Everything a request carries from middleware to route. */
export type IssuerEnv = {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    apiKey: ApiKey;
    /** Why the request was refused. `caller_left`: its caller has gone before the answer. */
    refused?: ErrorCode | 'caller_left';
    /** Reads the API key again. Refuses with 401 if it has been revoked or has expired since it was first checked. */
    authenticateAgain: () => Promise<void>;
  };
};

/** The API key that made a request, and what it may do. */
export type ApiKey = {
  readonly id: string;
  readonly accountId: string;
  /** It grows with each change of the key. */
  readonly revision: number;
  readonly scopes: readonly string[];
  /** Null: the operator's default. */
  readonly requestsPerMinute: number | null;
  readonly expiresAt: Date | null;
  /** Its policy, as it is stored. Null: it may issue everything. */
  readonly policy: unknown;
  /** The limits of its account. Null: none. */
  readonly limits: AccountLimits | null;
  /** Whether its account has or had shared budgets. */
  readonly hasBudgets: boolean;
};

/** The one who makes a change, as the audit log has it. */
export type Actor = {
  readonly accountId: string;
  /** The id of an API key, `cli` or `issuer`. */
  readonly id: string;
  /** That of the API key by which the request was judged. Null: there is no key. */
  readonly revision: number | null;
  /** Null: the change is no request. */
  readonly requestId: string | null;
  /** The other end of the connection: the address of the proxy, if there is one. */
  readonly remoteAddress: string | null;
};

/** The scopes of an API key: issue, read, or everything. */
export type Scope = (typeof SCOPES)[number];

/** Whether a key has a scope. `admin` includes every scope within an account, and not `operator`. */
export const hasScope = ({ scopes }: Pick<ApiKey, 'scopes'>, scope: Scope): boolean =>
  scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));

/**
 * Refuses a key without the scope.
 * @throws RefusedError `forbidden`
 */
export function requireScope(apiKey: ApiKey, scope: Scope | 'any'): void {
  if (scope === 'any' || hasScope(apiKey, scope)) return;
  throw new RefusedError({ code: 'forbidden', message: `This API key lacks the scope "${scope}".` });
}
