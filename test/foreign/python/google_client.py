from cases import DESCRIPTION, SCHEMA, called, run
from google import genai
from google.genai import types

MODEL = "gemini-2.5-flash"


def models(url, retries):
    # By default this SDK does not retry.
    options = {"retry_options": types.HttpRetryOptions(attempts=3, initial_delay=0.1)} if retries else {}
    http = types.HttpOptions(base_url=url[: url.index("/v1beta/")], api_version="v1beta", **options)
    # Its connections close with the client, so the client must outlive the call.
    global client
    client = genai.Client(api_key="unused", http_options=http)
    return client.models


CONFIG = types.GenerateContentConfig(max_output_tokens=100)


def plain(url, retries):
    return models(url, retries).generate_content(model=MODEL, contents="Hello", config=CONFIG).text


def stream(url, retries):
    chunks = models(url, retries).generate_content_stream(model=MODEL, contents="Hello", config=CONFIG)
    return "".join(chunk.text or "" for chunk in chunks)


def tools(url, retries):
    declaration = types.FunctionDeclaration(
        name="get_weather", description=DESCRIPTION, parameters_json_schema=SCHEMA
    )
    config = CONFIG.model_copy(update={"tools": [types.Tool(function_declarations=[declaration])]})
    question = "What is the weather in Paris?"
    answer = models(url, retries).generate_content(model=MODEL, contents=question, config=config)
    return called(answer.function_calls[0].name, answer.function_calls[0].args)


run(plain=plain, stream=stream, tools=tools)
