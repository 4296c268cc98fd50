import { createAlert, deleteAlert, getAlert, listAlerts } from './alerts/alerts.ts';
import { changeAlert, testAlert } from './alerts/change-alert.ts';
import { listFirings } from './alerts/list-firings.ts';
import { changeBudget, deleteBudget } from './budgets/change-budget.ts';
import { createBudget } from './budgets/create-budget.ts';
import { getBudget, listBudgets } from './budgets/describe-budget.ts';
import { listAudit } from './events/list-audit.ts';
import { changeGrant, getGrant } from './grants/change-grant.ts';
import { listGrants } from './grants/list-grants.ts';
import { revokeGrant } from './grants/revoke.ts';
import { publicKeys } from './grants/sign.ts';
import { mcpPresign } from './issue/mcp-presign.ts';
import { listModels } from './issue/models.ts';
import { presign } from './issue/presign.ts';
import { getAccountUsage } from './keys/account-usage.ts';
import { changeAccount, createAccount, getAccount, listAccounts } from './keys/accounts.ts';
import { createApiKey, getApiKey, listApiKeys } from './keys/api-keys.ts';
import { changeApiKey, revokeApiKey } from './keys/change-api-key.ts';
import { changeVirtualKey, deleteVirtualKey } from './keys/change-virtual-key.ts';
import { getLimits } from './keys/get-limits.ts';
import { rotateVirtualKey } from './keys/rotate-virtual-key.ts';
import { deleteAccount, resumeAccount, suspendAccount } from './keys/suspend-account.ts';
import { createVirtualKey, getVirtualKey, listVirtualKeys } from './keys/virtual-keys.ts';
import type { Route } from './middleware/route.ts';
import { changeSession } from './sessions/change-session.ts';
import { getSession } from './sessions/get-session.ts';
import { listSessions } from './sessions/list-sessions.ts';
import { revokeSession, revokeSessions } from './sessions/revoke-sessions.ts';
import { getCall, listCalls } from './usage/calls.ts';
import { getUsageHours } from './usage/get-hours.ts';
import { getUsage } from './usage/get-usage.ts';
import { getRefusals } from './usage/refused.ts';
import { search } from './usage/search.ts';
import { listSimilarCalls } from './usage/similar-calls.ts';
import { changeWebhook, enableWebhook, rotateWebhookSecret } from './webhooks/change-webhook.ts';
import { listDeliveries, replayDelivery, testWebhook } from './webhooks/deliveries.ts';
import { createWebhook, deleteWebhook, getWebhook, listWebhooks } from './webhooks/endpoints.ts';

/** Every route of the API by its operation id, in the order of the OpenAPI document. */
export const ROUTES: Readonly<Record<string, Route>> = {
  presign,
  mcpPresign,
  listSessions,
  getSession,
  changeSession,
  revokeSession,
  revokeSessions,
  listGrants,
  getGrant,
  changeGrant,
  revokeGrant,
  getUsage,
  getUsageHours,
  getRefusals,
  listCalls,
  getCall,
  listSimilarCalls,
  search,
  listAudit,
  listModels,
  getLimits,
  createVirtualKey,
  listVirtualKeys,
  getVirtualKey,
  changeVirtualKey,
  rotateVirtualKey,
  deleteVirtualKey,
  createApiKey,
  listApiKeys,
  getApiKey,
  changeApiKey,
  revokeApiKey,
  createAccount,
  listAccounts,
  getAccount,
  getAccountUsage,
  changeAccount,
  suspendAccount,
  resumeAccount,
  deleteAccount,
  createBudget,
  listBudgets,
  getBudget,
  changeBudget,
  deleteBudget,
  createWebhook,
  listWebhooks,
  getWebhook,
  changeWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  enableWebhook,
  testWebhook,
  listDeliveries,
  replayDelivery,
  createAlert,
  listAlerts,
  getAlert,
  changeAlert,
  deleteAlert,
  testAlert,
  listFirings,
  publicKeys,
};
