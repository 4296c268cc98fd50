import type { Scope } from '@presign/client';

/** Says what each scope allows. */
export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  presign: 'issue, change and revoke URLs',
  read: 'see spending, calls, URLs, budgets, virtual keys and the audit log',
  admin: 'everything in this account, also keys, budgets and webhooks',
  operator: 'create, limit, suspend and delete all accounts, and nothing in them',
};

/** The order in which they are shown. */
export const SCOPES = Object.keys(SCOPE_WORDS) as Scope[];
