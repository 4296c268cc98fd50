"""Runs the cases of the environment variable CASES, and prints one line of JSON for each: its answer, or its error."""

import asyncio
import inspect
import json
import os


def run(**does):
    """Runs each case by the function that its `do` names. A function gets the URL, and whether it may retry."""
    for case in json.loads(os.environ["CASES"]):
        line = {"case": case["name"]}
        try:
            answer = does[case["do"]](case["url"], case["retries"])
            line["answer"] = asyncio.run(answer) if inspect.isawaitable(answer) else answer
        except BaseException as error:
            line["error"] = shown(error)
        print(json.dumps(line), flush=True)


def shown(error):
    """What a program sees that catches the error. Task groups wrap it in groups of one."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    fields = [getattr(error, name, None) for name in ("code", "status_code", "body", "details", "raw_response")]
    seen = " ".join(str(field) for field in fields if field is not None)
    return {"type": type(error).__name__, "text": str(error), "fields": seen}


HELLO = [{"role": "user", "content": "Hello"}]
ASKS_WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
DESCRIPTION = "Current weather of a city"
# A tool as APIs that follow OpenAI take it.
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": DESCRIPTION, "parameters": SCHEMA},
}


def called(name, arguments):
    """A tool call as text. SDKs give the arguments as JSON or as a dictionary."""
    if not isinstance(arguments, str):
        arguments = json.dumps(dict(arguments))
    return f"{name}({json.loads(arguments)['city']})"
