import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';

/** One recording upstream for every provider, answering as the test at hand says. */
export type Providers = Upstream & {
  /** `PROVIDERS_FILE` that puts all providers there. */
  readonly file: object;
  /** How it answers until a test changes it. */
  answer: Answer;
};

/** The answer when no test sets another one. */
export const OK: Answer = (_seen, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
};

export async function startProviders(): Promise<Providers> {
  const upstream = await startUpstream((...call) => providers.answer(...call));
  const at = { base_url: upstream.url };
  const file = { openai: at, anthropic: at, google: at, cohere: at, 'azure-openai': at };
  const providers: Providers = { ...upstream, file, answer: OK };
  return providers;
}
