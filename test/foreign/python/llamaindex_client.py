from cases import called, run
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI


def model(url, retries):
    options = {} if retries else {"max_retries": 0}
    base = url.removesuffix("/chat/completions")
    return OpenAI(model="gpt-4o-mini", api_base=base, api_key="unused", max_tokens=100, **options)


def plain(url, retries):
    return model(url, retries).complete("Hello").text


def stream(url, retries):
    return "".join(chunk.delta or "" for chunk in model(url, retries).stream_complete("Hello"))


def get_weather(city: str) -> str:
    """Current weather of a city"""
    return f"18 degrees in {city}"


def tools(url, retries):
    llm = model(url, retries)
    question = "What is the weather in Paris?"
    answer = llm.chat_with_tools([FunctionTool.from_defaults(get_weather)], user_msg=question)
    call = llm.get_tool_calls_from_response(answer)[0]
    return called(call.tool_name, call.tool_kwargs)


run(plain=plain, stream=stream, tools=tools)
