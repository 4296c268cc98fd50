import { type DeliveryAnswer, type WebhookEvent, webhookEvent, webhookWithSecret } from '@presign/schema';
import { webhookDeliveries, webhooks } from '@presign/schema/webhook-tables';
import { and, eq, isNull, sql } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { expect } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import type { Stack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { send } from './ask.ts';

type To = { readonly issuerUrl: string; readonly apiKey: string };

export type Endpoint = {
  readonly id: string;
  readonly secret: string;
  /** Every request that came, by `webhook-id`. */
  readonly ids: () => string[];
  /** The events in the order of arrival, each verified by the library with the endpoint's secret. */
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
  const { id, secret: shown } = webhookWithSecret.parse(JSON.parse(made.text));
  const secret = shown ?? '';
  return {
    id,
    secret,
    upstream,
    ids: () => upstream.seen.map((seen) => String(seen.headers['webhook-id'])),
    events: () => upstream.seen.map((seen) => verified(secret, seen)),
  };
}

/** The event of a request, after the library has accepted it. The event must have a documented form. */
export function verified(secret: string, seen: Upstream['seen'][number]): WebhookEvent {
  const headers = seen.headers as Record<string, string>;
  return webhookEvent.parse(new Webhook(secret).verify(seen.body, headers));
}

/** Waits until so many requests have come. */
export const arrived = (endpoint: Endpoint, count: number): Promise<true> =>
  eventually(async () => (endpoint.upstream.seen.length >= count ? true : undefined));

type Issuer = { readonly issuerUrl: string };

/** Waits until everything that has happened so far is delivered. */
export async function quiet(stack: Stack, issuer: Issuer = stack): Promise<void> {
  await callsSettled(stack);
  await roundsPassed(stack, issuer);
  await eventually(async () => ((await firstAttempts(stack)) === 0 ? true : undefined));
}

/**
 * Waits until deliverers have looked for work from now on: until events of another account, one made after the other,
 * have arrived.
 */
export async function roundsPassed(stack: Stack, { issuerUrl }: Issuer): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const { id } = await addAccount(stack);
    const other = { issuerUrl, apiKey: await addApiKey(stack, id, { scopes: ['admin'] }) };
    const fence = await addEndpoint(other);
    await sendTest(other, fence);
    await settledAs(other, fence, { status: 'delivered' });
    await stack.db.delete(webhooks).where(eq(webhooks.id, fence.id));
    await fence.upstream.close();
  }
}

/** Deliveries whose first attempt is due or under way. */
const firstAttempts = ({ db }: Stack) =>
  db.$count(
    webhookDeliveries,
    and(eq(webhookDeliveries.status, 'pending'), isNull(webhookDeliveries.lastError)),
  );

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
