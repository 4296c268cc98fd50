import * as z from 'zod';
import { TIME_FORM, time, unixSeconds } from '../fields/fields.ts';
import { listFormat, pageOf, pageQuery } from '../fields/page.ts';
import { name } from './usage/reports.ts';

/** Every kind of object that a change can affect, by the name of its id. */
export const AUDIT_TARGETS = [
  'account',
  'api_key',
  'virtual_key',
  'webhook',
  'delivery',
  'grant',
  'session',
  'external_user',
  'external_session',
  'budget',
  'alert',
] as const;
export type AuditTarget = (typeof AUDIT_TARGETS)[number];

/** Everything that the audit log records. It does not record the issuing of URLs: each URL is a grant of a session. */
export const AUDIT_ACTIONS = [
  'account.created',
  'account.changed',
  'account.suspended',
  'account.resumed',
  'account.deleted',
  'api_key.created',
  'api_key.changed',
  'api_key.revoked',
  'virtual_key.created',
  'virtual_key.changed',
  'virtual_key.rotated',
  'virtual_key.deleted',
  'webhook.created',
  'webhook.changed',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.enabled',
  'webhook.tested',
  'delivery.replayed',
  'grant.changed',
  'session.changed',
  'budget.created',
  'budget.changed',
  'budget.deleted',
  'alert.created',
  'alert.changed',
  'alert.deleted',
  'alert.tested',
  'urls.revoked',
  'console.signed_in',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

const ACTION = `expected one of ${AUDIT_ACTIONS.join(', ')}`;
const TARGET = `expected one of ${AUDIT_TARGETS.join(', ')}`;

/** Query of `GET /v1/audit`. */
export const auditQuery = pageQuery.extend({
  from: time.optional().meta({ description: `Changes at this time or later. ${TIME_FORM}.` }),
  to: time.optional().meta({ description: `Changes before this time. ${TIME_FORM}.` }),
  actor: name
    .optional()
    .meta({ description: 'Only changes by this API key, by its id, or by `cli` or `issuer`.' }),
  action: z
    .enum(AUDIT_ACTIONS, ACTION)
    .meta({ id: 'AuditAction' })
    .optional()
    .meta({ description: 'Only changes of this kind.' }),
  target_kind: z
    .enum(AUDIT_TARGETS, TARGET)
    .meta({ id: 'AuditTargetKind' })
    .optional()
    .meta({ description: 'Only changes of something of this kind.' }),
  target_id: name.optional().meta({ description: 'Only changes of what has this id.' }),
  format: listFormat,
});
export type AuditQuery = z.output<typeof auditQuery>;

const state = z.record(z.string(), z.unknown()).meta({ id: 'AuditState' }).nullable();

/** One change. */
export const auditEntry = z
  .strictObject({
    id: z.guid(),
    at: unixSeconds,
    actor: z.string().meta({
      description:
        'The one who made the change: the id of an API key, `cli` for the command line, or `issuer` for the key of `BOOTSTRAP_API_KEY`.',
    }),
    action: z.enum(AUDIT_ACTIONS).meta({ id: 'AuditAction' }),
    target: z
      .strictObject({ kind: z.enum(AUDIT_TARGETS).meta({ id: 'AuditTargetKind' }), id: z.string() })
      .meta({ id: 'AuditTarget' }),
    request_id: z
      .guid()
      .nullable()
      .meta({ description: 'The `x-request-id` of the answer. null: it was no request.' }),
    remote_address: z.string().nullable().meta({
      description:
        "The other end of the issuer's connection: the address of the proxy if there is one. null: it was no request.",
    }),
    before: state.meta({
      description:
        'The changed fields as they were. null: there was nothing before, or the API key lacks the scope that reads such a target.',
    }),
    after: state.meta({
      description:
        'The changed fields as they are since. null: nothing is left, or the API key lacks the scope that reads such a target.',
    }),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntry>;

/** Answer of `GET /v1/audit`. */
export const auditPage = pageOf(auditEntry).meta({ id: 'AuditPage' });
