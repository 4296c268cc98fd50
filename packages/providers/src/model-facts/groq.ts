import { K, type Rows } from './rows.ts';

/** https://console.groq.com/docs/models and …/docs/deprecations, and the list of litellm 1.109.1 (2026-11). */
export const groq: Rows = {
  'llama-3.3-70b-versatile': [128 * K, 32_768],
  'llama-3.1-8b-instant': [128 * K, 128 * K],
  'llama3-70b-8192': [8_192, 8_192],
  'llama3-8b-8192': [8_192, 8_192],
  'gemma2-9b-it': [8_192, 8_192],
  'mixtral-8x7b-32768': [32_768, 32_768],
  'mistral-saba-24b': [32_768, 32_768],
  'meta-llama/llama-4-scout-17b-16e-instruct': [128 * K, 8_192],
  'meta-llama/llama-4-maverick-17b-128e-instruct': [128 * K, 8_192],
  'moonshotai/kimi-k2-instruct': [256 * K, 16_384],
  'openai/gpt-oss-20b': [128 * K, 65_536, 'thinks'],
  'openai/gpt-oss-120b': [128 * K, 65_536, 'thinks'],
  'openai/gpt-oss-safeguard-20b': [128 * K, 65_536, 'thinks'],
  'qwen/qwen3-32b': [128 * K, 40_960, 'thinks'],
  'qwen/qwen3.8-27b': [128 * K, 16_384, 'thinks'],
  'deepseek-r1-distill-llama-70b': [128 * K, 128 * K, 'thinks'],
};
