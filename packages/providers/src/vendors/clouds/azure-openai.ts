import { allow } from '../../bounds/allow-list.ts';
import { compileGroup } from '../../bounds/compile-group.ts';
import type { Dialect } from '../../dialect.ts';
import * as FACTS from '../../facts/vendors/azure-openai.ts';
import type { JsonObject } from '../../json.ts';
import { openaiChat } from '../../openai/chat.ts';
import { AS_OPENAI, openaiCompletions } from '../../openai/completions.ts';
import { openaiEmbeddings } from '../../openai/embeddings.ts';
import { openaiResponses } from '../../openai/responses.ts';
import { OPENAI_INPUT, type OpenaiRules } from '../../openai/rules.ts';
import { decoded } from '../../path.ts';
import type { Provider } from '../../provider.ts';
import type { Unbounded } from '../../spend.ts';
import {
  OPENAI_CHAT,
  OPENAI_MODELS,
  OPENAI_RULES,
  OPENAI_VENDOR_RULES,
  RESPONSES_MINIMUM,
} from '../openai.ts';

/** A deployment has its own tier, and its price is for that tier. The name of a deployment does not determine the cost of images. */
const RULES: OpenaiRules = {
  ...OPENAI_RULES,
  input: OPENAI_INPUT,
  standardTier: undefined,
  errors: ['error object', 'message'],
  refusesAsking,
};

const { version: ASKING_SINCE } = FACTS.ASKING_SINCE;

/**
 * Calls with the customer's own data refuse the field: "Validation error at #/stream_options: Extra inputs are not permitted"
 * (https://github.com/openai/openai-python/issues/2296). Versions before the field do so, too
 * (https://github.com/openai/openai-python/issues/1469). A path of v1 needs no version.
 */
function refusesAsking({ data_sources }: JsonObject, query: string): Unbounded | undefined {
  if (data_sources !== undefined) return { param: 'data_sources', reason: NO_USAGE };
  const versions = [...new URLSearchParams(query)].filter(([name]) => name.toLowerCase() === 'api-version');
  const isOld = versions.some(([, version]) => /^\d{4}-\d\d-\d\d/.test(version) && version < ASKING_SINCE);
  return isOld ? { param: 'api-version', reason: `is before ${ASKING_SINCE}: ${NO_USAGE}` } : undefined;
}

const NO_USAGE = 'the stream of such a call reports no usage';

const chat = openaiChat('azure-v1-chat', RULES, {
  ...OPENAI_CHAT,
  fields: allow(OPENAI_CHAT.fields, compileGroup(FACTS.CHAT_FIELDS)),
});
const completions = openaiCompletions('azure-v1-completions', RULES, AS_OPENAI);
const embeddings = openaiEmbeddings('azure-v1-embeddings', RULES);
const responses = openaiResponses('azure-responses', RULES, { minimum: RESPONSES_MINIMUM });

/**
 * Deployment endpoints speak OpenAI's dialects, but the path names the model.
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference
 */
const onDeployment = (id: string, dialect: Dialect): Dialect => ({
  ...dialect,
  id,
  settings: dialect.settings.filter(({ at }) => at?.[0] !== 'model'),
  modelInPath: { collections: ['deployments'], repeatedAt: [['model']], withMethod: false },
  ...(dialect.spend && { spend: { ...dialect.spend, model: (_, path) => deploymentIn(path) } }),
});

/** The operator names its model (`deployments`), or gives a price under its name. */
const deploymentIn = (path: string): string | undefined =>
  decoded(/\/deployments\/([^/;]+)/i.exec(path)?.[1] ?? '') || undefined;

/**
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference; the `openai` SDK's azure.ts (header, deployments).
 * Each resource has its own origin, `https://NAME.openai.azure.com`, so the operator supplies it.
 */
export const azureOpenai: Provider = {
  id: 'azure-openai',
  baseUrl: undefined,
  modelFields: FACTS.MODEL_FIELDS.names,
  traceName: 'azure.ai.openai',
  priceList: 'azure',
  namesDeployments: true,
  credential: { header: 'api-key' },
  routes: [
    { path: '/openai/deployments/*/chat/completions', dialect: onDeployment('azure-openai-chat', chat) },
    {
      path: '/openai/deployments/*/completions',
      dialect: onDeployment('azure-openai-completions', completions),
    },
    {
      path: '/openai/deployments/*/embeddings',
      dialect: onDeployment('azure-openai-embeddings', embeddings),
    },
    { path: '/openai/responses', dialect: responses },
    { path: '/openai/v1/chat/completions', dialect: chat },
    { path: '/openai/v1/responses', dialect: responses },
    { path: '/openai/v1/completions', dialect: completions },
    { path: '/openai/v1/embeddings', dialect: embeddings },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  rules: { ...OPENAI_VENDOR_RULES, refusedModels: FACTS.REFUSED_MODELS.matching },
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: FACTS.REFUSALS.errors,
  // Deployments are often named after their model.
  models: OPENAI_MODELS,
};
