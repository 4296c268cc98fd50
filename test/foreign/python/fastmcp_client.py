import json
import urllib.request

from cases import run
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport


async def add(transport, a=2):
    async with Client(transport) as client:
        listed = await client.list_tools()
        result = await client.call_tool("add", {"a": a, "b": 40})
        return f"{len(listed)} tools, {result.content[0].text}"


async def http(url, retries):
    return await add(StreamableHttpTransport(url))


async def sse(url, retries):
    return await add(SSETransport(url))


async def bundle(url, retries):
    """The address of a bundle's document, which the client takes as it is."""
    with urllib.request.urlopen(url) as document:
        config = json.load(document)
    async with Client(config) as client:
        names = [tool.name for tool in await client.list_tools()]
        results = [await client.call_tool(name, {"a": 2, "b": 40}) for name in names]
        return " ".join(f"1 tools, {result.content[0].text}" for result in results)


async def wait_http(url, retries):
    return await add(StreamableHttpTransport(url), WAIT)


async def wait_sse(url, retries):
    return await add(SSETransport(url), WAIT)


# The server answers after as many seconds.
WAIT = -600
run(http=http, sse=sse, bundle=bundle, wait_http=wait_http, wait_sse=wait_sse)
