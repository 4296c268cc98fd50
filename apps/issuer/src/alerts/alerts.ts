import { randomUUID } from 'node:crypto';
import {
  type AlertAnswer,
  type AlertChange,
  type AlertRequest,
  alertAnswer,
  alertPage,
  alertRequest,
  idParams,
  pageQuery,
  REQUEST_LIMITS,
  RefusedError,
} from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { accounts } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, getTableColumns, isNull } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { AlertRow } from './turn-alert.ts';

const ALERTS_MAX = REQUEST_LIMITS.alerts;

/** `POST /v1/alerts`: it is evaluated for the first time within seconds. */
export const createAlert = route(
  {
    method: 'post',
    path: '/v1/alerts',
    summary: 'Create an alert for a budget, spend or errors',
    description:
      'Presign evaluates it every 30 seconds from settled calls, and later when the ledger is behind. It fires once for each crossing, and again only after it was resolved or its window has passed.',
    scope: 'admin',
    body: alertRequest,
    answer: alertAnswer,
    status: 201,
    etag: true,
    links: { id: ['getAlert', 'changeAlert', 'testAlert', 'listFirings', 'deleteAlert'] },
  },
  (deps) =>
    async ({ by, body }) =>
      inTime(deps.db.transaction((tx) => create(tx, by, body))),
);

async function create(tx: Transaction, by: Actor, request: AlertRequest): Promise<AlertAnswer> {
  const { accountId } = by;
  // Locks the account: if two alerts are created at once, the second check counts the first.
  await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
  if ((await tx.$count(alerts, eq(alerts.accountId, accountId))) >= ALERTS_MAX) {
    const message = `An account may have at most ${ALERTS_MAX} alerts.`;
    throw new RefusedError({ code: 'invalid_request', message });
  }
  const { name, condition, webhook = null, enabled: isEnabled } = request;
  await checkNamed(tx, accountId, { condition, webhook });
  const id = randomUUID();
  const row = { id, accountId, name, condition, webhookId: webhook, isEnabled };
  const [written] = await tx.insert(alerts).values(row).returning();
  if (!written) throw new Error('Postgres wrote no row');
  const target = { kind: 'alert', id } as const;
  await recordChange(tx, by, { action: 'alert.created', target, after: auditedFields(written) });
  return describeAlert(written);
}

/**
 * Refuses a budget or an endpoint that the account does not have: the alert would never fire, or be sent nowhere. Locks the endpoint against
 * deletion.
 * @throws RefusedError `invalid_request`
 */
export async function checkNamed(
  tx: Transaction,
  accountId: string,
  { condition, webhook }: Pick<AlertChange, 'condition' | 'webhook'>,
): Promise<void> {
  if (condition?.budget) {
    const own = and(
      eq(sharedBudgets.id, condition.budget.budget),
      eq(sharedBudgets.accountId, accountId),
      isNull(sharedBudgets.deletedAt),
    );
    const [budget] = await tx.select().from(sharedBudgets).where(own);
    if (!budget) throw refuse('condition.budget.budget', 'this account has no budget with this id');
    if (budget.isTemplate)
      throw refuse(
        'condition.budget.budget',
        'a template has no figures; name a budget, or receive budget.threshold for all of its budgets',
      );
  }
  if (!webhook) return;
  const own = and(eq(webhooks.id, webhook), eq(webhooks.accountId, accountId));
  const found = await tx.select({ id: webhooks.id }).from(webhooks).where(own).for('key share');
  if (found.length === 0) throw refuse('webhook', 'this account has no endpoint with this id');
}

const refuse = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/** `GET /v1/alerts`: the account's alerts, newest first. */
export const listAlerts = route(
  {
    method: 'get',
    path: '/v1/alerts',
    summary: 'List alerts with their state, newest first',
    scope: 'admin',
    query: pageQuery,
    answer: alertPage,
  },
  (deps) =>
    async ({ apiKey, query: { limit, cursor } }) => {
      const rows = await inTime(
        deps.db
          .select({ ...getTableColumns(alerts), micros: micros(alerts.createdAt) })
          .from(alerts)
          .where(and(eq(alerts.accountId, apiKey.accountId), after(cursor, alerts)))
          .orderBy(...newestFirst(alerts))
          .limit(limit + 1),
      );
      return pageOfRows(rows, limit, describeAlert);
    },
);

/** `GET /v1/alerts/{id}`. */
export const getAlert = route(
  {
    method: 'get',
    path: '/v1/alerts/{id}',
    summary: 'Get an alert, whether it fires, and its last figure',
    scope: 'admin',
    params: idParams,
    answer: alertAnswer,
    etag: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params, c }) => {
      const row = await inTime(findAlert(deps.db, apiKey.accountId, params.id));
      sendRevision(c, row);
      return describeAlert(row);
    },
);

/** `DELETE /v1/alerts/{id}`: removes an alert with its history. It sends nothing. */
export const deleteAlert = route(
  {
    method: 'delete',
    path: '/v1/alerts/{id}',
    summary: 'Delete an alert with its history',
    scope: 'admin',
    params: idParams,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      inTime(
        deps.db.transaction(async (tx) => {
          const [gone] = await tx.delete(alerts).where(isOwnAlert(by.accountId, params.id)).returning();
          if (!gone) throw new RefusedError({ code: 'not_found' });
          const target = { kind: 'alert', id: gone.id } as const;
          await recordChange(tx, by, { action: 'alert.deleted', target, before: auditedFields(gone) });
          return undefined;
        }),
      ),
);

/** The condition that an alert belongs to an account. */
export const isOwnAlert = (accountId: string, id: string) =>
  and(eq(alerts.id, id), eq(alerts.accountId, accountId));

/** @throws RefusedError `not_found` */
export async function findAlert(
  db: Database | Transaction,
  accountId: string,
  id: string,
): Promise<AlertRow> {
  const [row] = await db.select().from(alerts).where(isOwnAlert(accountId, id));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

/** An alert as its account sees it. */
export const describeAlert = (row: AlertRow): AlertAnswer => ({
  id: row.id,
  name: row.name,
  condition: row.condition,
  webhook: row.webhookId,
  enabled: row.isEnabled,
  firing_since: row.firingSince && unixSeconds(row.firingSince),
  value: row.value,
  threshold: row.threshold,
  checked_at: row.checkedAt && unixSeconds(row.checkedAt),
  revision: row.revision,
  created_at: unixSeconds(row.createdAt),
});

/** The fields of an alert that the audit log has. */
export const auditedFields = ({ name, condition, webhookId, isEnabled }: AlertRow) => ({
  name,
  condition,
  webhook: webhookId,
  enabled: isEnabled,
});
