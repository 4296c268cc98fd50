from cases import called, run
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def agent(url, retries):
    options = {} if retries else {"max_retries": 0}
    client = AsyncOpenAI(base_url=url.removesuffix("/chat/completions"), api_key="unused", **options)
    model = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=client))
    return Agent(model, model_settings={"max_tokens": 100})


async def plain(url, retries):
    return (await agent(url, retries).run("Hello")).output


async def stream(url, retries):
    async with agent(url, retries).run_stream("Hello") as result:
        return "".join([text async for text in result.stream_text(delta=True)])


async def tools(url, retries):
    calls = []
    weather_agent = agent(url, retries)

    @weather_agent.tool_plain
    def get_weather(city: str) -> str:
        """Current weather of a city"""
        calls.append(called("get_weather", {"city": city}))
        return f"18 degrees in {city}"

    await weather_agent.run("What is the weather in Paris?")
    return calls[0]


run(plain=plain, stream=stream, tools=tools)
