import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

/** The answer to "Hello". */
export const SAYS = 'Presigned URLs expire.';
/** The tool call that a question about the weather gets, as the client programs print it. */
export const CALLS = 'get_weather(Paris)';

/** The part of https://www.npmjs.com/package/@copilotkit/aimock that is used here. */
type Mock = {
  readonly url: string;
  on(match: object, response: object): Mock;
  start(): Promise<string>;
  stop(): Promise<void>;
};

export type MockProviders = Upstream & {
  /** `PROVIDERS_FILE` that puts every provider there. */
  readonly file: object;
};

/**
 * A provider's key whose first `count` calls get `status`. Every such key counts for itself, so each URL fails alone.
 */
export function failingKey(status: number, count: number): string {
  keys += 1;
  return `sk-fail-${status}-${count}-${keys}`;
}
let keys = 0;

/**
 * Starts third-party mocks of the APIs of OpenAI, Anthropic, Google and Cohere, behind an upstream that records calls.
 * @param js the folder where the mocks are installed
 */
export async function startMockProviders(js: string): Promise<MockProviders> {
  const module = pathToFileURL(join(js, 'node_modules/@copilotkit/aimock/dist/index.js')).href;
  const { LLMock } = (await import(module)) as { LLMock: new (options: object) => Mock };
  const mock = new LLMock({ port: 0 })
    .on({ hasToolResult: true }, { content: 'It is 18 degrees in Paris.' })
    .on({ userMessage: /weather/ }, { toolCalls: [{ name: 'get_weather', arguments: { city: 'Paris' } }] })
    .on({ userMessage: /./ }, { content: SAYS });
  await mock.start();
  const failed = new Map<string, number>();
  const upstream = await startUpstream(async (seen, response) => {
    const key = /sk-fail-(\d+)-(\d+)-\d+/.exec(JSON.stringify(seen.headers));
    if (key) {
      const [name, status, count] = key;
      const before = failed.get(name) ?? 0;
      failed.set(name, before + 1);
      if (before < Number(count)) {
        response.writeHead(Number(status), { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { message: 'The mock fails.', type: 'server_error' } }));
        return;
      }
    }
    const answer = await fetch(mock.url + seen.url, {
      method: seen.method,
      headers: { 'content-type': 'application/json' },
      body: seen.body,
    });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? [])
      response.write(completed(decoder.decode(chunk, { stream: true })));
    response.end();
  });
  const at = { base_url: upstream.url };
  return {
    ...upstream,
    file: Object.fromEntries(
      ['openai', 'anthropic', 'google', 'cohere', 'groq', 'mistral'].map((provider) => [provider, at]),
    ),
    close: async () => {
      await upstream.close();
      await mock.stop();
    },
  };
}

/** Cohere's first event has an empty text (https://docs.cohere.com/v2/docs/streaming). The mock's has none. */
const completed = (events: string): string =>
  events.replaceAll('"content":{"type":"text"}', '"content":{"type":"text","text":""}');
