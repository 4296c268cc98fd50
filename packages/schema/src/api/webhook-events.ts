import * as z from 'zod';
import { isoTime, microusd } from '../fields/fields.ts';
import { alertCondition } from './alerts.ts';
import { auditEntry } from './audit.ts';
import { budgetScope, budgetWindow } from './budgets.ts';
import { grantKind } from './session.ts';
import { OUTCOME_NAMES } from './usage/call-outcomes.ts';

/** Uses and microdollars in the ledger. */
const settled = z.strictObject({ used: z.int(), spent: z.int() }).meta({
  description:
    'Uses and microdollars in the ledger when the event was written. Later calls may be settled since.',
});

const maxUses = z.int().nullable().meta({ description: 'null: no limit.' });
const costLimit = microusd.nullable().meta({ description: 'Microdollars; null: no limit.' });

/** The caller's own ids that a grant was issued with. */
const external = { external_session: z.string().nullable(), external_user: z.string().nullable() };

/** The grant that ended. */
const endedGrant = {
  grant_id: z
    .guid()
    .meta({ description: "For a bundle: the bundle's own grant, in one event for all its servers." }),
  session_id: z.guid(),
  kind: grantKind,
  provider: z.string(),
  ...external,
  issued_at: isoTime,
  expires_at: isoTime,
  max_uses: maxUses,
  cost_limit: costLimit,
  settled,
};

/** The limit that was reached, and the figures of its budget. */
const limitReached = {
  limit: z.enum(['max_uses', 'cost_limit']).meta({ description: 'The limit that was reached.' }),
  max_uses: maxUses,
  cost_limit: costLimit,
  settled,
};

/** The limits of a window of a shared budget, and its figures in the ledger. */
const windowFigures = {
  max_uses: maxUses,
  cost_limit: costLimit,
  tokens: z.int().nullable().meta({ description: 'Tokens of input and output; null: no limit.' }),
  settled: settled.extend({ tokens: z.int() }),
};
const windowLimitReached = {
  limit: z.enum(['max_uses', 'cost_limit', 'tokens']).meta({ description: 'The limit that was reached.' }),
  ...windowFigures,
};

/** A window of a shared budget. */
const windowOfBudget = {
  budget: z.guid().meta({ description: 'Id of the shared budget.' }),
  name: z.string().nullable(),
  scope: budgetScope,
  template: z.guid().nullable().meta({ description: 'Id of the template that made it. null: POST did.' }),
  window: budgetWindow,
  starts_at: isoTime,
  ends_at: isoTime.nullable().meta({ description: 'null: it has no end.' }),
};

/** One settled call. */
const settledCall = z.strictObject({
  id: z.guid().meta({ description: 'A permanent id of the call. Each call is in exactly one event.' }),
  request_id: z.guid().nullable().meta({
    description:
      'The `x-presign-request-id` of the call, and in a refund that of its call. null: not recorded.',
  }),
  api_key: z
    .guid()
    .nullable()
    .meta({ description: 'Id of the API key that issued the URL. null: not recorded.' }),
  session_id: z.guid(),
  grant_id: z.guid(),
  external_user: z.string().nullable(),
  provider: z.string(),
  model: z.string().nullable(),
  server: z.string().nullable(),
  tool: z.string().nullable(),
  uses: z.int().meta({ description: 'Below 0 in a refund.' }),
  cost: z.int().nullable().meta({
    description: 'Microdollars. Below 0 in a refund. null: not known.',
  }),
  overrun: microusd.meta({
    description: 'Microdollars beyond the hold, which the budget was not charged.',
  }),
  input_tokens: z.int().nullable(),
  output_tokens: z.int().nullable(),
  status: z.int().nullable().meta({ description: "HTTP status of the upstream's answer." }),
  outcome: z.enum(OUTCOME_NAMES).meta({ id: 'LedgerOutcome' }).meta({
    description:
      'How it ended, as `GET /v1/calls` has it. An MCP call may be `under_way`: it is charged when it begins.',
  }),
  started_at: isoTime,
  settled_at: isoTime,
});

/** An alert, and the figure that made it fire or that resolved it. */
const alertOfEvent = {
  alert: z.guid(),
  name: z.string(),
  condition: alertCondition,
  firing: z.guid().meta({ description: 'One id for both events of one firing.' }),
  value: z.number().nullable().meta({ description: 'Microdollars for spend, else percent. null: none.' }),
  threshold: z.number().nullable(),
  starts_at: isoTime.nullable().meta({ description: 'The window that it fired for.' }),
  ends_at: isoTime.nullable().meta({ description: 'null: it has no end.' }),
};

const timestamp = z.iso.datetime().meta({ description: 'When it happened: ISO 8601, in UTC.' });

/** No generator of clients in Go finds names that only events have, so events have no schemas with names of their own. */
const event = <T extends string, D extends z.ZodRawShape>(type: T, description: string, data: D) =>
  z.strictObject({ type: z.literal(type), timestamp, data: z.strictObject(data) }).meta({ description });

const percent = z.union([z.literal(50), z.literal(80), z.literal(100)]);

/** The body of every delivery. */
export const webhookEvent = z.discriminatedUnion('type', [
  event('session.exhausted', 'A limit is reached, and the session has no active grant left.', {
    session_id: z.guid(),
    grant_id: z.guid(),
    ...external,
    ...limitReached,
  }),
  event('grant.threshold', '50, 80 or 100 percent of a limit of a URL or a bundle are settled.', {
    session_id: z.guid(),
    grant_id: z.guid().meta({ description: 'For a bundle, its own grant.' }),
    ...external,
    percent,
    ...limitReached,
  }),
  event('virtual_key.threshold', '50, 80 or 100 percent of a limit of a virtual key are settled.', {
    virtual_key: z.string(),
    percent,
    ...limitReached,
  }),
  event(
    'budget.threshold',
    'A percentage of a limit is settled in a window of a shared budget: one of its `thresholds`.',
    { ...windowOfBudget, percent: z.int().min(1).max(100), ...windowLimitReached },
  ),
  event('budget.exhausted', 'A limit is reached in a window of a shared budget.', {
    ...windowOfBudget,
    ...windowLimitReached,
  }),
  event('budget.reset', 'A window of a shared budget is over, and the next one has begun.', {
    ...windowOfBudget,
    ...windowFigures,
  }),
  event('grant.revoked', 'A grant ended before its expiry.', {
    ...endedGrant,
    revoked_at: isoTime,
    reason: z.enum(['revoked', 'overrun']).meta({
      description: '`overrun`: a call cost more than its worst case, so the service ended the grant.',
    }),
  }),
  event('grant.expired', 'A grant has expired.', endedGrant),
  event('usage.settled', 'Calls were settled: they are in the ledger.', {
    calls: z.array(settledCall).min(1),
  }),
  event(
    'audit.entry',
    'Something was changed: an entry of the audit log. Only for endpoints whose `events` name it.',
    { ...auditEntry.shape, at: isoTime },
  ),
  event('alert.fired', 'The condition of an alert began to hold. Only for the endpoint of the alert.', {
    ...alertOfEvent,
    test: z.boolean().meta({ description: 'Whether it answers POST /v1/alerts/{id}/test.' }),
  }),
  event('alert.resolved', 'It holds no more, or its window is over. Only for the endpoint of the alert.', {
    ...alertOfEvent,
    fired_at: isoTime,
  }),
  event('webhook.test', 'The answer to POST /v1/webhooks/{id}/test.', { webhook_id: z.guid() }),
]);
export type WebhookEvent = z.infer<typeof webhookEvent>;
export type SettledCall = z.infer<typeof settledCall>;
