import type { Webhook } from '@presign/client';

type EventType = NonNullable<Webhook['events']>[number];

/** Every type of event, in the order of the API. */
export const EVENTS = Object.keys({
  'session.exhausted': true,
  'grant.threshold': true,
  'virtual_key.threshold': true,
  'budget.threshold': true,
  'budget.exhausted': true,
  'budget.reset': true,
  'grant.revoked': true,
  'grant.expired': true,
  'usage.settled': true,
  'audit.entry': true,
} satisfies Record<EventType, true>) as EventType[];

/**
 * The chosen events of a form. Undefined: none, which means all except `audit.entry`.
 * @throws Error if both some events and only alerts are chosen
 */
export function eventsOf(fields: Readonly<Record<string, string>>): EventType[] | undefined {
  const chosen = EVENTS.filter((type) => fields[type] !== undefined);
  const isAlone = fields['alerts_alone'] !== undefined;
  if (isAlone && chosen.length > 0)
    throw new Error('Choose events, or only alerts that name the endpoint, not both.');
  return isAlone || chosen.length > 0 ? chosen : undefined;
}

/** The events that an endpoint gets, in words. */
export const eventsInWords = ({ events }: Pick<Webhook, 'events'>): string =>
  events?.join(', ') || (events ? 'only alerts that name it' : 'all except audit.entry');
