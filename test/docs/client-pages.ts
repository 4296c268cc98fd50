import { readdirSync, readFileSync } from 'node:fs';
import { REAL_KEY } from '../sdk/keys.ts';
import { startCohereUpstream } from '../sdk/upstreams/cohere.ts';
import { startGoogleUpstream } from '../sdk/upstreams/google.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import { startSandboxUpstream } from '../sdk/upstreams/sandbox.ts';
import { codeIn, type Fence, fencesIn } from './fences.ts';

const FOLDER = new URL('../../docs/guides/clients/', import.meta.url);

/** A guide to a client: the request for its URL, and programs that call the URL and print the refusal of a second call. */
export type ClientPage = {
  readonly name: string;
  readonly request: { readonly provider: string; readonly path: string | readonly string[] };
  readonly programs: readonly Fence[];
};

/** Guides whose clients are programs of their own. */
const WITHOUT_PROGRAMS = ['coding-agents.md', 'local-models.md'];

const LANGUAGES = ['ts', 'python', 'go', 'java'];

export const clientPages: readonly ClientPage[] = readdirSync(FOLDER)
  .filter((name) => !WITHOUT_PROGRAMS.includes(name))
  .map((name) => {
    const page = readFileSync(new URL(name, FOLDER), 'utf8');
    const [request = '{}'] = codeIn(page, 'json');
    const programs = fencesIn(page).filter(({ language }) => LANGUAGES.includes(language));
    return { name, request: JSON.parse(request) as ClientPage['request'], programs };
  });

/** A package that only test/foreign installs. */
const FOREIGN = /from '@mistralai\//;

/** Whether `pnpm test` has what a program imports. */
export const runsInProject = ({ language, code }: Fence): boolean => language === 'ts' && !FOREIGN.test(code);

const BEARER = ['authorization', `Bearer ${REAL_KEY}`] as const;
const SANDBOX_SAYS = 'You said: Hello';
const RECORDED_SAYS = 'Presigned URLs expire.';

export type Provider = {
  readonly start: () => Promise<PacedUpstream>;
  /** The header in which it expects its key. */
  readonly key: readonly [header: string, value: string];
  readonly says: string;
};

/** The upstream of each provider that a guide names, and what it answers to "Hello". */
export const PROVIDERS: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ['openai', { start: startSandboxUpstream, key: BEARER, says: SANDBOX_SAYS }],
  ['anthropic', { start: startSandboxUpstream, key: ['x-api-key', REAL_KEY], says: SANDBOX_SAYS }],
  ['google', { start: startGoogleUpstream, key: ['x-goog-api-key', REAL_KEY], says: RECORDED_SAYS }],
  ['cohere', { start: startCohereUpstream, key: BEARER, says: RECORDED_SAYS }],
  ['groq', { start: () => startSandboxUpstream('/openai'), key: BEARER, says: SANDBOX_SAYS }],
  ['mistral', { start: startSandboxUpstream, key: BEARER, says: SANDBOX_SAYS }],
]);

/** The fields of the request that a test adds. The sandbox has models of its own, so `config` names one. */
export const forTest = (says: string) => ({
  client_api_key: REAL_KEY,
  max_uses: 1,
  ...(says === SANDBOX_SAYS && { config: { model: 'sandbox-1' } }),
});
