from cases import ASKS_WEATHER, HELLO, WEATHER, called, run
from groq import Groq


def chat(url, retries, **body):
    options = {} if retries else {"max_retries": 0}
    client = Groq(base_url=url.removesuffix("/openai/v1/chat/completions"), api_key="unused", **options)
    return client.chat.completions.create(model="llama-3.3-70b-versatile", max_tokens=100, **body)


def plain(url, retries):
    return chat(url, retries, messages=HELLO).choices[0].message.content


def stream(url, retries):
    chunks = chat(url, retries, messages=HELLO, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def tools(url, retries):
    call = chat(url, retries, messages=ASKS_WEATHER, tools=[WEATHER]).choices[0].message.tool_calls[0]
    return called(call.function.name, call.function.arguments)


run(plain=plain, stream=stream, tools=tools)
