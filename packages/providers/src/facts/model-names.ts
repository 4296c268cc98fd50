import type { Matching, Parts } from './fact.ts';

/** Parts that may follow a name without making it another model: a stage, a build, a date, or a version of an endpoint. */
export const SUFFIXES: Parts = {
  source:
    'https://platform.openai.com/docs/models, https://platform.claude.com/docs/en/about-claude/models/overview, https://ai.google.dev/gemini-api/docs/models, https://openrouter.ai/docs/guides/routing/model-variants: how each names its snapshots',
  date: '2026-11-27',
  parts: [
    /-(?:latest|preview|exp|beta)/y,
    /[-@]\d{3,8}(?!\d)/y,
    /-\d{4}-\d{2}-\d{2}(?!\d)/y,
    /-\d{2}-\d{2,4}(?!\d)/y,
    /:free/y,
  ],
};

/** The date at the end of a snapshot's name. */
export const DATE: Matching = {
  source: 'https://platform.openai.com/docs/models',
  date: '2026-11-27',
  matching: /-\d{4}-\d{2}-\d{2}$/,
};

/** Region and maker before the name of an inference profile. */
export const REGION_AND_MAKER: Matching = {
  source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html',
  date: '2026-11-27',
  matching: /^(?:[a-z-]+\.)+/,
};

/** The version of an endpoint, behind a name. */
export const ENDPOINT_VERSION: Matching = {
  source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/models-supported.html',
  date: '2026-11-27',
  matching: /(?:-v\d+)?:\d+$/,
};
