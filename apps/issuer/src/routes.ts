import { createApiKey } from './api-keys/create-api-key.ts';
import { getApiKey } from './api-keys/get-api-key.ts';
import { listApiKeys } from './api-keys/list-api-keys.ts';
import { revokeApiKey } from './api-keys/revoke-api-key.ts';
import { revokeGrant } from './grants/revoke-grant.ts';
import { mcpPresign } from './mcp-presign.ts';
import { presign } from './presign.ts';
import { publicKeys } from './public-keys.ts';
import type { Route } from './route.ts';
import { getSession } from './sessions/get-session.ts';
import { listSessions } from './sessions/list-sessions.ts';
import { revokeSession } from './sessions/revoke-session.ts';
import { revokeSessions } from './sessions/revoke-sessions.ts';
import { getUsage } from './usage/get-usage.ts';
import { createVirtualKey } from './virtual-keys/create-virtual-key.ts';
import { deleteVirtualKey } from './virtual-keys/delete-virtual-key.ts';
import { getVirtualKey } from './virtual-keys/get-virtual-key.ts';
import { listVirtualKeys } from './virtual-keys/list-virtual-keys.ts';
import { rotateVirtualKey } from './virtual-keys/rotate-virtual-key.ts';
import { createWebhook } from './webhooks/create-webhook.ts';
import { deleteWebhook } from './webhooks/delete-webhook.ts';
import { enableWebhook } from './webhooks/enable-webhook.ts';
import { getWebhook } from './webhooks/get-webhook.ts';
import { listDeliveries } from './webhooks/list-deliveries.ts';
import { listWebhooks } from './webhooks/list-webhooks.ts';
import { replayDelivery } from './webhooks/replay-delivery.ts';
import { rotateWebhookSecret } from './webhooks/rotate-webhook-secret.ts';
import { testWebhook } from './webhooks/test-webhook.ts';

/** Every route of the API, by the name of its operation, in the order that its document has. */
export const ROUTES: Readonly<Record<string, Route>> = {
  presign,
  mcpPresign,
  listSessions,
  getSession,
  revokeSession,
  revokeSessions,
  revokeGrant,
  getUsage,
  createVirtualKey,
  listVirtualKeys,
  getVirtualKey,
  rotateVirtualKey,
  deleteVirtualKey,
  createApiKey,
  listApiKeys,
  getApiKey,
  revokeApiKey,
  createWebhook,
  listWebhooks,
  getWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  enableWebhook,
  testWebhook,
  listDeliveries,
  replayDelivery,
  publicKeys,
};
