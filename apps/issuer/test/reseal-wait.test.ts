import { expect, test } from 'vitest';
import { resealWaitSeconds } from '../src/cli/reseal.ts';

test('reseal waits longer than a gateway may take to write a credential that it has already read', () => {
  expect(resealWaitSeconds({})).toBe(20);
  const longer = { DATABASE_STATEMENT_TIMEOUT_SECONDS: '40', REDIS_COMMAND_TIMEOUT_SECONDS: '30' };
  expect(resealWaitSeconds(longer)).toBeGreaterThan(70);
  expect(resealWaitSeconds({ DATABASE_STATEMENT_TIMEOUT_SECONDS: '0' })).toBeGreaterThan(60);
});
