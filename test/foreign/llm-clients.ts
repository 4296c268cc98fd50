import { join } from 'node:path';
import { pythonProgram } from './cases.ts';
import { type Installed, newestNode, type Toolchains } from './install.ts';
import { WITH_MORE } from './on-request.ts';

export type Provider = keyof typeof PATHS;

/** A program that calls one provider's API with one client library. */
export type LlmClient = {
  readonly name: string;
  readonly provider: Provider;
  readonly command: readonly [program: string, ...args: string[]];
};

/** The paths that each provider's clients call. */
export const PATHS = {
  openai: ['/v1/chat/completions'],
  anthropic: ['/v1/messages'],
  google: [
    '/v1beta/models/gemini-2.5-flash:generateContent',
    '/v1beta/models/gemini-2.5-flash:streamGenerateContent',
  ],
  cohere: ['/v2/chat'],
  groq: ['/openai/v1/chat/completions'],
  mistral: ['/v1/chat/completions'],
} as const;

const PYTHON: readonly (readonly [name: string, provider: Provider, program: string])[] = [
  ['openai', 'openai', 'openai_client'],
  ['anthropic', 'anthropic', 'anthropic_client'],
  ['google-genai', 'google', 'google_client'],
  ['cohere', 'cohere', 'cohere_client'],
  ['groq', 'groq', 'groq_client'],
  ['mistralai', 'mistral', 'mistral_client'],
  ['langchain', 'openai', 'langchain_client'],
  ['pydantic-ai', 'openai', 'pydantic_ai_client'],
  ...(WITH_MORE ? ([['openai-agents', 'openai', 'openai_agents_client']] as const) : []),
];

/** The newest majors, which need a newer Node than `test/sdk` runs on. */
const JAVASCRIPT: readonly (readonly [name: string, provider: Provider, program: string])[] = [
  ['openai (TypeScript)', 'openai', 'openai'],
  ['@anthropic-ai/sdk', 'anthropic', 'anthropic'],
  ['@google/genai', 'google', 'google'],
  ['cohere-ai', 'cohere', 'cohere'],
  ...(WITH_MORE
    ? ([
        ['@openai/agents', 'openai', 'openai-agents'],
        ['@langchain/openai', 'openai', 'langchain'],
      ] as const)
    : []),
];

/** The clients that this machine has. */
export const llmClients = ({ python, go, js }: Toolchains): readonly LlmClient[] => [
  ...PYTHON.flatMap(([name, provider, program]) =>
    having(python.llm, (at) => ({ name, provider, command: [at, pythonProgram(program)] })),
  ),
  ...having(python.litellm, (at) => ({
    ...{ name: 'litellm', provider: 'openai', command: [at, pythonProgram('litellm_client')] },
  })),
  ...having(python.llamaindex, (at) => ({
    ...{ name: 'llama-index', provider: 'openai', command: [at, pythonProgram('llamaindex_client')] },
  })),
  ...JAVASCRIPT.flatMap(([name, provider, program]) =>
    having(js, (at) => ({ name, provider, command: [newestNode(at), join(at, `${program}.mjs`)] })),
  ),
  ...having(go, (at) => ({ name: 'openai-go', provider: 'openai', command: [join(at, 'openai-client')] })),
  ...(Object.keys(PATHS) as Provider[]).flatMap((provider) =>
    having(js, (at) => ({
      ...{ name: `Vercel AI SDK, ${provider}`, provider },
      command: [newestNode(at), join(at, 'vercel-ai.mjs'), provider],
    })),
  ),
];

const having = (installed: Installed, client: (at: string) => LlmClient): readonly LlmClient[] =>
  'at' in installed ? [client(installed.at)] : [];
