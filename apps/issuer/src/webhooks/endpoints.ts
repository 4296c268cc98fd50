import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import { isReserved, type PrivateUpstreams } from '@presign/outbound';
import {
  pageQuery,
  RefusedError,
  type WebhookAnswer,
  type WebhookRequest,
  webhookAnswer,
  webhookPage,
  webhookRequest,
  webhookWithSecret,
} from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { accounts } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { and, eq, getTableColumns, isNotNull, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { newSecret, PREVIOUS_SECRET_HOURS } from './secret.ts';

/** Each event is written once for each endpoint. */
const ENDPOINTS_MAX = 20;

/** `POST /v1/webhooks`: adds an endpoint. Only this answer and that of a rotation show the secret. */
export const createWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks',
    summary: 'Add an endpoint that receives events',
    scope: 'admin',
    body: webhookRequest,
    answer: webhookWithSecret,
    status: 201,
  },
  (deps) =>
    async ({ apiKey, body }) => {
      checkUrl(body.url, deps.allowPrivateUpstreams);
      return inTime(create(deps, apiKey.accountId, body));
    },
);

async function create(deps: IssuerDeps, accountId: string, request: WebhookRequest) {
  const { db, encryptionKeys, now } = deps;
  return db.transaction(async (tx) => {
    // Locks the account: of two endpoints that are added at once, the second counts the first.
    await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
    if ((await tx.$count(webhooks, eq(webhooks.accountId, accountId))) >= ENDPOINTS_MAX) {
      const message = `An account may have at most ${ENDPOINTS_MAX} endpoints.`;
      throw new RefusedError({ code: 'invalid_request', message });
    }
    const id = randomUUID();
    const { secret, sealed } = newSecret(encryptionKeys, { accountId, webhookId: id });
    const { url, events = null, description = null } = request;
    const row = { id, accountId, url, events, description, sealed };
    const [written] = await tx.insert(webhooks).values(row).returning();
    if (!written) throw new Error('Postgres wrote no row');
    return { ...describeWebhook(written, now()), secret };
  });
}

/**
 * Refuses a URL that no delivery could ever reach: plain HTTP, private addresses, and names of the own machine (RFC
 * 6761 §6.3). Other names are resolved at each attempt, which checks the address that it connects to.
 * @throws RefusedError `invalid_request`
 */
function checkUrl(url: string, allowPrivate: PrivateUpstreams): void {
  const { protocol, host, hostname, port } = new URL(url);
  if (allowPrivate === true) return;
  const where = port === '' ? `${host}:${protocol === 'https:' ? '443' : '80'}` : host;
  if (allowPrivate !== false && allowPrivate.has(where)) return;
  if (protocol !== 'https:') throw wrongUrl('expected https');
  const literal = hostname.replace(/^\[|\]$/g, '');
  const isOwnMachine = /^(.*\.)?localhost\.?$/.test(literal);
  if (isOwnMachine || (isIP(literal) !== 0 && isReserved(literal)))
    throw wrongUrl('expected a public address');
}

function wrongUrl(problem: string): RefusedError {
  const message = `url: ${problem} (ALLOW_PRIVATE_UPSTREAMS=true at the issuer allows it).`;
  return new RefusedError({ code: 'invalid_request', param: 'url', message });
}

/** `GET /v1/webhooks`: the account's endpoints, newest first. */
export const listWebhooks = route(
  {
    method: 'get',
    path: '/v1/webhooks',
    summary: 'List the endpoints that receive events',
    scope: 'admin',
    query: pageQuery,
    answer: webhookPage,
  },
  (deps) =>
    async ({ apiKey, query: { limit, cursor } }) => {
      const rows = await inTime(
        deps.db
          .select({ ...getTableColumns(webhooks), micros: micros(webhooks.createdAt) })
          .from(webhooks)
          .where(and(eq(webhooks.accountId, apiKey.accountId), after(cursor, webhooks)))
          .orderBy(...newestFirst(webhooks))
          .limit(limit + 1),
      );
      return pageOfRows(rows, limit, (row) => describeWebhook(row, deps.now()));
    },
);

