import os

# Its list of prices ships with it.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from cases import ASKS_WEATHER, HELLO, WEATHER, called, run  # noqa: E402

litellm.suppress_debug_info = True


def complete(url, retries, **body):
    base = url.removesuffix("/chat/completions")
    options = {} if retries else {"max_retries": 0}
    return litellm.completion(
        model="openai/gpt-4o-mini", api_base=base, api_key="unused", max_tokens=100, **options, **body
    )


def plain(url, retries):
    return complete(url, retries, messages=HELLO).choices[0].message.content


def stream(url, retries):
    chunks = complete(url, retries, messages=HELLO, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def tools(url, retries):
    call = complete(url, retries, messages=ASKS_WEATHER, tools=[WEATHER]).choices[0].message.tool_calls[0]
    return called(call.function.name, call.function.arguments)


run(plain=plain, stream=stream, tools=tools)
