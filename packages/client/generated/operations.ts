// Made of docs/reference/openapi.json by `pnpm --filter @presign/client generate`: do not edit.

import type { operations } from './types.ts';

/** What it takes to send an operation. */
export type Operation = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With its parameters in braces. */
  readonly path: string;
  /** Where fields go that are not in the path. */
  readonly fields: 'body' | 'query';
  /** Whether it takes an `Idempotency-Key`. */
  readonly idempotencyKey: boolean;
};

export const OPERATIONS = {
  /** Issue a signed URL for an LLM provider. */
  presign: {"method":"POST","path":"/v1/presign","fields":"body","idempotencyKey":true},
  /** Issue a bundle of signed URLs for MCP servers. */
  mcpPresign: {"method":"POST","path":"/v2/mcp-presign","fields":"body","idempotencyKey":true},
  /** Sessions, newest first, by external ids and status. */
  listSessions: {"method":"GET","path":"/v1/sessions","fields":"query","idempotencyKey":false},
  /** Revoke all grants of one of your own users or sessions. */
  revokeSessions: {"method":"DELETE","path":"/v1/sessions","fields":"query","idempotencyKey":false},
  /** A session and its grants, with what of them is used and spent. */
  getSession: {"method":"GET","path":"/v1/sessions/{id}","fields":"query","idempotencyKey":false},
  /** Revoke a session with all its grants. */
  revokeSession: {"method":"DELETE","path":"/v1/sessions/{id}","fields":"query","idempotencyKey":false},
  /** Revoke one issued URL, or a bundle with its servers. */
  revokeGrant: {"method":"DELETE","path":"/v1/grants/{id}","fields":"query","idempotencyKey":false},
  /** Settled calls summed over a range, as JSON or CSV. */
  getUsage: {"method":"GET","path":"/v1/usage","fields":"query","idempotencyKey":false},
  /** Keep a provider's key under an id of its own. */
  createVirtualKey: {"method":"POST","path":"/v1/virtual-keys","fields":"body","idempotencyKey":false},
  /** Virtual keys, newest first, with what of their budgets is used and spent. */
  listVirtualKeys: {"method":"GET","path":"/v1/virtual-keys","fields":"query","idempotencyKey":false},
  /** A virtual key, with what of its budget is used and spent. */
  getVirtualKey: {"method":"GET","path":"/v1/virtual-keys/{id}","fields":"query","idempotencyKey":false},
  /** Delete a virtual key: all URLs issued with it are refused. */
  deleteVirtualKey: {"method":"DELETE","path":"/v1/virtual-keys/{id}","fields":"query","idempotencyKey":false},
  /** Replace the provider's key, for URLs that are issued already, too. */
  rotateVirtualKey: {"method":"POST","path":"/v1/virtual-keys/{id}/rotate","fields":"body","idempotencyKey":false},
  /** Create an API key, which is shown this once. */
  createApiKey: {"method":"POST","path":"/v1/api-keys","fields":"body","idempotencyKey":false},
  /** API keys, newest first, without the keys themselves. */
  listApiKeys: {"method":"GET","path":"/v1/api-keys","fields":"query","idempotencyKey":false},
  /** An API key, without the key itself. */
  getApiKey: {"method":"GET","path":"/v1/api-keys/{id}","fields":"query","idempotencyKey":false},
  /** Revoke an API key. */
  revokeApiKey: {"method":"DELETE","path":"/v1/api-keys/{id}","fields":"query","idempotencyKey":false},
  /** Add an endpoint that is told of events. */
  createWebhook: {"method":"POST","path":"/v1/webhooks","fields":"body","idempotencyKey":false},
  /** List the endpoints that are told of events. */
  listWebhooks: {"method":"GET","path":"/v1/webhooks","fields":"query","idempotencyKey":false},
  /** An endpoint and whether it is reached. */
  getWebhook: {"method":"GET","path":"/v1/webhooks/{id}","fields":"query","idempotencyKey":false},
  /** Remove an endpoint with its log of deliveries. */
  deleteWebhook: {"method":"DELETE","path":"/v1/webhooks/{id}","fields":"query","idempotencyKey":false},
  /** Give an endpoint a new secret; both sign for 24 hours. */
  rotateWebhookSecret: {"method":"POST","path":"/v1/webhooks/{id}/rotate-secret","fields":"query","idempotencyKey":false},
  /** Send to an endpoint again that was disabled. */
  enableWebhook: {"method":"POST","path":"/v1/webhooks/{id}/enable","fields":"query","idempotencyKey":false},
  /** Send a test event to an endpoint. */
  testWebhook: {"method":"POST","path":"/v1/webhooks/{id}/test","fields":"query","idempotencyKey":false},
  /** An endpoint's deliveries, their attempts and how the last one ended. */
  listDeliveries: {"method":"GET","path":"/v1/webhooks/{id}/deliveries","fields":"query","idempotencyKey":false},
  /** Deliver an event again, whether or not it arrived. */
  replayDelivery: {"method":"POST","path":"/v1/webhooks/{id}/deliveries/{delivery_id}/replay","fields":"query","idempotencyKey":false},
  /** The public keys that verify this issuer's tokens. */
  publicKeys: {"method":"GET","path":"/v1/keys","fields":"query","idempotencyKey":false},
} as const satisfies Record<keyof operations, Operation>;
