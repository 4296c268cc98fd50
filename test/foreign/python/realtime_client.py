"""Has turns on the socket of a URL, with OpenAI's SDK or with the package websockets, and prints a line for each."""

import asyncio
import base64
import json
import math
import os
import struct

import websockets
from openai import AsyncOpenAI

url = os.environ["PRESIGNED_URL"]
SPEECH = b"".join(struct.pack("<h", int(8_000 * math.sin(at / 20))) for at in range(24_000))


async def answer(events):
    async for event in events:
        if event["type"] == "error":
            return event["error"]["message"]
        if event["type"] == "response.done":
            item = event["response"]["output"][0]
            if item["type"] == "function_call":
                return f"{item['name']} {item['arguments']}"
            return item["content"][0]["transcript"]


async def converse(send, events):
    async def ask(item=None):
        if item:
            await send({"type": "conversation.item.create", "item": item})
        await send({"type": "response.create"})
        print(await answer(events))

    def said(text):
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    await ask(said("Hello"))
    sound = base64.b64encode(SPEECH + bytes(33_600)).decode()
    await send({"type": "input_audio_buffer.append", "audio": sound})
    print(await answer(events))
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [{"type": "function", "name": "weather", "parameters": parameters}]
    await send({"type": "session.update", "session": {"type": "realtime", "tools": tools}})
    await ask(said("Oslo"))
    await ask({"type": "function_call_output", "call_id": "any", "output": "rain"})
    await ask()


async def with_sdk():
    client = AsyncOpenAI(base_url=url.removesuffix("/realtime"), api_key="unused")
    async with client.realtime.connect(model="gpt-realtime") as connection:
        await converse(connection.send, (event.to_dict() async for event in connection))


async def with_websockets():
    address = url.replace("http", "ws", 1) + "?model=gpt-realtime"
    async with websockets.connect(address) as socket:
        events = (json.loads(text) async for text in socket)
        await converse(lambda event: socket.send(json.dumps(event)), events)


asyncio.run(with_sdk() if os.environ["SOCKET"] == "AsyncOpenAI" else with_websockets())
