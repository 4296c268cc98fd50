// Generated from docs/reference/openapi.json by `pnpm --filter @presign/client generate`. Do not edit.

/** The facts that the client needs to send an operation. */
export type Operation = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path, with its parameters in braces. */
  readonly path: string;
  /** The place of the fields that are not in the path. */
  readonly fields: 'body' | 'query';
  /** Whether it accepts an `Idempotency-Key`. */
  readonly idempotencyKey: boolean;
};

export type Operations = {
  /** Issue a signed URL for an LLM provider. */
  readonly presign: Operation;
  /** Issue a bundle of signed URLs for MCP servers. */
  readonly mcpPresign: Operation;
  /** List sessions, newest first, by external ids and status. */
  readonly listSessions: Operation;
  /** Revoke all grants of one of your own users or sessions, or of an API key. */
  readonly revokeSessions: Operation;
  /** Get a session and its grants, with their uses and spending. */
  readonly getSession: Operation;
  /** Name a session, set its metadata, or change all its live URLs. */
  readonly changeSession: Operation;
  /** Revoke a session and all its grants. */
  readonly revokeSession: Operation;
  /** List issued URLs with their limits, uses and spending, newest first. */
  readonly listGrants: Operation;
  /** Get one issued URL with its limits, uses and spending. */
  readonly getGrant: Operation;
  /** Raise, lower, extend or shorten an issued URL, or a bundle. */
  readonly changeGrant: Operation;
  /** Revoke one issued URL, or a bundle with its servers. */
  readonly revokeGrant: Operation;
  /** Sum settled calls over a range, as JSON or CSV. */
  readonly getUsage: Operation;
  /** Error rate and percentiles of the times of calls, by the hour. */
  readonly getUsageHours: Operation;
  /** Count refused calls by day and code. */
  readonly getRefusals: Operation;
  /** List calls, newest first, with their tokens, hold, cost and end, or how they were refused. */
  readonly listCalls: Operation;
  /** Get a call by the x-presign-request-id of its answer. */
  readonly getCall: Operation;
  /** List the calls like one within 60 seconds of it. */
  readonly listSimilarCalls: Operation;
  /** Find users and sessions by a part of their names. */
  readonly search: Operation;
  /** List changes, newest first: who made them, when, from where, before and after. */
  readonly listAudit: Operation;
  /** List the models that have a price. */
  readonly listModels: Operation;
  /** Get the limits of your API key, and those of every request. */
  readonly getLimits: Operation;
  /** Store a provider's key under an id of its own. */
  readonly createVirtualKey: Operation;
  /** List virtual keys, newest first, with the use and spending of their budgets. */
  readonly listVirtualKeys: Operation;
  /** Get a virtual key, with the use and spending of its budget. */
  readonly getVirtualKey: Operation;
  /** Rename a virtual key, or change its config or its budget. */
  readonly changeVirtualKey: Operation;
  /** Delete a virtual key, and end all URLs issued with it. */
  readonly deleteVirtualKey: Operation;
  /** Replace the provider's key of a virtual key. */
  readonly rotateVirtualKey: Operation;
  /** Create an API key. */
  readonly createApiKey: Operation;
  /** List API keys, newest first, without the keys themselves. */
  readonly listApiKeys: Operation;
  /** Get an API key, without the key itself. */
  readonly getApiKey: Operation;
  /** Rename an API key, or change its expiry, rate limit or policy, or take scopes from it. */
  readonly changeApiKey: Operation;
  /** Revoke an API key. */
  readonly revokeApiKey: Operation;
  /** Create an account with its first API key. */
  readonly createAccount: Operation;
  /** List accounts, newest first. */
  readonly listAccounts: Operation;
  /** Get an account. */
  readonly getAccount: Operation;
  /** Rename an account, or change its limits. */
  readonly changeAccount: Operation;
  /** Delete an account. */
  readonly deleteAccount: Operation;
  /** Get what an account spends this month and spent in the month before. */
  readonly getAccountUsage: Operation;
  /** Suspend an account. */
  readonly suspendAccount: Operation;
  /** End the suspension of an account. */
  readonly resumeAccount: Operation;
  /** Create a budget that URLs share, or a template that makes one for each user or value of a metadata key. */
  readonly createBudget: Operation;
  /** List shared budgets, newest first, with the figures of their present windows. */
  readonly listBudgets: Operation;
  /** Get a shared budget with the figures of its present window. */
  readonly getBudget: Operation;
  /** Raise, lower or rename a shared budget. */
  readonly changeBudget: Operation;
  /** Delete a shared budget. */
  readonly deleteBudget: Operation;
  /** Add an endpoint that receives events. */
  readonly createWebhook: Operation;
  /** List the endpoints that receive events. */
  readonly listWebhooks: Operation;
  /** Get an endpoint, and whether deliveries reach it. */
  readonly getWebhook: Operation;
  /** Change the URL, the events or the description of an endpoint. */
  readonly changeWebhook: Operation;
  /** Remove an endpoint with its log of deliveries. */
  readonly deleteWebhook: Operation;
  /** Give an endpoint a new secret; both sign for 24 hours. */
  readonly rotateWebhookSecret: Operation;
  /** Enable an endpoint that was disabled. */
  readonly enableWebhook: Operation;
  /** Send a test event to an endpoint. */
  readonly testWebhook: Operation;
  /** List an endpoint's deliveries, their attempts and the result of the last one. */
  readonly listDeliveries: Operation;
  /** Deliver an event again, whether or not it arrived. */
  readonly replayDelivery: Operation;
  /** Create an alert for a budget, spend or errors. */
  readonly createAlert: Operation;
  /** List alerts with their state, newest first. */
  readonly listAlerts: Operation;
  /** Get an alert, whether it fires, and its last figure. */
  readonly getAlert: Operation;
  /** Change, disable or enable an alert. */
  readonly changeAlert: Operation;
  /** Delete an alert with its history. */
  readonly deleteAlert: Operation;
  /** Send a test of an alert to its endpoint. */
  readonly testAlert: Operation;
  /** List the times that an alert fired, and how each was delivered. */
  readonly listFirings: Operation;
  /** Get the public keys that verify this issuer's tokens. */
  readonly publicKeys: Operation;
};

