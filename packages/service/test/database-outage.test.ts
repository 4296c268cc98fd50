import { describe, expect, test } from 'vitest';
import { isDatabaseOutage, sqlState } from '../src/database.ts';

describe('an error of Postgres', () => {
  const failed = (code: string) =>
    new Error('Failed query', { cause: Object.assign(new Error('x'), { code }) });
  test.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOTFOUND',
    'EAI_AGAIN',
    '57P01',
    '57P03',
    '53300',
    '08006',
    '25006',
    'CONNECT_TIMEOUT',
    'CONNECTION_CLOSED',
    'CONNECTION_DESTROYED',
    'CONNECTION_ENDED',
  ])('%s is an outage', (code) => expect(isDatabaseOutage(failed(code))).toBe(true));
  test.each(['23505', '22021', '42P01', '40001', 'ERR_OUT_OF_RANGE', 'UNDEFINED_VALUE'])(
    '%s is not an outage',
    (code) => expect(isDatabaseOutage(failed(code))).toBe(false),
  );
  test('without a code is not an outage', () => {
    expect(isDatabaseOutage(new Error('Failed query', { cause: new Error('anything') }))).toBe(false);
  });
  test('is found by its SQLSTATE inside any wrapper', () => {
    expect(sqlState(new Error('outer', { cause: failed('23505') }))).toBe('23505');
    expect(sqlState('no error at all')).toBeUndefined();
  });
});
