import type { FreeCalls, Models, Names } from '../fact.ts';

/** The list no longer has the models before 4.5: their rows are from that page before they were retired. The windows are those without a beta header, because the gateway drops betas that widen them. */
export const MODELS: Models = {
  source:
    'https://platform.claude.com/docs/en/about-claude/models/overview, read through the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    'claude-3-haiku': { window: 200_000, output: 4_096 },
    'claude-3-sonnet': { window: 200_000, output: 4_096 },
    'claude-3-opus': { window: 200_000, output: 4_096 },
    'claude-3-5-haiku': { window: 200_000, output: 8_192 },
    'claude-3-5-sonnet': { window: 200_000, output: 8_192 },
    'claude-3-7-sonnet': { window: 200_000, output: 128_000, thinks: true },
    'claude-sonnet-4': { window: 200_000, output: 64_000, thinks: true },
    'claude-sonnet-4-0': { window: 200_000, output: 64_000, thinks: true },
    'claude-opus-4': { window: 200_000, output: 32_000, thinks: true },
    'claude-opus-4-0': { window: 200_000, output: 32_000, thinks: true },
    'claude-opus-4-1': { window: 200_000, output: 32_000, thinks: true },
    'claude-haiku-4-5': { window: 200_000, output: 64_000, thinks: true },
    'claude-sonnet-4-5': { window: 200_000, output: 64_000, thinks: true },
    'claude-opus-4-5': { window: 200_000, output: 64_000, thinks: true },
    'claude-sonnet-4-6': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-opus-4-6': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-opus-4-7': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-opus-4-8': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-sonnet-5': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-opus-5': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-fable-5': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-mythos-5': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-fable-5-1': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-mythos-5-1': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-haiku-5-5': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-sonnet-5-5': { window: 1_000_000, output: 128_000, thinks: true },
    'claude-opus-5-5': { window: 1_000_000, output: 128_000, thinks: true },
  },
};

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://platform.claude.com/docs/en/api',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'POST', path: '/v1/messages/count_tokens' },
  ],
};

/** Headers of its answers that pass: limits of three tiers, and the organization's id. */
export const ANSWER_HEADERS: Names = {
  source: 'https://platform.claude.com/docs/en/api/rate-limits and …/api/overview',
  date: '2026-11-26',
  names: ['anthropic-*'],
};

/** Fields of bodies, next to `model`, that choose a model. */
export const MODEL_FIELDS: Names = {
  source: '`@anthropic-ai/sdk` 1.14, resources/beta/messages',
  date: '2026-11-23',
  names: ['fallbacks'],
};
