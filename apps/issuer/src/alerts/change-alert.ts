import {
  type AlertAnswer,
  type AlertChange,
  alertAnswer,
  alertChange,
  deliveryAnswer,
  idParams,
  RefusedError,
} from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import type { Transaction } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import type { Context } from 'hono';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { recordChange } from '../events/audit-log.ts';
import { sendTo } from '../events/record-events.ts';
import type { Actor, IssuerEnv } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { describeDelivery, refuseDisabled } from '../webhooks/deliveries.ts';
import { lockWebhook } from '../webhooks/endpoints.ts';
import { auditedFields, checkNamed, describeAlert, findAlert, isOwnAlert } from './alerts.ts';
import { firedEvent, turnAlert } from './turn-alert.ts';

/** `PATCH /v1/alerts/{id}`: a firing of another condition, or of an alert that is disabled, is resolved first. */
export const changeAlert = route(
  {
    method: 'patch',
    path: '/v1/alerts/{id}',
    summary: 'Change, disable or enable an alert',
    description:
      'A new condition, and an alert that is disabled, resolve a firing. A new condition fires by itself.',
    scope: 'admin',
    params: idParams,
    body: alertChange,
    answer: alertAnswer,
    etag: true,
    errors: ['not_found', 'revision_mismatch'],
  },
  (deps) =>
    async ({ by, params, body, c }) => {
      const asked = { by, id: params.id, change: body, c };
      return inTime(deps.db.transaction((tx) => store(tx, asked)));
    },
);

type Asked = {
  readonly by: Actor;
  readonly id: string;
  readonly change: AlertChange;
  readonly c: Context<IssuerEnv>;
};

async function store(tx: Transaction, { by, id, change, c }: Asked): Promise<AlertAnswer> {
  const own = isOwnAlert(by.accountId, id);
  const [found] = await tx
    .select({ row: alerts, now: sql`now()`.mapWith(alerts.dueAt) })
    .from(alerts)
    .where(own)
    .for('update');
  if (!found) throw new RefusedError({ code: 'not_found' });
  const { row, now } = found;
  checkRevision(c, row);
  const { name = row.name, condition = row.condition, enabled: isEnabled = row.isEnabled } = change;
  const webhookId = change.webhook === undefined ? row.webhookId : change.webhook;
  await checkNamed(tx, by.accountId, change);
  const isOther = JSON.stringify(condition) !== JSON.stringify(row.condition);
  const starts = isOther || (isEnabled && !row.isEnabled);
  const ends = row.firingId !== null && (isOther || !isEnabled);
  // The endpoint that got its beginning gets its end.
  if (ends) await turnAlert(tx, row, [{ type: 'resolved', reading: undefined }], now);
  const next = { ...row, name, condition, webhookId, isEnabled };
  const [before, after] = [auditedFields(row), auditedFields(next)];
  await recordChange(tx, by, {
    action: 'alert.changed',
    target: { kind: 'alert', id: row.id },
    before,
    after,
  });
  const isSame = JSON.stringify(before) === JSON.stringify(after);
  const [changed = row] = isSame
    ? []
    : await tx
        .update(alerts)
        .set({
          ...{ name, condition, webhookId, isEnabled, revision: row.revision + 1 },
          ...(ends && { firingId: null, firingSince: null }),
          ...(starts && { ...UNCHECKED, conditionSince: now, dueAt: now }),
        })
        .where(own)
        .returning();
  sendRevision(c, changed);
  return describeAlert(changed);
}

/** The state of an alert whose condition was not evaluated yet. */
const UNCHECKED = { checkedAt: null, value: null, threshold: null, heldWindow: null, heldAt: null };

/** `POST /v1/alerts/{id}/test`: sends `alert.fired` with `test` to its endpoint. Its state stays. */
export const testAlert = route(
  {
    method: 'post',
    path: '/v1/alerts/{id}/test',
    summary: 'Send a test of an alert to its endpoint',
    scope: 'admin',
    params: idParams,
    answer: deliveryAnswer,
    status: 201,
    errors: ['invalid_request', 'not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      inTime(
        deps.db.transaction(async (tx) => {
          const alert = await findAlert(tx, by.accountId, params.id);
          if (alert.webhookId === null)
            throw new RefusedError({ code: 'invalid_request', param: 'id', message: NO_ENDPOINT });
          const webhook = await lockWebhook(tx, by.accountId, alert.webhookId);
          refuseDisabled(webhook);
          const figures = { value: alert.value, threshold: alert.threshold, startsAt: null, endsAt: null };
          const at = new Date(deps.now());
          const event = firedEvent(alert, { firing: alert.id, at, isTest: true, ...figures });
          const delivery = describeDelivery(await sendTo(tx, webhook, event), event.type);
          const target = { kind: 'alert', id: alert.id } as const;
          await recordChange(tx, by, { action: 'alert.tested', target, after: { delivery: delivery.id } });
          return delivery;
        }),
      ),
);

const NO_ENDPOINT = 'id: this alert has no endpoint. Set its webhook first.';
