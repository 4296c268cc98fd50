import { K, type Rows } from './rows.ts';

/** https://docs.together.ai/docs/serverless-models (2026-11); no maximum of output is published. */
export const together: Rows = {
  'meta-llama/Llama-3.3-70B-Instruct-Turbo': [128 * K, undefined],
  'meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo': [128 * K, undefined],
  'meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo': [128 * K, undefined],
  'meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo': [128 * K, undefined],
};
