/** A program that calls a URL. */
export type Example = { readonly name: string; readonly code: string };

/** The call that examples make. */
export type ExampleCall = {
  readonly method: string;
  readonly path: string;
  /** Undefined: the holder chooses it. */
  readonly model: string | undefined;
  /** Whether the provider is known to serve a model. */
  readonly serves: (model: string) => boolean;
};

/**
 * Programs for a URL. They read the URL without its path from the environment, so no program has a secret in its text.
 * @returns curl first, then the SDKs that add this path to their base URL
 */
export function sdkExamples({ method, path, model: fixed, serves }: ExampleCall): Example[] {
  const sdk = SDKS.find(({ ending }) => method === 'POST' && ending.test(path));
  const model = fixed ?? sdk?.models.find(serves) ?? 'MODEL';
  const body = method === 'POST' ? (sdk?.body(model) ?? {}) : undefined;
  const base = path.replace(sdk?.ending ?? /$/, '');
  return [curl(method, path, body), ...(sdk?.write(base, modelIn(path) ?? model) ?? [])];
}

/** How the SDKs of one API call one endpoint. */
type Sdk = {
  /** The part of the path that the SDK adds. */
  readonly ending: RegExp;
  /** Small models of vendors that have the API. An example uses the first one with a price at the provider. */
  readonly models: readonly string[];
  readonly body: (model: string) => object;
  /** @param base the path before that part, empty or `/…` */
  readonly write: (base: string, model: string) => Example[];
};

const HELLO = [{ role: 'user', content: 'Hello' }];

const openai = (
  { ending, models, body }: Omit<Sdk, 'write'>,
  [call, print, fields]: readonly [call: string, print: string, fields: string],
  python: readonly [print: string, fields: string] = [print, fields],
): Sdk => ({
  ending,
  models,
  body,
  write: (base, model) => [
    {
      name: 'TypeScript, package openai',
      code: `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.PRESIGN_URL + ${text(base)}, apiKey: 'unused' });
const answer = await client.${call}({ model: ${text(model)}, ${fields} });
console.log(answer.${print});`,
    },
    {
      name: 'Python, package openai',
      code: `import os
from openai import OpenAI

client = OpenAI(base_url=os.environ["PRESIGN_URL"] + ${text(base)}, api_key="unused")
answer = client.${call}(model=${text(model)}, ${python[1]})
print(answer.${python[0]})`,
    },
  ],
});

const anthropic: Sdk = {
  ending: /\/v1\/messages$/,
  models: ['claude-haiku-4-5'],
  body: (model) => ({ model, max_tokens: 256, messages: HELLO }),
  write: (base, model) => [
    {
      name: 'TypeScript, package @anthropic-ai/sdk',
      code: `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: process.env.PRESIGN_URL + ${text(base)}, apiKey: 'unused' });
const answer = await client.messages.create({
  model: ${text(model)},
  max_tokens: 256,
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.content);`,
    },
    {
      name: 'Python, package anthropic',
      code: `import os
from anthropic import Anthropic

client = Anthropic(base_url=os.environ["PRESIGN_URL"] + ${text(base)}, api_key="unused")
answer = client.messages.create(
    model=${text(model)},
    max_tokens=256,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content)`,
    },
  ],
};

const google: Sdk = {
  ending: /\/v1beta\/models\/[^/]+:generateContent$/,
  models: [],
  body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }),
  write: (base, model) => [
    {
      name: 'TypeScript, package @google/genai',
      code: `import { GoogleGenAI } from '@google/genai';

const httpOptions = { baseUrl: process.env.PRESIGN_URL + ${text(base)}, apiVersion: 'v1beta' };
const client = new GoogleGenAI({ apiKey: 'unused', httpOptions });
const answer = await client.models.generateContent({ model: ${text(model)}, contents: 'Hello' });
console.log(answer.text);`,
    },
    {
      name: 'Python, package google-genai',
      code: `import os
from google import genai
from google.genai import types

options = types.HttpOptions(base_url=os.environ["PRESIGN_URL"] + ${text(base)}, api_version="v1beta")
client = genai.Client(api_key="unused", http_options=options)
answer = client.models.generate_content(model=${text(model)}, contents="Hello")
print(answer.text)`,
    },
  ],
};

const cohere: Sdk = {
  ending: /\/v2\/chat$/,
  models: ['command-a-03-2025'],
  body: (model) => ({ model, messages: HELLO }),
  write: (base, model) => [
    {
      name: 'TypeScript, package cohere-ai',
      code: `import { CohereClientV2 } from 'cohere-ai';

const client = new CohereClientV2({ baseUrl: process.env.PRESIGN_URL + ${text(base)}, token: 'unused' });
const answer = await client.chat({ model: ${text(model)}, messages: [{ role: 'user', content: 'Hello' }] });
console.log(answer.message.content);`,
    },
    {
      name: 'Python, package cohere',
      code: `import os
import cohere

client = cohere.ClientV2(base_url=os.environ["PRESIGN_URL"] + ${text(base)}, api_key="unused")
answer = client.chat(model=${text(model)}, messages=[{"role": "user", "content": "Hello"}])
print(answer.message.content)`,
    },
  ],
};

const CHAT_MODELS = [
  'gpt-5.4-mini',
  'llama-3.3-70b-versatile',
  'mistral-small-latest',
  'deepseek-v4-flash',
  'grok-4-1-fast-non-reasoning',
  'openai/gpt-5.4-mini',
];

const SDKS: readonly Sdk[] = [
  openai(
    {
      ending: /\/chat\/completions$/,
      models: CHAT_MODELS,
      body: (model) => ({ model, messages: HELLO }),
    },
    [
      'chat.completions.create',
      'choices[0]?.message.content',
      "messages: [{ role: 'user', content: 'Hello' }]",
    ],
    ['choices[0].message.content', 'messages=[{"role": "user", "content": "Hello"}]'],
  ),
  openai(
    { ending: /\/responses$/, models: CHAT_MODELS, body: (model) => ({ model, input: 'Hello' }) },
    ['responses.create', 'output_text', "input: 'Hello'"],
    ['output_text', 'input="Hello"'],
  ),
  openai(
    {
      ending: /\/embeddings$/,
      models: ['text-embedding-3-small', 'mistral-embed'],
      body: (model) => ({ model, input: 'Hello' }),
    },
    ['embeddings.create', 'data.length', "input: 'Hello'"],
    ['data', 'input="Hello"'],
  ),
  anthropic,
  google,
  cohere,
];

/** The model in a path of Google's API. */
const modelIn = (path: string): string | undefined => /\/models\/([^/:]+):/.exec(path)?.[1];

/** A JSON string is also a string literal in both languages. */
const text = (value: string): string => JSON.stringify(value);

function curl(method: string, path: string, body: object | undefined): Example {
  const lines = [
    `curl ${method === 'GET' || method === 'POST' ? '' : `-X ${method} `}"$PRESIGN_URL"${quoted(path)}`,
    ...(body ? ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`] : []),
  ];
  return { name: 'curl', code: lines.join(' \\\n  ') };
}

/** One word for a shell, whatever is in it. */
const quoted = (word: string): string =>
  /^[\w/.:@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
