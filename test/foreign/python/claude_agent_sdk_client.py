"""Sends one prompt with the Claude Agent SDK, and prints what its messages say. Arguments: the prompt."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from claude_agent_sdk.types import StreamEvent


async def main():
    options = ClaudeAgentOptions(allowed_tools=["Read"], setting_sources=[], include_partial_messages=True)
    pieces = 0
    async for message in query(prompt=sys.argv[1], options=options):
        if isinstance(message, StreamEvent):
            pieces += 1
        if isinstance(message, ResultMessage):
            print(message.subtype, message.result)
    print(f"{pieces} pieces")


asyncio.run(main())
