import { randomUUID } from 'node:crypto';
import type { WebhookEvent } from '@presign/schema';
import { alertFirings, type alerts } from '@presign/schema/alert-tables';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, isNull } from 'drizzle-orm';
import { sendTo } from '../events/record-events.ts';
import type { Reading, Turn } from './judge.ts';

export type AlertRow = typeof alerts.$inferSelect;

/**
 * Begins and ends firings, and sends their events to the endpoint of the alert. The row of the alert must be locked.
 * @returns the id of the firing that goes on. Null: none
 */
export async function turnAlert(
  tx: Transaction,
  alert: AlertRow,
  turns: readonly Turn[],
  at: Date,
): Promise<string | null> {
  if (turns.length === 0) return alert.firingId;
  const endpoint = await endpointOf(tx, alert);
  let firing = alert.firingId;
  for (const turn of turns) {
    if (turn.type === 'fired') {
      firing = randomUUID();
      await fire(tx, { alert, endpoint, at, firing, reading: turn.reading });
    } else if (firing !== null) {
      await resolve(tx, { alert, endpoint, at, firing, reading: turn.reading });
      firing = null;
    }
  }
  return firing;
}

/** Locks the endpoint of an alert against deletion. Undefined: there is none, or it is disabled and keeps nothing. */
export async function endpointOf(tx: Transaction, { webhookId }: AlertRow) {
  if (webhookId === null) return undefined;
  const isEnabled = and(eq(webhooks.id, webhookId), isNull(webhooks.disabledAt));
  const [row] = await tx.select().from(webhooks).where(isEnabled).for('key share');
  return row;
}

type Happened = {
  readonly alert: AlertRow;
  readonly endpoint: typeof webhooks.$inferSelect | undefined;
  readonly at: Date;
  readonly firing: string;
};

async function fire(
  tx: Transaction,
  { alert, endpoint, at, firing, reading }: Happened & { readonly reading: Reading },
): Promise<void> {
  const { value, threshold, startsAt, endsAt } = reading;
  await tx
    .insert(alertFirings)
    .values({ id: firing, alertId: alert.id, createdAt: at, value, threshold, startsAt, endsAt });
  if (endpoint) await sendTo(tx, endpoint, firedEvent(alert, { firing, at, ...reading }), firing);
}

async function resolve(
  tx: Transaction,
  { alert, endpoint, at, firing, reading }: Happened & { readonly reading: Reading | undefined },
): Promise<void> {
  const [row] = await tx
    .update(alertFirings)
    .set({ resolvedAt: at })
    .where(eq(alertFirings.id, firing))
    .returning();
  if (!row || !endpoint) return;
  const { value = null, threshold = null } = reading ?? {};
  const event: WebhookEvent = {
    type: 'alert.resolved',
    timestamp: at.toISOString(),
    data: {
      ...described(alert, { firing, value, threshold, startsAt: row.startsAt, endsAt: row.endsAt }),
      fired_at: row.createdAt.toISOString(),
    },
  };
  await sendTo(tx, endpoint, event);
}

type Figures = {
  readonly firing: string;
  readonly value: number | null;
  readonly threshold: number | null;
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
};

/** The event of a firing, or of a test of the alert. */
export const firedEvent = (
  alert: AlertRow,
  { at, isTest = false, ...figures }: Figures & { readonly at: Date; readonly isTest?: boolean },
): WebhookEvent => ({
  type: 'alert.fired',
  timestamp: at.toISOString(),
  data: { ...described(alert, figures), test: isTest },
});

const described = (
  { id, name, condition }: AlertRow,
  { firing, value, threshold, startsAt, endsAt }: Figures,
) => ({
  alert: id,
  name,
  condition,
  firing,
  value,
  threshold,
  starts_at: startsAt && startsAt.toISOString(),
  ends_at: endsAt && endsAt.toISOString(),
});
