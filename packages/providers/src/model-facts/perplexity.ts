import { K, type Rows } from './rows.ts';

/** https://docs.perplexity.ai/getting-started/models, and the list of litellm 1.109.1 (2026-11). */
export const perplexity: Rows = {
  sonar: [128 * K, 128 * K],
  'sonar-pro': [200_000, 8_192],
  'sonar-reasoning': [128 * K, 128 * K, 'thinks'],
  'sonar-reasoning-pro': [128 * K, 128 * K, 'thinks'],
  'sonar-deep-research': [128 * K, 128 * K, 'thinks'],
};
