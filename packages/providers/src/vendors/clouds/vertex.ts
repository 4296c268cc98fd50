import { anthropicInCloud } from '../../anthropic/in-cloud.ts';
import { claudeWrites } from '../../anthropic/messages.ts';
import { GOOGLE_TOKEN_URL } from '../../cloud-key.ts';
import type { Dialect } from '../../dialect.ts';
import { VERTEX_ANSWER_HEADERS, VERTEX_PRICED_HEADERS } from '../../facts/gemini.ts';
import { geminiErrors } from '../../gemini/errors.ts';
import { geminiCountTokens, geminiGenerate } from '../../gemini/generate.ts';
import { decoded } from '../../path.ts';
import type { Provider } from '../../provider.ts';
import { anthropic } from '../anthropic.ts';
import { google } from '../google.ts';

const atListPrice = (dialect: Dialect): Dialect => ({
  ...dialect,
  ...(dialect.spend && {
    spend: {
      ...dialect.spend,
      pricedHeaders: [...(dialect.spend.pricedHeaders ?? []), ...VERTEX_PRICED_HEADERS.names],
    },
  }),
});

const generate = atListPrice(geminiGenerate);
const claude = atListPrice(
  anthropicInCloud('vertex-anthropic', {
    modelInPath: { collections: ['models'], repeatedAt: [], withMethod: true },
    model: (path) => decoded(/\/models\/([^/:]+)(?::|%3a)/i.exec(path)?.[1] ?? '') || undefined,
    streamPath: /(?::|%3a)streamRawPredict\/?$/i,
  }),
);

const AT = '/*/projects/*/locations/*/publishers';

/**
 * https://cloud.google.com/vertex-ai/docs/reference/rest; for Claude `@anthropic-ai/vertex-sdk` 1.1, client.ts, which
 * also has the addresses of `global`, `us` and `eu`. The bundled list has prices of the Gemini API, and regions of Vertex AI
 * may cost more, so that each model needs the operator's own price.
 */
export const vertex: Provider = {
  id: 'vertex',
  traceName: 'gcp.vertex_ai',
  baseUrl: 'https://aiplatform.googleapis.com',
  originIn: ({ path }) => originAt(/\/locations\/([^/]+)\//.exec(path)?.[1] ?? ''),
  credential: {
    header: 'authorization',
    scheme: 'service account',
    tokenUrl: GOOGLE_TOKEN_URL,
    scope: 'https://www.googleapis.com/auth/cloud-platform',
  },
  routes: [
    { path: `${AT}/google/models/*:generateContent`, dialect: generate },
    { path: `${AT}/google/models/*:streamGenerateContent`, dialect: generate },
    { path: `${AT}/google/models/*:countTokens`, dialect: geminiCountTokens },
    { path: `${AT}/anthropic/models/*:rawPredict`, dialect: claude },
    { path: `${AT}/anthropic/models/*:streamRawPredict`, dialect: claude },
  ],
  // The dialects are those of the models' own makers, so they count all tokens that the makers add.
  rules: { addedInput: 0 },
  errors: () => geminiErrors,
  answerHeaders: VERTEX_ANSWER_HEADERS.names,
  refusals: 'undocumented',
  cacheWrites: claudeWrites,
  models: { ...google.models, ...anthropic.models },
};

/** An unknown location gets the default address, where Google refuses it. */
function originAt(location: string): string | undefined {
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`;
  return /^[a-z]{2,12}-[a-z]{4,12}\d{1,2}$/.test(location)
    ? `https://${location}-aiplatform.googleapis.com`
    : undefined;
}