/** `GET /v1/webhooks/{id}`: an endpoint, whether it fails, and why it was disabled. */
export const getWebhook = route(
  {
    method: 'get',
    path: '/v1/webhooks/{id}',
    summary: 'Get an endpoint, and whether deliveries reach it',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: webhookAnswer,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      describeWebhook(await inTime(findWebhook(deps.db, apiKey.accountId, params.id)), deps.now()),
);

/** `DELETE /v1/webhooks/{id}`: removes an endpoint with its secret and its log. An attempt under way may still arrive. */
export const deleteWebhook = route(
  {
    method: 'delete',
    path: '/v1/webhooks/{id}',
    summary: 'Remove an endpoint with its log of deliveries',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) => {
      const deleted = await inTime(
        deps.db
          .delete(webhooks)
          .where(isOwnWebhook(apiKey.accountId, params.id))
          .returning({ id: webhooks.id }),
      );
      if (deleted.length === 0) throw new RefusedError({ code: 'not_found' });
      return undefined;
    },
);

/**
 * `POST /v1/webhooks/{id}/rotate-secret`: makes a new secret. The previous one also signs for a day. An older one stops
 * signing, so two rotations in a row end a leaked secret at once.
 */
export const rotateWebhookSecret = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/rotate-secret',
    summary: 'Give an endpoint a new secret; both sign for 24 hours',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: webhookWithSecret,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey: { accountId }, params }) => {
      const { secret, sealed } = newSecret(deps.encryptionKeys, { accountId, webhookId: params.id });
      const [row] = await inTime(
        deps.db
          .update(webhooks)
          .set({
            sealed,
            previousSealed: sql`${webhooks.sealed}`,
            previousUntil: new Date(deps.now() + PREVIOUS_SECRET_HOURS * 3_600_000),
          })
          .where(isOwnWebhook(accountId, params.id))
          .returning(),
      );
      if (!row) throw new RefusedError({ code: 'not_found' });
      return { ...describeWebhook(row, deps.now()), secret };
    },
);

/** `POST /v1/webhooks/{id}/enable`: enables a disabled endpoint. It receives events that happen from now on. */
export const enableWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/enable',
    summary: 'Enable an endpoint that was disabled',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: webhookAnswer,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) => {
      await inTime(
        deps.db
          .update(webhooks)
          .set({ disabledAt: null, disabledReason: null, failingSince: null, activeSince: sql`now()` })
          .where(and(isOwnWebhook(apiKey.accountId, params.id), isNotNull(webhooks.disabledAt))),
      );
      return describeWebhook(await inTime(findWebhook(deps.db, apiKey.accountId, params.id)), deps.now());
    },
);

export type WebhookRow = typeof webhooks.$inferSelect;

/**
 * An endpoint of an account.
 * @throws RefusedError `not_found`
 */
export async function findWebhook(
  db: Database | Transaction,
  accountId: string,
  id: string,
): Promise<WebhookRow> {
  const [row] = await db.select().from(webhooks).where(isOwnWebhook(accountId, id));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

/** The condition that an endpoint belongs to an account. */
export const isOwnWebhook = (accountId: string, id: string) =>
  and(eq(webhooks.id, id), eq(webhooks.accountId, accountId));

/** An endpoint as its owner sees it, without its secret. */
const describeWebhook = (row: WebhookRow, now: number): WebhookAnswer => ({
  id: row.id,
  url: row.url,
  events: row.events,
  description: row.description,
  created_at: seconds(row.createdAt),
  previous_secret_expires_at:
    row.previousUntil && row.previousUntil.getTime() > now ? seconds(row.previousUntil) : null,
  status: row.disabledAt ? 'disabled' : 'enabled',
  disabled_reason: row.disabledReason,
  disabled_at: row.disabledAt && seconds(row.disabledAt),
  failing_since: row.failingSince && seconds(row.failingSince),
});

const seconds = (time: Date) => time.getTime() / 1000;
