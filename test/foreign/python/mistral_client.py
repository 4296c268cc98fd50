from cases import ASKS_WEATHER, HELLO, WEATHER, called, run
from mistralai.client import Mistral
from mistralai.client.utils import BackoffStrategy, RetryConfig

BODY = {"model": "mistral-small-latest", "max_tokens": 100}
BACKOFF = BackoffStrategy(initial_interval=100, max_interval=1_000, exponent=1.5, max_elapsed_time=10_000)


def chat(url, retries):
    # By default this SDK does not retry.
    options = {"retry_config": RetryConfig("backoff", BACKOFF, True)} if retries else {}
    global client
    client = Mistral(server_url=url.removesuffix("/v1/chat/completions"), api_key="unused", **options)
    return client.chat


def plain(url, retries):
    return chat(url, retries).complete(**BODY, messages=HELLO).choices[0].message.content


def stream(url, retries):
    with chat(url, retries).stream(**BODY, messages=HELLO) as events:
        return "".join(event.data.choices[0].delta.content or "" for event in events if event.data.choices)


def tools(url, retries):
    answer = chat(url, retries).complete(**BODY, messages=ASKS_WEATHER, tools=[WEATHER])
    call = answer.choices[0].message.tool_calls[0].function
    return called(call.name, call.arguments)


run(plain=plain, stream=stream, tools=tools)
