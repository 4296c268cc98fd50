import { K, type Rows } from './rows.ts';

/** https://docs.cohere.com/docs/models, and the list of litellm 1.109.1 (2026-11). */
export const cohere: Rows = {
  command: [4_096, 4_096],
  'command-light': [4_096, 4_096],
  'command-r': [128 * K, 4_096],
  'command-r-plus': [128 * K, 4_096],
  'command-r7b': [128 * K, 4_096],
  'command-a': [256 * K, 8_192],
  'command-a-vision': [128 * K, 8_192],
  'command-a-reasoning': [256 * K, 32_768, 'thinks'],
  'command-a-plus': [128 * K, 65_536, 'thinks'],
  'c4ai-aya-expanse-8b': [8 * K, 4_096],
  'c4ai-aya-expanse-32b': [128 * K, 4_096],
  'embed-v4.0': [128 * K, undefined],
};
