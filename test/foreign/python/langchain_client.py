from cases import called, run
from langchain.chat_models import init_chat_model


def model(url, retries):
    options = {} if retries else {"max_retries": 0}
    base = url.removesuffix("/chat/completions")
    return init_chat_model(
        "openai:gpt-4o-mini", base_url=base, api_key="unused", max_tokens=100, **options
    )


def plain(url, retries):
    return model(url, retries).invoke("Hello").content


def stream(url, retries):
    return "".join(chunk.content for chunk in model(url, retries).stream("Hello"))


def get_weather(city: str) -> str:
    """Current weather of a city"""
    return f"18 degrees in {city}"


def tools(url, retries):
    answer = model(url, retries).bind_tools([get_weather]).invoke("What is the weather in Paris?")
    return called(answer.tool_calls[0]["name"], answer.tool_calls[0]["args"])


run(plain=plain, stream=stream, tools=tools)
