import { strict as assert } from 'node:assert';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { PresignError, type WebhookWithSecret } from '@presign/client';
import { Webhook } from 'standardwebhooks';
import { presign } from '../presign.ts';
import { tell, until } from './tell.ts';

type Settled = { id: string; session_id: string; cost: number | null };
export type Event =
  | { type: 'usage.settled'; data: { calls: Settled[] } }
  | { type: 'grant.revoked'; data: { session_id: string; reason: string; settled: { spent: number } } };

const EVENTS: Event['type'][] = ['usage.settled', 'grant.revoked'];

/** Receives the issuer's events on this machine, or, where that is not allowed, reads them from the log of deliveries. */
export async function listen() {
  const events = new Map<string, Event>();
  let webhook: Webhook | undefined;
  let refused = 0;
  const server = createServer(async (request, response) => {
    const event = verified(webhook, request.headers, await text(request));
    // An event can arrive twice with the same webhook-id. The map keeps one.
    if (event) events.set(String(request.headers['webhook-id']), event);
    else if (webhook) refused++;
    response.writeHead(event ? 204 : 400).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const { endpoint, reachable } = await addEndpoint(port);
  assert.ok(endpoint.secret, 'only an endpoint of Slack has none');
  webhook = new Webhook(endpoint.secret);

  return {
    /** Waits for what `find` looks for in the events that came and are signed with the endpoint's secret. */
    async heard<T>(type: Event['type'], find: (events: Event[]) => T | undefined): Promise<T | undefined> {
      if (!reachable) return void (await attempted(endpoint, type));
      return until(type, async () => find([...events.values()]));
    },
    async close(): Promise<void> {
      await presign.deleteWebhook({ id: endpoint.id });
      server.close();
      server.closeAllConnections();
      assert.equal(refused, 0, 'every request was signed');
      if (!reachable) assert.equal(events.size, 0);
    },
  };
}

/** The event, if its sender has the secret. The signature is over the exact bytes, before they are parsed. */
function verified(webhook: Webhook | undefined, headers: IncomingMessage['headers'], body: string) {
  try {
    return webhook?.verify(body, headers as Record<string, string>) as Event | undefined;
  } catch {
    return undefined;
  }
}

/** `start` allows an endpoint on this machine with ALLOW_PRIVATE_UPSTREAMS=true only. */
async function addEndpoint(port: number): Promise<{ endpoint: WebhookWithSecret; reachable: boolean }> {
  const add = (url: string) => presign.createWebhook({ url, events: EVENTS });
  try {
    return { endpoint: await add(`http://127.0.0.1:${port}/events`), reachable: true };
  } catch (error) {
    if (!(error instanceof PresignError && error.param === 'url')) throw error;
    tell(`No events to this machine without ALLOW_PRIVATE_UPSTREAMS=true (${error.message})`);
    // The issuer accepts a name that does not exist (RFC 6761 §6.4), and its log shows the events.
    return { endpoint: await add('https://receiver.invalid/events'), reachable: false };
  }
}

/** The log has the event. Its first attempt was made, and could not reach the endpoint. */
async function attempted({ id }: WebhookWithSecret, type: Event['type']): Promise<void> {
  await until(`${type} in the log`, async () => {
    const { data: deliveries } = await presign.listDeliveries({ id });
    // An attempt that is under way counts, and has no outcome yet.
    const tried = deliveries.filter(({ last_error }) => last_error !== null);
    for (const { last_error } of tried) assert.equal(last_error, 'unreachable');
    return (tried.length > 0 && deliveries.some((delivery) => delivery.type === type)) || undefined;
  });
}
