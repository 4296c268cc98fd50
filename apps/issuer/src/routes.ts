import { revokeGrant } from './grants/revoke-grant.ts';
import { mcpPresign } from './issue/mcp-presign.ts';
import { presign } from './issue/presign.ts';
import { createApiKey } from './keys/api-keys.ts';
import { rotateVirtualKey } from './keys/change-virtual-key.ts';
import { deleteVirtualKey } from './keys/delete-virtual-key.ts';
import { getApiKey } from './keys/get-api-key.ts';
import { getVirtualKey } from './keys/get-virtual-key.ts';
import { listApiKeys } from './keys/list-api-keys.ts';
import { listVirtualKeys } from './keys/list-virtual-keys.ts';
import { publicKeys } from './keys/public-keys.ts';
import { revokeApiKey } from './keys/revoke-api-key.ts';
import { createVirtualKey } from './keys/virtual-keys.ts';
import type { Route } from './route.ts';
import { getSession } from './sessions/get-session.ts';
import { listSessions } from './sessions/list-sessions.ts';
import { revokeSession } from './sessions/revoke-session.ts';
import { revokeSessions } from './sessions/revoke-sessions.ts';
import { getUsage } from './usage/get-usage.ts';
import { deleteWebhook } from './webhooks/delete-webhook.ts';
import { listDeliveries } from './webhooks/deliveries.ts';
import { enableWebhook } from './webhooks/enable-webhook.ts';
import { createWebhook } from './webhooks/endpoints.ts';
import { getWebhook } from './webhooks/get-webhook.ts';
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
