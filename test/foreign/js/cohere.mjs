import { CohereClientV2 } from 'cohere-ai';
import { run } from './cases.mjs';
import { ASKS_WEATHER, called, HELLO, textOf, WEATHER } from './weather.mjs';

const clientOf = (url) => new CohereClientV2({ baseUrl: url.replace('/v2/chat', ''), token: 'unused' });
const body = (content) => ({
  model: 'command-a-03-2025',
  maxTokens: 100,
  messages: [{ role: 'user', content }],
});
const options = (retries) => (retries ? {} : { maxRetries: 0 });

await run({
  plain: async (url, retries) =>
    (await clientOf(url).chat(body(HELLO), options(retries))).message.content[0].text,
  stream: async (url, retries) =>
    textOf(await clientOf(url).chatStream(body(HELLO), options(retries)), (event) =>
      event.type === 'content-delta' ? event.delta.message.content.text : '',
    ),
  tools: async (url, retries) => {
    const asked = { ...body(ASKS_WEATHER), tools: [WEATHER] };
    const { message } = await clientOf(url).chat(asked, options(retries));
    const call = message.toolCalls[0].function;
    return called(call.name, call.arguments);
  },
});
