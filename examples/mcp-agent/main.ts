/** An agent gets a model and its tools as URLs of one session, within limits, and no key. */
import { strict as assert } from 'node:assert';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { mcpConfig, openaiOptions } from '@presign/client';
import OpenAI, { APIError } from 'openai';
import { presign, sandboxMcpUrl } from '../presign.ts';

// The backend issues both. It names the servers, and what each of them wants as authentication; the sandbox wants none.
const model = await presign.presign({
  provider: 'sandbox',
  path: '/v1/chat/completions',
  client_api_key: 'sk-sandbox',
  cost_limit: 10_000,
});
const bundle = await presign.mcpPresign({
  servers: [
    {
      name: 'sandbox',
      url: await sandboxMcpUrl(),
      transport: 'http',
      pricing: { tools: { add: 250 } },
    },
  ],
  session_id: model.session_id,
  max_uses: 3,
  cost_limit: 10_000,
});

// This is all that the agent is given: options of the SDKs that it is made with.
const openai = new OpenAI({ ...openaiOptions(model), maxRetries: 0 });
const { mcpServers } = mcpConfig(bundle);
process.stdout.write(`A model, and the servers ${Object.keys(mcpServers)}.\n`);

const tools = new Client({ name: 'example', version: '1.0.0' });
// The SDK's own class does not fit its own type where optional properties are exact.
type Transport = Parameters<Client['connect']>[0];
await tools.connect(new StreamableHTTPClientTransport(new URL(mcpServers.sandbox?.url ?? '')) as Transport);

// Connecting and asking what there is costs nothing.
const names = (await tools.listTools()).tools.map(({ name }) => name);
assert.ok(names.includes('add'));
process.stdout.write(`Tools: ${names.join(', ')}\n`);

// A model would choose the calls. The sandbox has none that thinks, so that the task is a list here.
const add = async (a: number, b: number) => {
  const { content } = await tools.callTool({ name: 'add', arguments: { a, b } });
  return `${a} + ${b} = ${(content as { text: string }[])[0]?.text}`;
};
const found = [await add(2, 40), await add(1, 1), await add(3, 4)];
assert.deepEqual(found, ['2 + 40 = 42', '1 + 1 = 2', '3 + 4 = 7']);
const ask = () =>
  openai.chat.completions.create({
    model: 'sandbox-1',
    messages: [{ role: 'user', content: `Sum up: ${found.join(', ')}.` }],
  });
const said = (await ask()).choices[0]?.message.content ?? '';
assert.ok(said.includes('Sum up: 2 + 40 = 42, 1 + 1 = 2, 3 + 4 = 7.'), said);
process.stdout.write(`The model said: ${said}\n`);

// The fourth call does not reach the server: the client hears why.
const refusal = await add(5, 5).catch((error: unknown) => error);
assert.ok(refusal instanceof McpError, 'the fourth call was let through');
assert.equal((refusal.data as { code: string }).code, 'uses_exhausted');
process.stdout.write(`A fourth call: uses_exhausted: ${refusal.message}\n`);
await tools.close();

// The session tells what both came to. Revoked, it takes the model and the tools at once.
const { grants } = await presign.getSession({ id: model.session_id });
// A bundle's grants have one budget, which each of them tells: it is counted at the bundle's own.
const budgets = grants.filter(({ kind }) => kind !== 'mcp');
const spent = budgets.map(({ provider, live }) => `${provider} ${live?.used} used, ${live?.spent} spent`);
assert.ok(budgets.some(({ provider, live }) => provider === 'mcp' && live?.used === 3 && live.spent === 750));
process.stdout.write(`The session: ${spent.join('; ')}\n`);
await presign.revokeSession({ id: model.session_id });
const revoked = await ask().catch((error: unknown) => error);
assert.ok(revoked instanceof APIError, 'a revoked URL was served');
assert.equal(revoked.code, 'grant_revoked');
process.stdout.write(`After it was revoked: ${revoked.code}.\n`);
