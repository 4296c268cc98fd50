import cohere
from cases import ASKS_WEATHER, HELLO, WEATHER, called, run

BODY = {"model": "command-a-03-2025", "max_tokens": 100}


def client(url):
    return cohere.ClientV2(base_url=url.removesuffix("/v2/chat"), api_key="unused")


def options(retries):
    return {} if retries else {"request_options": {"max_retries": 0}}


def plain(url, retries):
    return client(url).chat(**BODY, messages=HELLO, **options(retries)).message.content[0].text


def stream(url, retries):
    events = client(url).chat_stream(**BODY, messages=HELLO, **options(retries))
    return "".join(
        event.delta.message.content.text or "" for event in events if event.type == "content-delta"
    )


def tools(url, retries):
    answer = client(url).chat(**BODY, messages=ASKS_WEATHER, tools=[WEATHER], **options(retries))
    call = answer.message.tool_calls[0].function
    return called(call.name, call.arguments)


run(plain=plain, stream=stream, tools=tools)
