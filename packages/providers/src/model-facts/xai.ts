import { K, type Rows } from './rows.ts';

/**
 * https://docs.x.ai/docs/models, read through the list of litellm 1.109.1 (2026-11) and @pydantic/genai-prices 0.1.8.
 * No maximum of output is published apart from the window.
 */
export const xai: Rows = {
  'grok-2': [128 * K, 128 * K],
  'grok-3': [128 * K, 128 * K],
  'grok-3-fast': [128 * K, 128 * K],
  'grok-3-mini': [128 * K, 128 * K, 'thinks'],
  'grok-3-mini-fast': [128 * K, 128 * K, 'thinks'],
  'grok-4': [256 * K, 256 * K, 'thinks'],
  'grok-4-fast-reasoning': [2_000_000, 2_000_000, 'thinks'],
  'grok-4-fast-non-reasoning': [2_000_000, 2_000_000],
  'grok-4-1-fast-reasoning': [2_000_000, 2_000_000, 'thinks'],
  'grok-4-1-fast-non-reasoning': [2_000_000, 2_000_000],
  'grok-4.20': [K * K, K * K, 'thinks'],
  'grok-4.20-reasoning': [K * K, K * K, 'thinks'],
  'grok-4.20-non-reasoning': [K * K, K * K],
  'grok-4.3': [K * K, K * K, 'thinks'],
  'grok-4.5': [500_000, 500_000, 'thinks'],
  'grok-4.6': [500_000, 500_000, 'thinks'],
  'grok-4.7': [500_000, 500_000, 'thinks'],
  'grok-code-fast-1': [256 * K, 256 * K, 'thinks'],
  'grok-build-0.1': [256 * K, 256 * K, 'thinks'],
};
