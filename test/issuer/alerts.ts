import { checkAlerts } from '@presign/issuer';
import { type AlertAnswer, type AlertFiring, alertAnswer, alertFiringPage } from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { eq, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect } from 'vitest';
import type { Stack } from '../harness/stack.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { send } from './ask.ts';
import { addToLedger, type LedgerRow, row } from './ask-usage.ts';

/** An account of its own with an admin key. */
export async function ownerOf(stack: Stack) {
  const { id } = await addAccount(stack);
  return { ...stack, account: id, apiKey: await addApiKey(stack, id, { scopes: ['admin'] }) };
}
export type Owner = Awaited<ReturnType<typeof ownerOf>>;

export async function createAlert(of: Owner, body: object): Promise<AlertAnswer> {
  const sent = await send(of, { path: '/v1/alerts', body: { name: 'An alert', ...body } });
  expect(sent.status, sent.text).toBe(201);
  return alertAnswer.parse(JSON.parse(sent.text));
}

export async function changeAlert(of: Owner, id: string, body: object): Promise<AlertAnswer> {
  const sent = await send(of, { method: 'PATCH', path: `/v1/alerts/${id}`, body });
  expect(sent.status, sent.text).toBe(200);
  return alertAnswer.parse(JSON.parse(sent.text));
}

export async function getAlert(of: Owner, id: string): Promise<AlertAnswer> {
  const sent = await send(of, { method: 'GET', path: `/v1/alerts/${id}` });
  expect(sent.status, sent.text).toBe(200);
  return alertAnswer.parse(JSON.parse(sent.text));
}

/** The history of an alert, newest first. */
export async function firingsOf(of: Owner, id: string): Promise<AlertFiring[]> {
  const sent = await send(of, { method: 'GET', path: `/v1/alerts/${id}/firings` });
  expect(sent.status, sent.text).toBe(200);
  return alertFiringPage.parse(JSON.parse(sent.text)).data;
}

/** Lets an alert be due, and so many issuers evaluate at the same time until none is due. */
export async function evaluate({ db, redis }: Stack, id: string, issuers = 1): Promise<void> {
  await db.update(alerts).set({ dueAt: sql`now() - interval '1 day'` }).where(eq(alerts.id, id));
  const run = async () => {
    const check = checkAlerts({ db, redis, log: pino({ level: 'silent' }) });
    while (await check());
  };
  await Promise.all(Array.from({ length: issuers }, run));
}

/** Moves what an alert has stored back in time, as if it had been evaluated last so long ago. */
export async function ago({ db }: Stack, id: string, interval: string): Promise<void> {
  const by = sql.raw(`interval '${interval}'`);
  await db.execute(sql`update alerts set checked_at = checked_at - ${by}, held_window = held_window - ${by},
    held_at = held_at - ${by}, condition_since = condition_since - ${by} where id = ${id}`);
}

/** Calls that settled so many milliseconds ago. */
export async function addCalls(
  of: Owner,
  agoMs: number,
  calls: readonly Partial<LedgerRow>[],
): Promise<void> {
  const settledAt = new Date(Date.now() - agoMs);
  await addToLedger(
    of,
    calls.map((fields) => row(of, { startedAt: settledAt, settledAt, ...fields })),
  );
}
