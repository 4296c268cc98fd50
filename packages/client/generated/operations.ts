// Generated from docs/reference/openapi.json by `pnpm --filter @presign/client generate`. Do not edit.

import type { operations } from './types.ts';

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

export const OPERATIONS = {
  /** Issue a signed URL for an LLM provider. */
  presign: {"method":"POST","path":"/v1/presign","fields":"body","idempotencyKey":true},
  /** Issue a bundle of signed URLs for MCP servers. */
  mcpPresign: {"method":"POST","path":"/v2/mcp-presign","fields":"body","idempotencyKey":true},
  /** List sessions, newest first, by external ids and status. */
  listSessions: {"method":"GET","path":"/v1/sessions","fields":"query","idempotencyKey":false},
  /** Revoke all grants of one of your own users or sessions, or of an API key. */
  revokeSessions: {"method":"DELETE","path":"/v1/sessions","fields":"query","idempotencyKey":false},
  /** Get a session and its grants, with their uses and spending. */
  getSession: {"method":"GET","path":"/v1/sessions/{id}","fields":"query","idempotencyKey":false},
  /** Name a session, set its metadata, or change all its live URLs. */
  changeSession: {"method":"PATCH","path":"/v1/sessions/{id}","fields":"body","idempotencyKey":false},
  /** Revoke a session and all its grants. */
  revokeSession: {"method":"DELETE","path":"/v1/sessions/{id}","fields":"query","idempotencyKey":false},
  /** Get one issued URL with its limits, uses and spending. */
  getGrant: {"method":"GET","path":"/v1/grants/{id}","fields":"query","idempotencyKey":false},
  /** Raise, lower, extend or shorten an issued URL, or a bundle. */
  changeGrant: {"method":"PATCH","path":"/v1/grants/{id}","fields":"body","idempotencyKey":false},
  /** Revoke one issued URL, or a bundle with its servers. */
  revokeGrant: {"method":"DELETE","path":"/v1/grants/{id}","fields":"query","idempotencyKey":false},
  /** Sum settled calls over a range, as JSON or CSV. */
  getUsage: {"method":"GET","path":"/v1/usage","fields":"query","idempotencyKey":false},
  /** Error rate and percentiles of the times of calls, by the hour. */
  getUsageHours: {"method":"GET","path":"/v1/usage/hours","fields":"query","idempotencyKey":false},
  /** Count refused calls by day and code. */
  getRefusals: {"method":"GET","path":"/v1/refusals","fields":"query","idempotencyKey":false},
  /** List calls, newest first, with their tokens, hold, cost and end, or how they were refused. */
  listCalls: {"method":"GET","path":"/v1/calls","fields":"query","idempotencyKey":false},
  /** Get a call by the x-presign-request-id of its answer. */
  getCall: {"method":"GET","path":"/v1/calls/{request_id}","fields":"query","idempotencyKey":false},
  /** List the calls like one within 60 seconds of it. */
  listSimilarCalls: {"method":"GET","path":"/v1/calls/{request_id}/similar","fields":"query","idempotencyKey":false},
  /** List changes, newest first: who made them, when, from where, before and after. */
  listAudit: {"method":"GET","path":"/v1/audit","fields":"query","idempotencyKey":false},
  /** List the models that have a price. */
  listModels: {"method":"GET","path":"/v1/models","fields":"query","idempotencyKey":false},
  /** Get the limits of your API key, and those of every request. */
  getLimits: {"method":"GET","path":"/v1/limits","fields":"query","idempotencyKey":false},
  /** Store a provider's key under an id of its own. */
  createVirtualKey: {"method":"POST","path":"/v1/virtual-keys","fields":"body","idempotencyKey":true},
  /** List virtual keys, newest first, with the use and spending of their budgets. */
  listVirtualKeys: {"method":"GET","path":"/v1/virtual-keys","fields":"query","idempotencyKey":false},
  /** Get a virtual key, with the use and spending of its budget. */
  getVirtualKey: {"method":"GET","path":"/v1/virtual-keys/{id}","fields":"query","idempotencyKey":false},
  /** Rename a virtual key, or change its config or its budget. */
  changeVirtualKey: {"method":"PATCH","path":"/v1/virtual-keys/{id}","fields":"body","idempotencyKey":false},
  /** Delete a virtual key, and end all URLs issued with it. */
  deleteVirtualKey: {"method":"DELETE","path":"/v1/virtual-keys/{id}","fields":"query","idempotencyKey":false},
  /** Replace the provider's key of a virtual key. */
  rotateVirtualKey: {"method":"POST","path":"/v1/virtual-keys/{id}/rotate","fields":"body","idempotencyKey":true},
  /** Create an API key. */
  createApiKey: {"method":"POST","path":"/v1/api-keys","fields":"body","idempotencyKey":true},
  /** List API keys, newest first, without the keys themselves. */
  listApiKeys: {"method":"GET","path":"/v1/api-keys","fields":"query","idempotencyKey":false},
  /** Get an API key, without the key itself. */
  getApiKey: {"method":"GET","path":"/v1/api-keys/{id}","fields":"query","idempotencyKey":false},
  /** Rename an API key, or change its expiry, rate limit or policy, or take scopes from it. */
  changeApiKey: {"method":"PATCH","path":"/v1/api-keys/{id}","fields":"body","idempotencyKey":false},
  /** Revoke an API key. */
  revokeApiKey: {"method":"DELETE","path":"/v1/api-keys/{id}","fields":"query","idempotencyKey":false},
  /** Create an account with its first API key. */
  createAccount: {"method":"POST","path":"/v1/accounts","fields":"body","idempotencyKey":true},
  /** List accounts, newest first. */
  listAccounts: {"method":"GET","path":"/v1/accounts","fields":"query","idempotencyKey":false},
  /** Get an account. */
  getAccount: {"method":"GET","path":"/v1/accounts/{id}","fields":"query","idempotencyKey":false},
  /** Rename an account, or change its limits. */
  changeAccount: {"method":"PATCH","path":"/v1/accounts/{id}","fields":"body","idempotencyKey":false},
  /** Delete an account. */
  deleteAccount: {"method":"DELETE","path":"/v1/accounts/{id}","fields":"query","idempotencyKey":false},
  /** Get what an account spends this month and spent in the month before. */
  getAccountUsage: {"method":"GET","path":"/v1/accounts/{id}/usage","fields":"query","idempotencyKey":false},
  /** Suspend an account. */
  suspendAccount: {"method":"POST","path":"/v1/accounts/{id}/suspend","fields":"query","idempotencyKey":true},
  /** End the suspension of an account. */
  resumeAccount: {"method":"POST","path":"/v1/accounts/{id}/resume","fields":"query","idempotencyKey":true},
  /** Create a budget that URLs share, or a template that makes one for each user or value of a metadata key. */
  createBudget: {"method":"POST","path":"/v1/budgets","fields":"body","idempotencyKey":true},
  /** List shared budgets, newest first, with the figures of their present windows. */
  listBudgets: {"method":"GET","path":"/v1/budgets","fields":"query","idempotencyKey":false},
  /** Get a shared budget with the figures of its present window. */
  getBudget: {"method":"GET","path":"/v1/budgets/{id}","fields":"query","idempotencyKey":false},
  /** Raise, lower or rename a shared budget. */
  changeBudget: {"method":"PATCH","path":"/v1/budgets/{id}","fields":"body","idempotencyKey":false},
  /** Delete a shared budget. */
  deleteBudget: {"method":"DELETE","path":"/v1/budgets/{id}","fields":"query","idempotencyKey":false},
  /** Add an endpoint that receives events. */
  createWebhook: {"method":"POST","path":"/v1/webhooks","fields":"body","idempotencyKey":true},
  /** List the endpoints that receive events. */
  listWebhooks: {"method":"GET","path":"/v1/webhooks","fields":"query","idempotencyKey":false},
  /** Get an endpoint, and whether deliveries reach it. */
  getWebhook: {"method":"GET","path":"/v1/webhooks/{id}","fields":"query","idempotencyKey":false},
  /** Change the URL, the events or the description of an endpoint. */
  changeWebhook: {"method":"PATCH","path":"/v1/webhooks/{id}","fields":"body","idempotencyKey":false},
  /** Remove an endpoint with its log of deliveries. */
  deleteWebhook: {"method":"DELETE","path":"/v1/webhooks/{id}","fields":"query","idempotencyKey":false},
  /** Give an endpoint a new secret; both sign for 24 hours. */
  rotateWebhookSecret: {"method":"POST","path":"/v1/webhooks/{id}/rotate-secret","fields":"query","idempotencyKey":true},
  /** Enable an endpoint that was disabled. */
  enableWebhook: {"method":"POST","path":"/v1/webhooks/{id}/enable","fields":"query","idempotencyKey":true},
  /** Send a test event to an endpoint. */
  testWebhook: {"method":"POST","path":"/v1/webhooks/{id}/test","fields":"query","idempotencyKey":true},
  /** List an endpoint's deliveries, their attempts and the result of the last one. */
  listDeliveries: {"method":"GET","path":"/v1/webhooks/{id}/deliveries","fields":"query","idempotencyKey":false},
  /** Deliver an event again, whether or not it arrived. */
  replayDelivery: {"method":"POST","path":"/v1/webhooks/{id}/deliveries/{delivery_id}/replay","fields":"query","idempotencyKey":true},
  /** Create an alert for a budget, spend or errors. */
  createAlert: {"method":"POST","path":"/v1/alerts","fields":"body","idempotencyKey":true},
  /** List alerts with their state, newest first. */
  listAlerts: {"method":"GET","path":"/v1/alerts","fields":"query","idempotencyKey":false},
  /** Get an alert, whether it fires, and its last figure. */
  getAlert: {"method":"GET","path":"/v1/alerts/{id}","fields":"query","idempotencyKey":false},
  /** Change, disable or enable an alert. */
  changeAlert: {"method":"PATCH","path":"/v1/alerts/{id}","fields":"body","idempotencyKey":false},
  /** Delete an alert with its history. */
  deleteAlert: {"method":"DELETE","path":"/v1/alerts/{id}","fields":"query","idempotencyKey":false},
  /** Send a test of an alert to its endpoint. */
  testAlert: {"method":"POST","path":"/v1/alerts/{id}/test","fields":"query","idempotencyKey":true},
  /** List the times that an alert fired, and how each was delivered. */
  listFirings: {"method":"GET","path":"/v1/alerts/{id}/firings","fields":"query","idempotencyKey":false},
  /** Get the public keys that verify this issuer's tokens. */
  publicKeys: {"method":"GET","path":"/v1/keys","fields":"query","idempotencyKey":false},
} as const satisfies Record<keyof operations, Operation>;
