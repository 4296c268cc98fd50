import { K, type Rows } from './rows.ts';

/**
 * https://api-docs.deepseek.com/quick_start/pricing, read through the list of litellm 1.109.1 (2026-11). The names
 * without a version have moved from model to model; they are held as the largest.
 */
export const deepseek: Rows = {
  'deepseek-chat': [K * K, 384 * K, 'thinks'],
  'deepseek-reasoner': [K * K, 384 * K, 'thinks'],
  'deepseek-v4-flash': [K * K, 384 * K, 'thinks'],
  'deepseek-v4-pro': [K * K, 384 * K, 'thinks'],
};
