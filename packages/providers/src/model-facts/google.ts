import { K, type Rows } from './rows.ts';

/**
 * https://ai.google.dev/gemini-api/docs/models, read through the list of litellm 1.109.1 (2026-11). The window is
 * the page's input limit; output is counted apart.
 */
export const google: Rows = {
  'gemini-1.5-flash': [K * K, 8_192],
  'gemini-1.5-flash-8b': [K * K, 8_192],
  'gemini-1.5-pro': [2 * K * K, 8_192],
  'gemini-2.0-flash': [K * K, 8_192],
  'gemini-2.0-flash-lite': [K * K, 8_192],
  'gemini-2.5-pro': [K * K, 65_536, 'thinks'],
  'gemini-2.5-flash': [K * K, 65_536, 'thinks'],
  'gemini-2.5-flash-lite': [K * K, 65_536, 'thinks'],
  'gemini-3-pro': [K * K, 65_536, 'thinks'],
  'gemini-3-flash': [K * K, 65_536, 'thinks'],
  'gemini-3.1-pro': [K * K, 65_536, 'thinks'],
  'gemini-3.1-flash-lite': [K * K, 65_536, 'thinks'],
  'gemini-3.5-flash': [K * K, 65_536, 'thinks'],
  'gemini-3.5-flash-lite': [K * K, 65_536, 'thinks'],
  'gemini-3.6-flash': [K * K, 65_536, 'thinks'],
  'gemini-3.7-flash': [K * K, 65_536, 'thinks'],
  'gemini-3.8-flash': [K * K, 65_536, 'thinks'],
  'gemini-pro-latest': [K * K, 65_536, 'thinks'],
  'gemini-flash-latest': [K * K, 65_536, 'thinks'],
  'gemini-flash-lite-latest': [K * K, 65_536, 'thinks'],
  'gemini-embedding-001': [2_048, undefined],
  'gemini-embedding-2': [8_192, undefined],
  'gemma-3-27b-it': [128 * K, 8_192],
  'gemma-4-26b-a4b-it': [256 * K, 32_768, 'thinks'],
  'gemma-4-31b-it': [256 * K, 32_768, 'thinks'],
};
