from cases import run
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport


async def add(transport):
    async with Client(transport) as client:
        listed = await client.list_tools()
        result = await client.call_tool("add", {"a": 2, "b": 40})
        return f"{len(listed)} tools, {result.content[0].text}"


async def http(url, retries):
    return await add(StreamableHttpTransport(url))


async def sse(url, retries):
    return await add(SSETransport(url))


async def address(url, retries):
    """The address alone: the client chooses the transport by it."""
    return await add(url)


run(http=http, sse=sse, address=address)
