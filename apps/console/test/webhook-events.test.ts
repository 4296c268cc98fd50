import { expect, test } from 'vitest';
import { eventsInWords, eventsOf } from '../src/data/webhook-events.ts';

test('an endpoint gets chosen events, alerts only, or no events, and never two of these', () => {
  expect(eventsOf({ 'grant.revoked': 'on', 'audit.entry': 'on' })).toEqual(['grant.revoked', 'audit.entry']);
  expect(eventsOf({ alerts_alone: 'on' })).toEqual([]);
  expect(eventsOf({})).toBeUndefined();
  expect(() => eventsOf({ alerts_alone: 'on', 'grant.revoked': 'on' })).toThrow('not both');
});

test('an endpoint without an event says that it gets only alerts', () => {
  expect(eventsInWords({ events: [] })).toBe('only alerts that name it');
  expect(eventsInWords({ events: null })).toBe('all except audit.entry');
  expect(eventsInWords({ events: ['grant.revoked', 'audit.entry'] })).toBe('grant.revoked, audit.entry');
});
