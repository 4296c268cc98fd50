import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { run } from './cases.mjs';
import { ASKS_WEATHER, called, DESCRIPTION, HELLO, NAME, textOf } from './weather.mjs';

function runnerOf(url, retries) {
  const options = retries ? {} : { maxRetries: 0 };
  const baseURL = url.replace('/chat/completions', '');
  const openAIClient = new OpenAI({ baseURL, apiKey: 'unused', ...options });
  const modelProvider = new OpenAIProvider({ openAIClient, useResponses: false });
  return new Runner({ modelProvider, tracingDisabled: true });
}
const agentOf = (tools = []) =>
  new Agent({ name: 'a', model: 'gpt-4o-mini', modelSettings: { maxTokens: 100 }, tools });

await run({
  plain: async (url, retries) => (await runnerOf(url, retries).run(agentOf(), HELLO)).finalOutput,
  stream: async (url, retries) => {
    const result = await runnerOf(url, retries).run(agentOf(), HELLO, { stream: true });
    const text = await textOf(result.toTextStream(), (part) => part);
    await result.completed;
    return text;
  },
  tools: async (url, retries) => {
    const calls = [];
    const weather = tool({
      name: NAME,
      description: DESCRIPTION,
      parameters: z.object({ city: z.string() }),
      execute: (input) => {
        calls.push(called(NAME, input));
        return '18 degrees';
      },
    });
    await runnerOf(url, retries).run(agentOf([weather]), ASKS_WEATHER);
    return calls[0];
  },
});