export const OPERATIONS: Operations = {
  presign: {"method":"POST","path":"/v1/presign","fields":"body","idempotencyKey":true},
  mcpPresign: {"method":"POST","path":"/v2/mcp-presign","fields":"body","idempotencyKey":true},
  listSessions: {"method":"GET","path":"/v1/sessions","fields":"query","idempotencyKey":false},
  revokeSessions: {"method":"DELETE","path":"/v1/sessions","fields":"query","idempotencyKey":false},
  getSession: {"method":"GET","path":"/v1/sessions/{id}","fields":"query","idempotencyKey":false},
  changeSession: {"method":"PATCH","path":"/v1/sessions/{id}","fields":"body","idempotencyKey":false},
  revokeSession: {"method":"DELETE","path":"/v1/sessions/{id}","fields":"query","idempotencyKey":false},
  listGrants: {"method":"GET","path":"/v1/grants","fields":"query","idempotencyKey":false},
  getGrant: {"method":"GET","path":"/v1/grants/{id}","fields":"query","idempotencyKey":false},
  changeGrant: {"method":"PATCH","path":"/v1/grants/{id}","fields":"body","idempotencyKey":false},
  revokeGrant: {"method":"DELETE","path":"/v1/grants/{id}","fields":"query","idempotencyKey":false},
  getUsage: {"method":"GET","path":"/v1/usage","fields":"query","idempotencyKey":false},
  getUsageHours: {"method":"GET","path":"/v1/usage/hours","fields":"query","idempotencyKey":false},
  getRefusals: {"method":"GET","path":"/v1/refusals","fields":"query","idempotencyKey":false},
  listCalls: {"method":"GET","path":"/v1/calls","fields":"query","idempotencyKey":false},
  getCall: {"method":"GET","path":"/v1/calls/{request_id}","fields":"query","idempotencyKey":false},
  listSimilarCalls: {"method":"GET","path":"/v1/calls/{request_id}/similar","fields":"query","idempotencyKey":false},
  search: {"method":"GET","path":"/v1/search","fields":"query","idempotencyKey":false},
  listAudit: {"method":"GET","path":"/v1/audit","fields":"query","idempotencyKey":false},
  listModels: {"method":"GET","path":"/v1/models","fields":"query","idempotencyKey":false},
  getLimits: {"method":"GET","path":"/v1/limits","fields":"query","idempotencyKey":false},
  createVirtualKey: {"method":"POST","path":"/v1/virtual-keys","fields":"body","idempotencyKey":true},
  listVirtualKeys: {"method":"GET","path":"/v1/virtual-keys","fields":"query","idempotencyKey":false},
  getVirtualKey: {"method":"GET","path":"/v1/virtual-keys/{id}","fields":"query","idempotencyKey":false},
  changeVirtualKey: {"method":"PATCH","path":"/v1/virtual-keys/{id}","fields":"body","idempotencyKey":false},
  deleteVirtualKey: {"method":"DELETE","path":"/v1/virtual-keys/{id}","fields":"query","idempotencyKey":false},
  rotateVirtualKey: {"method":"POST","path":"/v1/virtual-keys/{id}/rotate","fields":"body","idempotencyKey":true},
  createApiKey: {"method":"POST","path":"/v1/api-keys","fields":"body","idempotencyKey":true},
  listApiKeys: {"method":"GET","path":"/v1/api-keys","fields":"query","idempotencyKey":false},
  getApiKey: {"method":"GET","path":"/v1/api-keys/{id}","fields":"query","idempotencyKey":false},
  changeApiKey: {"method":"PATCH","path":"/v1/api-keys/{id}","fields":"body","idempotencyKey":false},
  revokeApiKey: {"method":"DELETE","path":"/v1/api-keys/{id}","fields":"query","idempotencyKey":false},
  createAccount: {"method":"POST","path":"/v1/accounts","fields":"body","idempotencyKey":true},
  listAccounts: {"method":"GET","path":"/v1/accounts","fields":"query","idempotencyKey":false},
  getAccount: {"method":"GET","path":"/v1/accounts/{id}","fields":"query","idempotencyKey":false},
  changeAccount: {"method":"PATCH","path":"/v1/accounts/{id}","fields":"body","idempotencyKey":false},
  deleteAccount: {"method":"DELETE","path":"/v1/accounts/{id}","fields":"query","idempotencyKey":false},
  getAccountUsage: {"method":"GET","path":"/v1/accounts/{id}/usage","fields":"query","idempotencyKey":false},
  suspendAccount: {"method":"POST","path":"/v1/accounts/{id}/suspend","fields":"query","idempotencyKey":true},
  resumeAccount: {"method":"POST","path":"/v1/accounts/{id}/resume","fields":"query","idempotencyKey":true},
  createBudget: {"method":"POST","path":"/v1/budgets","fields":"body","idempotencyKey":true},
  listBudgets: {"method":"GET","path":"/v1/budgets","fields":"query","idempotencyKey":false},
  getBudget: {"method":"GET","path":"/v1/budgets/{id}","fields":"query","idempotencyKey":false},
  changeBudget: {"method":"PATCH","path":"/v1/budgets/{id}","fields":"body","idempotencyKey":false},
  deleteBudget: {"method":"DELETE","path":"/v1/budgets/{id}","fields":"query","idempotencyKey":false},
  createWebhook: {"method":"POST","path":"/v1/webhooks","fields":"body","idempotencyKey":true},
  listWebhooks: {"method":"GET","path":"/v1/webhooks","fields":"query","idempotencyKey":false},
  getWebhook: {"method":"GET","path":"/v1/webhooks/{id}","fields":"query","idempotencyKey":false},
  changeWebhook: {"method":"PATCH","path":"/v1/webhooks/{id}","fields":"body","idempotencyKey":false},
  deleteWebhook: {"method":"DELETE","path":"/v1/webhooks/{id}","fields":"query","idempotencyKey":false},
  rotateWebhookSecret: {"method":"POST","path":"/v1/webhooks/{id}/rotate-secret","fields":"query","idempotencyKey":true},
  enableWebhook: {"method":"POST","path":"/v1/webhooks/{id}/enable","fields":"query","idempotencyKey":true},
  testWebhook: {"method":"POST","path":"/v1/webhooks/{id}/test","fields":"query","idempotencyKey":true},
  listDeliveries: {"method":"GET","path":"/v1/webhooks/{id}/deliveries","fields":"query","idempotencyKey":false},
  replayDelivery: {"method":"POST","path":"/v1/webhooks/{id}/deliveries/{delivery_id}/replay","fields":"query","idempotencyKey":true},
  createAlert: {"method":"POST","path":"/v1/alerts","fields":"body","idempotencyKey":true},
  listAlerts: {"method":"GET","path":"/v1/alerts","fields":"query","idempotencyKey":false},
  getAlert: {"method":"GET","path":"/v1/alerts/{id}","fields":"query","idempotencyKey":false},
  changeAlert: {"method":"PATCH","path":"/v1/alerts/{id}","fields":"body","idempotencyKey":false},
  deleteAlert: {"method":"DELETE","path":"/v1/alerts/{id}","fields":"query","idempotencyKey":false},
  testAlert: {"method":"POST","path":"/v1/alerts/{id}/test","fields":"query","idempotencyKey":true},
  listFirings: {"method":"GET","path":"/v1/alerts/{id}/firings","fields":"query","idempotencyKey":false},
  publicKeys: {"method":"GET","path":"/v1/keys","fields":"query","idempotencyKey":false},
};
