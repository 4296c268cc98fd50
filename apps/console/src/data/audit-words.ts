import type { AuditAction, AuditEntry, AuditTargetKind } from '@presign/client';
import { count, money, time } from './format/format.ts';
import { writeSpan } from './format/span.ts';

type State = AuditEntry['before'];

/** A field with another value after a change. Undefined: the field did not exist. */
export type Difference = { readonly field: string; readonly before: unknown; readonly after: unknown };

/** The fields that differ. Fields of objects are compared one by one, such as `policy.highest.cost_limit`. */
export function differencesOf(before: State, after: State): Difference[] {
  const [was, is] = [flat(before), flat(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .map((field) => ({ field, before: was.get(field), after: is.get(field) }))
    .filter((each) => JSON.stringify(each.before ?? null) !== JSON.stringify(each.after ?? null));
}

function flat(value: unknown, at = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map(at === '' ? [] : [[at, value]]);
  return new Map(
    Object.entries(value).flatMap(([name, each]) => [...flat(each, at === '' ? name : `${at}.${name}`)]),
  );
}

/** A field in words. */
export const fieldInWords = (field: string): string => field.replaceAll('_', ' ').replaceAll('.', ' › ');

const MONEY = ['cost_limit', 'spent', 'cost', 'amount', 'at_least'];

/** Fields in which null is a value. */
const NULL: Readonly<Record<string, string>> = { events: 'all except audit.entry' };

/** A value of a field in words. Ids of keys get their names. */
export function valueInWords(
  field: string,
  value: unknown,
  nameOf: (id: string) => string,
  zone: string,
): string {
  const last = field.split('.').at(-1) ?? '';
  if (value === null && NULL[last] !== undefined) return NULL[last];
  if (value === null || value === undefined || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') {
    if (MONEY.includes(last)) return money(value);
    if (last.endsWith('_at')) return time(value, zone);
    return last === 'expires_in' ? writeSpan(value) : count(value);
  }
  if (typeof value === 'string') return nameOf(value);
  if (!Array.isArray(value)) return JSON.stringify(value);
  if (value.length === 0) return 'none';
  return value.map((each) => (typeof each === 'string' ? nameOf(each) : JSON.stringify(each))).join(', ');
}

/** Each kind of thing that is changed, in words. A grant is one URL. */
const TARGETS: Readonly<Record<AuditTargetKind, string>> = {
  account: 'account',
  api_key: 'API key',
  virtual_key: 'virtual key',
  webhook: 'webhook',
  delivery: 'delivery of a webhook',
  grant: 'URL',
  session: 'session',
  external_user: 'customer',
  external_session: 'session of a customer',
  budget: 'budget',
  alert: 'alert',
};
export const TARGET_KINDS = Object.entries(TARGETS);

const ACTIONS: Readonly<Record<AuditAction, string>> = {
  'account.created': 'account created',
  'account.changed': 'account changed',
  'account.suspended': 'account suspended',
  'account.resumed': 'account resumed',
  'account.deleted': 'account deleted',
  'api_key.created': 'API key created',
  'api_key.changed': 'API key changed',
  'api_key.revoked': 'API key revoked',
  'virtual_key.created': 'virtual key created',
  'virtual_key.changed': 'virtual key changed',
  'virtual_key.rotated': 'virtual key rotated',
  'virtual_key.deleted': 'virtual key deleted',
  'webhook.created': 'webhook created',
  'webhook.changed': 'webhook changed',
  'webhook.deleted': 'webhook deleted',
  'webhook.secret_rotated': 'webhook secret rotated',
  'webhook.enabled': 'webhook enabled',
  'webhook.tested': 'test event sent',
  'delivery.replayed': 'delivery replayed',
  'grant.changed': 'URL changed',
  'session.changed': 'session changed',
  'budget.created': 'budget created',
  'budget.changed': 'budget changed',
  'budget.deleted': 'budget deleted',
  'alert.created': 'alert created',
  'alert.changed': 'alert changed',
  'alert.deleted': 'alert deleted',
  'alert.tested': 'test of an alert sent',
  'urls.revoked': 'URLs revoked',
  'console.signed_in': 'signed in to the console',
};
export const AUDIT_ACTIONS = Object.entries(ACTIONS);

/** A change in words. A console shows an action that it does not know by its name. */
export const actionInWords = (action: AuditAction): string => ACTIONS[action] ?? action;
