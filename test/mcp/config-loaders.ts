/**
 * Programs that hand a bundle's document, fetched from the address they are given, to an MCP client's own loader of
 * configurations, and print what the tool `add` of both servers says.
 */
export const JAVASCRIPT_LOADER = `
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
const bundle = await (await fetch(process.argv[2])).json();
const client = new MultiServerMCPClient(bundle);
const tools = await client.getTools();
const answers = [];
for (const tool of tools) if (tool.name.endsWith('add')) answers.push(await tool.invoke({ a: 2, b: 40 }));
process.stdout.write(answers.join(' '));
await client.close();
`;

const FASTMCP = `
import asyncio, json, sys, urllib.request
from fastmcp import Client

async def main():
    bundle = json.load(urllib.request.urlopen(sys.argv[1]))
    async with Client(bundle) as client:
        names = [tool.name for tool in await client.list_tools() if tool.name.endswith("add")]
        answers = [await client.call_tool(name, {"a": 2, "b": 40}) for name in names]
        print(*(answer.content[0].text for answer in answers))

asyncio.run(main())
`;

const LANGCHAIN = `
import asyncio, json, sys, urllib.request
from langchain_mcp_adapters.client import MultiServerMCPClient

async def main():
    bundle = json.load(urllib.request.urlopen(sys.argv[1]))
    tools = await MultiServerMCPClient(bundle["mcpServers"]).get_tools()
    answers = [await tool.ainvoke({"a": 2, "b": 40}) for tool in tools if tool.name == "add"]
    print(*(answer if isinstance(answer, str) else answer[0]["text"] for answer in answers))

asyncio.run(main())
`;

/** Each by the module it needs. */
export const PYTHON_LOADERS: readonly (readonly [module: string, program: string])[] = [
  ['fastmcp', FASTMCP],
  ['langchain_mcp_adapters', LANGCHAIN],
];
