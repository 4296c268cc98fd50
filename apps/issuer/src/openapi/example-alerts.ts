/** Examples of endpoints, deliveries and alerts. `examples.ts` has the answers that show them. */

export const ISSUED_AT = 1_767_225_000;
const WEBHOOK = '2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d';

export const webhook = {
  id: WEBHOOK,
  format: 'standard',
  url: 'https://example.com/webhooks',
  events: ['session.exhausted', 'usage.settled'],
  description: null,
  created_at: ISSUED_AT,
  previous_secret_expires_at: null,
  status: 'enabled',
  disabled_reason: null,
  disabled_at: null,
  failing_since: null,
  revision: 1,
};

export const webhookWithSecret = { ...webhook, secret: 'whsec_bm90IGEgc2VjcmV0OiBhbiBleGFtcGxlIG9mIG9uZQ==' };

export const alert = {
  id: '2f1e0d9c-8b7a-4695-8473-625140f3e2d1',
  name: 'Daily spend',
  condition: { spend: { window: 'day', time_zone: 'UTC', amount: 50_000_000 } },
  webhook: WEBHOOK,
  enabled: true,
  firing_since: 1_767_225_060,
  value: 61_204_000,
  threshold: 50_000_000,
  checked_at: 1_767_225_090,
  revision: 1,
  created_at: ISSUED_AT,
};

export const firing = {
  id: '3a2b1c0d-9e8f-4a7b-8c6d-5e4f3a2b1c0d',
  fired_at: 1_767_225_060,
  resolved_at: null,
  value: 50_012_000,
  threshold: 50_000_000,
  starts_at: 1_767_225_600,
  ends_at: 1_767_312_000,
  delivery: { status: 'delivered', attempts: 1, last_status: 204, last_error: null },
};

export const delivery = {
  id: '8c7b6a59-4d3e-4f2a-9b1c-0d9e8f7a6b5c',
  event_id: '4e5f6a7b-8c9d-4e0f-8a1b-2c3d4e5f6a7b',
  type: 'webhook.test',
  status: 'pending',
  attempts: 0,
  last_status: null,
  last_error: null,
  next_try_at: 1_767_225_060,
  created_at: 1_767_225_060,
  delivered_at: null,
};
