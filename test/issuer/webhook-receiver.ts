import { setTimeout as sleep } from 'node:timers/promises';
import { type DeliveryAnswer, type WebhookEvent, webhookEvent, webhookWithSecret } from '@presign/schema';
import { webhookDeliveries } from '@presign/schema/webhook-tables';
import { and, eq, sql } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { expect } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import type { Stack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from './ask.ts';

type To = { readonly issuerUrl: string; readonly apiKey: string };

export type Endpoint = {
  readonly id: string;
  readonly secret: string;
  /** Every request that came, by `webhook-id`. */
  readonly ids: () => string[];
  /** What came and was verified with the endpoint's secret by the library, by the time it came. */
  readonly events: () => WebhookEvent[];
  readonly upstream: Upstream;
};

/** A receiver on a socket of its own, and the endpoint that leads to it. */
export async function addEndpoint(
  to: To,
  options: { readonly events?: readonly string[]; readonly answer?: Answer } = {},
): Promise<Endpoint> {
  const upstream = await startUpstream(
    options.answer ?? ((_seen, response) => void response.writeHead(204).end()),
  );
  const made = await send(to, {
    path: '/v1/webhooks',
    body: { url: `${upstream.url}/hook`, ...(options.events ? { events: options.events } : {}) },
  });
  expect(made.status, made.text).toBe(201);
  const { id, secret } = webhookWithSecret.parse(JSON.parse(made.text));
  return {
    id,
    secret,
    upstream,
    ids: () => upstream.seen.map((seen) => String(seen.headers['webhook-id'])),
    events: () => upstream.seen.map((seen) => verified(secret, seen)),
  };
}

/** What a request says, once the library has accepted it; and of a form that is documented. */
export function verified(secret: string, seen: Upstream['seen'][number]): WebhookEvent {
  const headers = seen.headers as Record<string, string>;
  return webhookEvent.parse(new Webhook(secret).verify(seen.body, headers));
}

/** Waits until so many requests have come. */
export const arrived = (endpoint: Endpoint, count: number): Promise<true> =>
  eventually(async () => (endpoint.upstream.seen.length >= count ? true : undefined));

/** A moment in which something more would have come. */
export const quiet = (): Promise<void> => sleep(2_500);

/** The log of an endpoint, newest first. */
export async function deliveriesOf(
  to: To,
  { id }: { readonly id: string },
  query = '',
): Promise<DeliveryAnswer[]> {
  const sent = await send(to, { method: 'GET', path: `/v1/webhooks/${id}/deliveries${query}` });
  expect(sent.status, sent.text).toBe(200);
  return (JSON.parse(sent.text) as { data: DeliveryAnswer[] }).data;
}

/** Waits until the newest delivery is as it should be. */
export const settledAs = (to: To, endpoint: { readonly id: string }, wanted: Partial<DeliveryAnswer>) =>
  eventually(async () => {
    const [newest] = await deliveriesOf(to, endpoint);
    const same = Object.entries(wanted).every(
      ([name, value]) => newest?.[name as keyof DeliveryAnswer] === value,
    );
    return newest && same ? newest : undefined;
  });

/** Lets the waits before further attempts be over. */
export async function hasten(stack: Stack, endpoint: { readonly id: string }): Promise<void> {
  await stack.db
    .update(webhookDeliveries)
    .set({ nextTryAt: sql`now()` })
    .where(and(eq(webhookDeliveries.webhookId, endpoint.id), eq(webhookDeliveries.status, 'pending')));
}

/** Asks for a test event; returns its delivery. */
export async function sendTest(to: To, { id }: { readonly id: string }): Promise<DeliveryAnswer> {
  const sent = await send(to, { path: `/v1/webhooks/${id}/test` });
  expect(sent.status, sent.text).toBe(201);
  return JSON.parse(sent.text) as DeliveryAnswer;
}
