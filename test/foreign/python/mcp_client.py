"""The official SDK: mcp 1.x connects with one function for each transport, mcp 2.x with `Client`, too."""

from contextlib import asynccontextmanager

import mcp
from cases import run
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def session(streams):
    async with streams as (read, write, *_), mcp.ClientSession(read, write) as opened:
        await opened.initialize()
        yield opened


async def add(client, a):
    listed = await client.list_tools()
    result = await client.call_tool("add", {"a": a, "b": 40})
    if getattr(result, "isError", False) or getattr(result, "is_error", False):
        raise RuntimeError(result.content[0].text)
    return f"{len(listed.tools)} tools, {result.content[0].text}"


async def http(url, retries, a=2):
    # By default, mcp 2.x asks for the newest revision first.
    client = mcp.Client(url) if hasattr(mcp, "Client") else session(streamable_http_client(url))
    async with client as opened:
        return await add(opened, a)


async def sse(url, retries, a=2):
    async with session(sse_client(url)) as opened:
        return await add(opened, a)


async def wait_http(url, retries):
    return await http(url, retries, WAIT)


async def wait_sse(url, retries):
    return await sse(url, retries, WAIT)


# The server answers after as many seconds.
WAIT = -600
run(http=http, sse=sse, wait_http=wait_http, wait_sse=wait_sse)
