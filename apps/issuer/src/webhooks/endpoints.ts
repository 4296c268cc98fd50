import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import { isReserved, type PrivateUpstreams } from '@presign/outbound';
import { isMetadata, isMetadataName } from '@presign/outbound/metadata-address';
import {
  idParams,
  pageQuery,
  REQUEST_LIMITS,
  RefusedError,
  type WebhookAnswer,
  type WebhookRequest,
  webhookAnswer,
  webhookPage,
  webhookRequest,
  webhookWithSecret,
} from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { accounts } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, getTableColumns } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { hostOf, recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { SIGNING_SECRET, sealSecret } from './secret.ts';

type Needs = Pick<RouteDeps, 'db' | 'encryptionKeys' | 'now'>;

/** Each event is written once for each endpoint. */
const ENDPOINTS_MAX = REQUEST_LIMITS.webhooks;

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
    etag: true,
    links: {
      id: [
        'getWebhook',
        'changeWebhook',
        'rotateWebhookSecret',
        'enableWebhook',
        'testWebhook',
        'listDeliveries',
        'deleteWebhook',
      ],
    },
    secret: SIGNING_SECRET,
  },
  (deps) =>
    async ({ by, body, secret }) => {
      checkUrl(body.url, deps.allowPrivateUpstreams);
      return inTime(create(deps, by, body, secret));
    },
);

async function create(deps: Needs, by: Actor, request: WebhookRequest, secret: string) {
  const { db, encryptionKeys, now } = deps;
  const { accountId } = by;
  return db.transaction(async (tx) => {
    // Locks the account: if two endpoints are added at once, the second check counts the first.
    await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
    if ((await tx.$count(webhooks, eq(webhooks.accountId, accountId))) >= ENDPOINTS_MAX) {
      const message = `An account may have at most ${ENDPOINTS_MAX} endpoints.`;
      throw new RefusedError({ code: 'invalid_request', message });
    }
    const id = randomUUID();
    const { format, description = null } = request;
    const isSlack = format === 'slack';
    const events = isSlack ? [] : (request.events ?? null);
    const owner = { accountId, webhookId: id };
    const sealed = sealSecret(encryptionKeys, isSlack ? request.url : secret, owner);
    const url = shownUrl(format, request.url);
    const row = { id, accountId, format, url, events, description, sealed };
    const [written] = await tx.insert(webhooks).values(row).returning();
    if (!written) throw new Error('Postgres wrote no row');
    const target = { kind: 'webhook', id } as const;
    await recordChange(tx, by, { action: 'webhook.created', target, after: auditedFields(written) });
    return { ...describeWebhook(written, now()), secret: isSlack ? null : secret };
  });
}

/** The URL that Postgres and answers show. Whoever has the path of a Slack webhook can post to its channel. */
export const shownUrl = (format: WebhookRow['format'], url: string): string =>
  format === 'slack' ? `${new URL(url).origin}/…` : url;

/**
 * Refuses a URL that no delivery could ever reach: plain HTTP, private addresses, and names of the own machine (RFC
 * 6761 §6.3). Other names are resolved at each attempt, which checks the address that it connects to.
 * @throws RefusedError `invalid_request`
 */
export function checkUrl(url: string, allowPrivate: PrivateUpstreams): void {
  const { protocol, host, hostname, port } = new URL(url);
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (isMetadataName(literal) || (isIP(literal) !== 0 && isMetadata(literal))) throw metadataUrl();
  if (allowPrivate === true) return;
  const where = port === '' ? `${host}:${protocol === 'https:' ? '443' : '80'}` : host;
  if (allowPrivate !== false && allowPrivate.has(where)) return;
  if (protocol !== 'https:') throw wrongUrl('expected https');
  const isOwnMachine = /^(.*\.)?localhost\.?$/.test(literal);
  if (isOwnMachine || (isIP(literal) !== 0 && isReserved(literal)))
    throw wrongUrl('expected a public address');
}

function metadataUrl(): RefusedError {
  const message = 'url: the address of a metadata or link-local service never receives events.';
  return new RefusedError({ code: 'invalid_request', param: 'url', message });
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
    params: idParams,
    answer: webhookAnswer,
    etag: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params, c }) => {
      const row = await inTime(findWebhook(deps.db, apiKey.accountId, params.id));
      sendRevision(c, row);
      return describeWebhook(row, deps.now());
    },
);

/** `DELETE /v1/webhooks/{id}`: removes an endpoint with its secret and its log. An attempt under way may still arrive. */
export const deleteWebhook = route(
  {
    method: 'delete',
    path: '/v1/webhooks/{id}',
    summary: 'Remove an endpoint with its log of deliveries',
    scope: 'admin',
    params: idParams,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      inTime(
        deps.db.transaction(async (tx) => {
          // Otherwise two simultaneous deletions would each wait for the other to write its event `audit.entry`.
          await tx.select().from(accounts).where(eq(accounts.id, by.accountId)).for('no key update');
          // Locks alerts before endpoints, in the same order as an evaluation.
          await tx
            .update(alerts)
            .set({ webhookId: null })
            .where(and(eq(alerts.accountId, by.accountId), eq(alerts.webhookId, params.id)));
          const [gone] = await tx.delete(webhooks).where(isOwnWebhook(by.accountId, params.id)).returning();
          if (!gone) throw new RefusedError({ code: 'not_found' });
          const target = { kind: 'webhook', id: gone.id } as const;
          await recordChange(tx, by, { action: 'webhook.deleted', target, before: auditedFields(gone) });
          return undefined;
        }),
      ),
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

/**
 * The same, locked against deletion until its delivery is written.
 * @throws RefusedError `not_found`
 */
export async function lockWebhook(tx: Transaction, accountId: string, id: string): Promise<WebhookRow> {
  const [row] = await tx.select().from(webhooks).where(isOwnWebhook(accountId, id)).for('key share');
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

/** The condition that an endpoint belongs to an account. */
export const isOwnWebhook = (accountId: string, id: string) =>
  and(eq(webhooks.id, id), eq(webhooks.accountId, accountId));

/** An endpoint as its owner sees it, without its secret. */
export const describeWebhook = (row: WebhookRow, now: number): WebhookAnswer => ({
  id: row.id,
  format: row.format,
  url: row.url,
  events: row.events,
  description: row.description,
  created_at: unixSeconds(row.createdAt),
  previous_secret_expires_at:
    row.previousUntil && row.previousUntil.getTime() > now ? unixSeconds(row.previousUntil) : null,
  status: row.disabledAt ? 'disabled' : 'enabled',
  disabled_reason: row.disabledReason,
  disabled_at: row.disabledAt && unixSeconds(row.disabledAt),
  failing_since: row.failingSince && unixSeconds(row.failingSince),
  revision: row.revision,
});

/** The fields of an endpoint that the audit log has. */
export const auditedFields = ({ format, url, events, description }: WebhookRow) => ({
  format,
  host: hostOf(url),
  events,
  description,
});
