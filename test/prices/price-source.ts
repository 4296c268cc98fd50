import type { Answer, Upstream } from '../harness/upstream.ts';
import { startUpstream } from '../harness/upstream.ts';

/** A list in the format of genai-prices: models of OpenAI, dollars for a million tokens of input and of output. */
export const listOf = (models: Readonly<Record<string, number>>): string =>
  JSON.stringify([
    {
      id: 'openai',
      models: Object.entries(models).map(([id, dollars]) => ({
        ...{ id, match: { equals: id } },
        prices: { input_mtok: dollars, output_mtok: dollars },
      })),
    },
  ]);

/** A server of a price list, which a test changes. */
export async function startPriceSource(
  text: string,
): Promise<Upstream & { readonly serve: (text: string) => void; readonly answer: (answer: Answer) => void }> {
  const withText =
    (body: string): Answer =>
    (_seen, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  let now = withText(text);
  const server = await startUpstream((...call) => now(...call));
  return {
    ...server,
    serve: (body) => {
      now = withText(body);
    },
    answer: (answer) => {
      now = answer;
    },
  };
}
