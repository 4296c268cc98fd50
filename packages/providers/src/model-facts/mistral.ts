import { K, type Rows } from './rows.ts';

/**
 * https://docs.mistral.ai/getting-started/models, read through the list of litellm 1.109.1 (2026-11). No maximum of
 * output is published apart from the window. What a name without a date stands for changes, so few are given one.
 */
export const mistral: Rows = {
  'codestral-2508': [256 * K, 256 * K],
  'codestral-latest': [256 * K, 256 * K],
  'devstral-2512': [256 * K, 256 * K, 'thinks'],
  'devstral-latest': [256 * K, 256 * K, 'thinks'],
  'devstral-medium-latest': [256 * K, 256 * K, 'thinks'],
  'devstral-small-latest': [256 * K, 256 * K, 'thinks'],
  'magistral-medium-latest': [256 * K, 256 * K, 'thinks'],
  'magistral-small-latest': [256 * K, 256 * K, 'thinks'],
  'ministral-14b-2512': [256 * K, 256 * K],
  'ministral-14b-latest': [256 * K, 256 * K],
  'ministral-8b-2512': [256 * K, 256 * K],
  'ministral-8b-latest': [256 * K, 256 * K],
  'mistral-large-2512': [256 * K, 256 * K],
  'mistral-large-latest': [256 * K, 256 * K, 'thinks'],
  'mistral-medium-2604': [256 * K, 256 * K, 'thinks'],
  'mistral-medium-latest': [256 * K, 256 * K, 'thinks'],
  'mistral-medium-3-5': [256 * K, 256 * K, 'thinks'],
  'mistral-small-2603': [256 * K, 256 * K, 'thinks'],
  'mistral-small-latest': [256 * K, 256 * K, 'thinks'],
  'ministral-3b-2512': [128 * K, 128 * K],
  'ministral-3b-latest': [128 * K, 128 * K],
  'open-mistral-nemo': [128 * K, 128 * K],
  'pixtral-12b': [128 * K, 128 * K],
  'pixtral-large': [128 * K, 128 * K],
  'mistral-large-2411': [128 * K, 128 * K],
  'mistral-embed': [8 * K, undefined],
};
