from anthropic import Anthropic
from cases import ASKS_WEATHER, DESCRIPTION, HELLO, SCHEMA, called, run


def messages(url, retries):
    options = {} if retries else {"max_retries": 0}
    return Anthropic(base_url=url.removesuffix("/v1/messages"), api_key="unused", **options).messages


BODY = {"model": "claude-haiku-4-5", "max_tokens": 100}


def plain(url, retries):
    return messages(url, retries).create(**BODY, messages=HELLO).content[0].text


def stream(url, retries):
    with messages(url, retries).stream(**BODY, messages=HELLO) as events:
        return "".join(events.text_stream)


def tools(url, retries):
    tool = {"name": "get_weather", "description": DESCRIPTION, "input_schema": SCHEMA}
    message = messages(url, retries).create(**BODY, messages=ASKS_WEATHER, tools=[tool])
    call = next(block for block in message.content if block.type == "tool_use")
    return called(call.name, call.input)


run(plain=plain, stream=stream, tools=tools)
