import { expect, test } from 'vitest';
import { newestPriced } from '../src/newest-priced.ts';

test.each([
  ['gpt-6.2-sol', ['gpt-6.1-sol', 'gpt-6-sol', 'gpt-6.10-luna', 'gpt-6.1-sol-2026-09-29'], 'gpt-6.1-sol'],
  ['gpt-6.2-sol', ['gpt-6.2', 'gpt-5.6-sol', 'gpt-5.10-sol'], 'gpt-5.10-sol'],
  [
    'claude-sonnet-6',
    ['claude-sonnet-5', 'claude-sonnet-5-5', 'claude-sonnet-4-20250514'],
    'claude-sonnet-5-5',
  ],
  ['claude-sonnet-6', ['claude-opus-6', 'sonnet-6'], undefined],
  ['a-model', ['a-model-2'], undefined],
])('the newest priced version of %s among %j is %s', (model, priced, newest) => {
  expect(newestPriced(model, priced)).toBe(newest);
});
