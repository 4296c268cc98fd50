from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from cases import called, run
from openai import AsyncOpenAI

set_tracing_disabled(True)


def agent(url, retries, **more):
    options = {} if retries else {"max_retries": 0}
    client = AsyncOpenAI(base_url=url.removesuffix("/chat/completions"), api_key="unused", **options)
    model = OpenAIChatCompletionsModel(model="gpt-4o-mini", openai_client=client)
    return Agent(name="a", model=model, model_settings=ModelSettings(max_tokens=100), **more)


async def plain(url, retries):
    return (await Runner.run(agent(url, retries), "Hello")).final_output


async def stream(url, retries):
    result = Runner.run_streamed(agent(url, retries), "Hello")
    deltas = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
    return "".join(delta.delta for delta in deltas if delta.type == "response.output_text.delta")


async def tools(url, retries):
    calls = []

    @function_tool
    def get_weather(city: str) -> str:
        """Current weather of a city"""
        calls.append(called("get_weather", {"city": city}))
        return f"18 degrees in {city}"

    await Runner.run(agent(url, retries, tools=[get_weather]), "What is the weather in Paris?")
    return calls[0]


run(plain=plain, stream=stream, tools=tools)
