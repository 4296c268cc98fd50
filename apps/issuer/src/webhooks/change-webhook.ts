import type { EncryptionKeys } from '@presign/crypto';
import {
  idParams,
  RefusedError,
  type WebhookChange,
  webhookAnswer,
  webhookChange,
  webhookWithSecret,
} from '@presign/schema';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Transaction } from '@presign/service/database';
import { and, isNotNull, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { unixSeconds, wholeSecond } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import type { Actor, IssuerEnv } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import {
  auditedFields,
  checkUrl,
  describeWebhook,
  findWebhook,
  isOwnWebhook,
  shownUrl,
  type WebhookRow,
} from './endpoints.ts';
import { PREVIOUS_SECRET_HOURS, SIGNING_SECRET, sealSecret } from './secret.ts';

/** `PATCH /v1/webhooks/{id}`: attempts that begin afterwards go to the new URL. */
export const changeWebhook = route(
  {
    method: 'patch',
    path: '/v1/webhooks/{id}',
    summary: 'Change the URL, the events or the description of an endpoint',
    description: 'Its secret and its log stay. A disabled endpoint stays disabled until you enable it.',
    scope: 'admin',
    params: idParams,
    body: webhookChange,
    answer: webhookAnswer,
    etag: true,
    errors: ['not_found', 'revision_mismatch'],
  },
  (deps) =>
    async ({ by, params, body, c }) => {
      if (body.url !== undefined) checkUrl(body.url, deps.allowPrivateUpstreams);
      const { encryptionKeys } = deps;
      const asked = { by, id: params.id.toLowerCase(), change: body, encryptionKeys, c };
      const changed = await inTime(deps.db.transaction((tx) => store(tx, asked)));
      sendRevision(c, changed);
      return describeWebhook(changed, deps.now());
    },
);

type Asked = {
  readonly by: Actor;
  readonly id: string;
  readonly change: WebhookChange;
  readonly encryptionKeys: EncryptionKeys;
  readonly c: Context<IssuerEnv>;
};

async function store(tx: Transaction, { by, id, change, encryptionKeys, c }: Asked): Promise<WebhookRow> {
  const own = isOwnWebhook(by.accountId, id);
  const [row] = await tx.select().from(webhooks).where(own).for('no key update');
  if (!row) throw new RefusedError({ code: 'not_found' });
  checkRevision(c, row);
  const { events = row.events, description = row.description } = change;
  const isSlack = row.format === 'slack';
  if (isSlack && change.events !== undefined) throw refuseSlack('events', 'gets only messages of alerts');
  const url = change.url === undefined ? row.url : shownUrl(row.format, change.url);
  const isMoved = change.url !== undefined && (isSlack || url !== row.url);
  const owner = { accountId: by.accountId, webhookId: id };
  const sealed = isSlack && change.url ? sealSecret(encryptionKeys, change.url, owner) : row.sealed;
  const next = { ...row, url, events: events && [...events], description, sealed };
  const [before, after] = [
    auditedFields(row),
    { ...auditedFields(next), ...(isMoved && { url: 'changed' }) },
  ];
  await recordChange(tx, by, { action: 'webhook.changed', target: { kind: 'webhook', id }, before, after });
  if (JSON.stringify(before) === JSON.stringify(after)) return row;
  // The new address has not failed yet.
  const stored = { ...next, failingSince: isMoved ? null : row.failingSince, revision: row.revision + 1 };
  await tx.update(webhooks).set(stored).where(own);
  return stored;
}

const refuseSlack = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: a Slack endpoint ${problem}.` });

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
    params: idParams,
    answer: webhookWithSecret,
    secret: SIGNING_SECRET,
    errors: ['invalid_request', 'not_found'],
  },
  (deps) =>
    async ({ by, params, secret }) => {
      const { accountId } = by;
      const sealed = sealSecret(deps.encryptionKeys, secret, { accountId, webhookId: params.id });
      const previousUntil = wholeSecond(deps.now() + PREVIOUS_SECRET_HOURS * 3_600_000);
      const rotate = async (tx: Transaction) => {
        const { format } = await findWebhook(tx, accountId, params.id);
        if (format === 'slack') throw refuseSlack('id', 'has no signing secret; change its url instead');
        const [row] = await tx
          .update(webhooks)
          .set({ sealed, previousSealed: sql`${webhooks.sealed}`, previousUntil })
          .where(isOwnWebhook(accountId, params.id))
          .returning();
        if (!row) throw new RefusedError({ code: 'not_found' });
        const target = { kind: 'webhook', id: row.id } as const;
        const after = { previous_secret_expires_at: unixSeconds(previousUntil) };
        await recordChange(tx, by, { action: 'webhook.secret_rotated', target, after });
        return { ...describeWebhook(row, deps.now()), secret };
      };
      return inTime(deps.db.transaction(rotate));
    },
);

/** `POST /v1/webhooks/{id}/enable`: enables a disabled endpoint. It receives events that happen from now on. */
export const enableWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/enable',
    summary: 'Enable an endpoint that was disabled',
    scope: 'admin',
    params: idParams,
    answer: webhookAnswer,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) => {
      const enable = async (tx: Transaction) => {
        const own = isOwnWebhook(by.accountId, params.id);
        const [before] = await tx.select().from(webhooks).where(own).for('no key update');
        if (!before) throw new RefusedError({ code: 'not_found' });
        await tx
          .update(webhooks)
          .set({ disabledAt: null, disabledReason: null, failingSince: null, activeSince: sql`now()` })
          .where(and(own, isNotNull(webhooks.disabledAt)));
        const row = await findWebhook(tx, by.accountId, params.id);
        await recordChange(tx, by, {
          action: 'webhook.enabled',
          target: { kind: 'webhook', id: row.id },
          before: stateOf(before),
          after: stateOf(row),
        });
        return describeWebhook(row, deps.now());
      };
      return inTime(deps.db.transaction(enable));
    },
);

const stateOf = ({ disabledAt, disabledReason }: WebhookRow) => ({
  status: disabledAt ? 'disabled' : 'enabled',
  disabled_reason: disabledReason,
});
