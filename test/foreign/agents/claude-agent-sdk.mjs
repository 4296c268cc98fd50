// node claude-agent-sdk.mjs PROMPT BUNDLE TOOLS: prints what an agent of the SDK answers.
import { query } from '@anthropic-ai/claude-agent-sdk';

const [prompt, bundle, tools] = process.argv.slice(2);
const { mcpServers } = JSON.parse(bundle);
const options = { mcpServers, allowedTools: tools.split(','), stderr: (text) => process.stderr.write(text) };
for await (const message of query({ prompt, options })) {
  if (message.type === 'result') console.log(message.result ?? message.errors?.join('\n') ?? message.subtype);
}
