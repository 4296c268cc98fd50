"""An MCP server with the tool `add` over both transports, made with the official SDK, 1.x or 2.x. It prints its address."""

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette

try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

server = Server("python")


@server.tool()
async def add(a: int, b: int) -> str:
    """Adds two numbers, after as many seconds as the first is below zero"""
    await asyncio.sleep(max(0, -a))
    return str(a + b)


async def main():
    streamable = server.streamable_http_app()
    routes = [*streamable.routes, *server.sse_app().routes]
    app = Starlette(routes=routes, lifespan=streamable.router.lifespan_context)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])


asyncio.run(main())
