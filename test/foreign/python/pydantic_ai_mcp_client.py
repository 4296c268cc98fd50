import json
import tempfile
import urllib.request

from cases import run
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from pydantic_ai.mcp import MCPToolset, load_mcp_toolsets


async def add(toolset, a=2):
    async with toolset:
        tools = await toolset.list_tools()
        return f"{len(tools)} tools, {await toolset.direct_call_tool('add', {'a': a, 'b': 40})}"


async def http(url, retries):
    return await add(MCPToolset(StreamableHttpTransport(url)))


async def sse(url, retries):
    return await add(MCPToolset(SSETransport(url)))


async def bundle(url, retries):
    """The address of a bundle's document in the format of Pydantic AI."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, urllib.request.urlopen(url) as document:
        json.dump(json.load(document), file)
        file.flush()
        return " ".join([await add(prefixed.wrapped) for prefixed in load_mcp_toolsets(file.name)])


async def wait_http(url, retries):
    return await add(MCPToolset(StreamableHttpTransport(url)), WAIT)


async def wait_sse(url, retries):
    return await add(MCPToolset(SSETransport(url)), WAIT)


# The server answers after as many seconds.
WAIT = -600
run(http=http, sse=sse, bundle=bundle, wait_http=wait_http, wait_sse=wait_sse)
