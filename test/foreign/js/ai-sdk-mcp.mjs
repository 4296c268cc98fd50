// Runs the cases of the environment variable CASES with the MCP client of the Vercel AI SDK.
import { createMCPClient } from '@ai-sdk/mcp';
import { run } from './cases.mjs';

/** Lists the tools of a server and calls one of them. */
async function add(type, url, a = 2) {
  const client = await createMCPClient({ transport: { type, url } });
  try {
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: 'add', arguments: { a, b: 40 } });
    return `${tools.length} tools, ${result.content[0].text}`;
  } finally {
    await client.close();
  }
}

/** The server answers after as many seconds. */
const WAIT = -600;

await run({
  http: (url) => add('http', url),
  sse: (url) => add('sse', url),
  wait_http: (url) => add('http', url, WAIT),
  wait_sse: (url) => add('sse', url, WAIT),
});
