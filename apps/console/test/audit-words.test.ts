import type { Delivery } from '@presign/client';
import { describe, expect, test } from 'vitest';
import { differencesOf, fieldInWords, valueInWords } from '../src/data/audit-words.ts';
import { deliveryInWords, disabledInWords } from '../src/data/delivery-words.ts';

const words = (field: string, value: unknown) =>
  valueInWords(field, value, (id) => (id === 'vk_1' ? 'Production' : id), 'UTC');

describe('the differences of a change', () => {
  test('lists the fields that differ, and looks into objects field by field', () => {
    const before = {
      name: 'a',
      policy: { models: ['x'], highest: { cost_limit: 1, max_uses: 2 } },
      same: [1],
    };
    const after = {
      name: 'a',
      policy: { models: ['x', 'y'], highest: { cost_limit: 1 } },
      same: [1],
      more: true,
    };
    expect(differencesOf(before, after)).toEqual([
      { field: 'policy.models', before: ['x'], after: ['x', 'y'] },
      { field: 'policy.highest.max_uses', before: 2, after: undefined },
      { field: 'more', before: undefined, after: true },
    ]);
  });

  test('of a new thing lists the fields that have a value; of a deleted thing lists the fields that had one', () => {
    const state = { name: 'a', policy: null, scopes: ['read'] };
    expect(differencesOf(null, state).map(({ field }) => field)).toEqual(['name', 'scopes']);
    expect(differencesOf(state, null)).toEqual([
      { field: 'name', before: 'a', after: undefined },
      { field: 'scopes', before: ['read'], after: undefined },
    ]);
    expect(differencesOf(null, null)).toEqual([]);
  });

  test('lists the fields of an object that replaces null or that null replaces', () => {
    expect(differencesOf({ policy: null }, { policy: { models: ['x'] } })).toEqual([
      { field: 'policy.models', before: undefined, after: ['x'] },
    ]);
    expect(differencesOf({ policy: { models: ['x'] } }, { policy: null })).toEqual([
      { field: 'policy.models', before: ['x'], after: undefined },
    ]);
  });

  test('shows amounts in dollars, times, and keys by name', () => {
    expect(fieldInWords('policy.highest.cost_limit')).toBe('policy › highest › cost limit');
    expect(words('policy.highest.cost_limit', 250_000)).toBe('$0.25');
    expect(words('policy.highest.expires_in', 900)).toBe('15 minutes');
    expect(words('expires_at', 1_767_225_600)).toMatch(/2026/);
    expect(words('max_uses', 12_000)).toBe('12,000');
    expect(words('policy.virtual_keys', ['vk_1', 'vk_2'])).toBe('Production, vk_2');
    expect(words('enabled', true)).toBe('yes');
    expect(words('condition.spend.amount', 50_000_000)).toBe('$50.00');
    expect(words('condition.spend_jump.at_least', 5_000_000)).toBe('$5.00');
    expect([null, []].map((events) => words('events', events))).toEqual(['all except audit.entry', 'none']);
    for (const none of [null, undefined, '', []]) expect(words('name', none)).toBe('none');
  });
});

describe('a delivery in words', () => {
  const of = (fields: Partial<Delivery>) =>
    deliveryInWords({
      status: 'failed',
      attempts: 3,
      last_status: null,
      last_error: null,
      ...fields,
    } as Delivery);

  test('says how often it was tried, and why it failed', () => {
    expect(of({ status: 'delivered', attempts: 1, last_status: 204 })).toBe('Delivered (status 204).');
    expect(of({ status: 'delivered', last_status: 200 })).toBe('Delivered at attempt 3 (status 200).');
    expect(of({ last_error: 'http_status', last_status: 500 })).toBe(
      'Given up after it was tried 3 times: the endpoint refused it (status 500).',
    );
    expect(of({ status: 'pending', attempts: 1, last_error: 'timeout' })).toBe(
      'Tried once: the endpoint did not answer in time.',
    );
    expect(of({ status: 'pending', attempts: 0 })).toBe('Not sent yet.');
  });

  test('says why an endpoint receives nothing', () => {
    expect(disabledInWords({ status: 'enabled', disabled_reason: null })).toBeUndefined();
    expect(disabledInWords({ status: 'disabled', disabled_reason: 'gone' })).toContain('410');
    expect(disabledInWords({ status: 'disabled', disabled_reason: 'failing' })).toContain('for days');
  });
});
