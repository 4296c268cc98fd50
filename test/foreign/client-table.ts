import { readdirSync, readFileSync } from 'node:fs';
import { llmClients } from './llm-clients.ts';

/** The row of a client in docs/reference/client-compatibility.md. */
export type ClientRow = {
  /** Each package that the row names, with its version. */
  readonly packages: ReadonlyMap<string, string>;
  /** Packages of two languages can have one name. */
  readonly isTypeScript: boolean;
  readonly failed: string;
  /** Whatever was not tested, or works otherwise. */
  readonly except: string;
};

/** The cells of its lines, and what is before and after them. */
const CELLS = 4 + 2;

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

export const clientRows: readonly ClientRow[] = read('docs/reference/client-compatibility.md')
  .split('\n')
  .filter((line) => line.startsWith('| `') && line.split('|').length === CELLS)
  .map((line) => {
    const [names = '', versions = '', failed = '', except = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const each = versions.split(', ');
    const packages = new Map(
      [...names.matchAll(/`([^`]+)`/g)].map(([, name = ''], i) => [name, each[i] ?? '']),
    );
    const isTypeScript = names.includes('(TypeScript)');
    return { packages, isTypeScript, failed, except };
  });

/** The package of a client of the foreign tests, where it has another name. */
const PACKAGES: Readonly<Record<string, string>> = {
  langchain: 'langchain-openai',
  'pydantic-ai': 'pydantic-ai-slim',
  'openai-go': 'openai-go/v3',
  'llama-index': 'llama-index-llms-openai',
};

const packageOf = (client: string): string =>
  PACKAGES[client] ?? client.replace(/^Vercel AI SDK, /, '@ai-sdk/').replace(TYPESCRIPT, '');

const TYPESCRIPT = ' (TypeScript)';

/** The row of a client of the foreign tests. */
export const rowOf = (client: string): ClientRow | undefined =>
  clientRows.find(
    ({ packages, isTypeScript }) =>
      packages.has(packageOf(client)) && isTypeScript === client.endsWith(TYPESCRIPT),
  );

const ALL = { at: '' };
const EVERY_TOOLCHAIN = {
  python: {
    ...{
      client: ALL,
      llm: ALL,
      litellm: ALL,
      llamaindex: ALL,
      mcp1: ALL,
      mcp2: ALL,
      openapi: ALL,
      schemathesis: ALL,
    },
    ...{ 'agent-sdk': ALL, aider: ALL },
  },
  ...{
    go: ALL,
    deploy: ALL,
    compose: ALL,
    promtool: ALL,
    s3Server: ALL,
    js: ALL,
    java: ALL,
    openapiJava: ALL,
  },
  ...{ uv: ALL, openapiLint: ALL, oapiCodegen: ALL, rust: ALL, agents: ALL, codex: ALL },
};

/** All clients of the foreign tests, whichever of them this machine has. */
export const foreignClients: readonly string[] = llmClients(EVERY_TOOLCHAIN).map(({ name }) => name);

const PINS = [
  ['test/foreign/python/requirements/llm.txt', /^([\w-]+)==([\w.]+)$/gm],
  ['test/foreign/python/requirements/litellm.txt', /^([\w-]+)==([\w.]+)$/gm],
  ['test/foreign/python/requirements/llamaindex.txt', /^([\w-]+)==([\w.]+)$/gm],
  ['test/foreign/go/go.mod', /github\.com\/openai\/(\S+) v(\S+)/g],
  ['test/foreign/js/package.json', /"([@\w/-]+)": "([\d.]+)"/g],
  ['pnpm-workspace.yaml', /^ {2}"?([@\w/-]+)"?: ([\d.]+)$/gm],
  ['test/foreign/java/pom.xml', /<artifactId>(openai-java)<\/artifactId>\s*<version>([\d.]+)</g],
] as const;

/** Each pinned version of a package that tests use. */
export const pinned: ReadonlySet<string> = new Set(
  PINS.flatMap(([file, pin]) =>
    [...read(file).matchAll(pin)].map(([, name, version]) => `${name} ${version}`),
  ),
);

const CLIENT = /^(openai|ai|cohere-ai|groq-sdk|@(ai-sdk|anthropic-ai|google|aws-sdk)\/.*)$/;

/** The packages of LLM clients that `test/sdk` imports. */
export const sdkPackages: ReadonlySet<string> = new Set(
  readdirSync(new URL('../sdk/', import.meta.url))
    .filter((name) => name.endsWith('.test.ts'))
    .flatMap((name) => [...read(`test/sdk/${name}`).matchAll(/ from '([^'.:]+)'/g)])
    .flatMap(([, name = '']) => (CLIENT.test(name) ? [name] : [])),
);
