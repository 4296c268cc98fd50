import type { Cited, FreeCalls, Group, Matching, Names, Refusals } from '../fact.ts';

/** Next to the fields of OpenAI. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: 'https://learn.microsoft.com/azure/ai-foundry/openai/reference',
  date: '2026-11-22',
  entries: {
    user_security_context: { effect: 'harmless' },
  },
} as const satisfies Group;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://learn.microsoft.com/azure/ai-foundry/openai/reference',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/openai/v1/models' },
    { method: 'GET', path: '/openai/v1/models/*' },
    { method: 'GET', path: '/openai/v1/responses/*' },
    { method: 'GET', path: '/openai/v1/responses/*/input_items' },
    { method: 'POST', path: '/openai/v1/responses/*/cancel' },
    { method: 'DELETE', path: '/openai/v1/responses/*' },
    { method: 'GET', path: '/openai/responses/*' },
    { method: 'GET', path: '/openai/responses/*/input_items' },
    { method: 'POST', path: '/openai/responses/*/cancel' },
    { method: 'DELETE', path: '/openai/responses/*' },
  ],
};

/** Azure bills an error if the service did work: a content filter or an input limit (400), a timeout (408). It does not bill failed authentication (401) and rate limits (429). */
export const REFUSALS: Refusals = {
  source:
    'https://learn.microsoft.com/azure/ai-foundry/openai/how-to/manage-costs, HTTP error response code and billing status; …/concepts/content-filter',
  date: '2026-11-22',
  errors: [
    { status: 400, code: 'content_filter', billing: 'billed' },
    { status: 400, code: 'context_length_exceeded', billing: 'billed' },
    { status: 401, billing: 'free' },
    { status: 408, billing: 'billed' },
    { status: 429, billing: 'free' },
  ],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source:
    'https://learn.microsoft.com/azure/ai-foundry/openai/how-to/quota and …/spillover-traffic-management; recorded answers',
  date: '2026-11-26',
  names: [
    'openai-*',
    'apim-*',
    'x-apim-*',
    'x-ms-*',
    'azureml-*',
    'operation-location',
    'api-supported-versions',
  ],
};

/** Fields of bodies, next to `model`, that choose a model. */
export const MODEL_FIELDS: Names = {
  source: 'https://learn.microsoft.com/azure/ai-foundry/openai/reference',
  date: '2026-11-23',
  names: ['data_sources'],
};

/** Models of search and deep research, which have fees of their own. A model router has a price of its own for input, next to that of the model that it chooses. */
export const REFUSED_MODELS: Matching = {
  source: 'https://learn.microsoft.com/azure/ai-foundry/openai/concepts/model-router, Billing',
  date: '2026-11-27',
  matching: /-search-(preview|api)|deep-research|model-router/,
};

/** The first version of the API with `stream_options`. */
export const ASKING_SINCE: Cited & { readonly version: string } = {
  source: 'https://github.com/Azure/azure-rest-api-specs, 2024-09-01-preview',
  date: '2026-11-22',
  version: '2024-09-01',
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: 'https://learn.microsoft.com/azure/ai-foundry/openai/how-to/realtime-audio-webrtc',
  date: '2026-11-29',
  names: [
    '/openai/v1/realtime/calls',
    '/openai/v1/realtime/calls/*/accept',
    '/openai/v1/realtime/client_secrets',
    '/openai/realtimeapi/sessions',
  ],
};
