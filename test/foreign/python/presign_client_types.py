"""Lines that mypy and pyright accept, and lines that both must refuse: an `ignore` that is not needed is an error."""

from typing import Any

import presign_client
from anthropic import Anthropic
from google.genai import Client
from openai import AsyncOpenAI, OpenAI
from presign_client.models import Call, CallPage, UsageRow
from typing_extensions import assert_type

presign = presign_client.Presign("https://issuer.example", "key")
issued = presign.presign(provider="openai", path=["/v1/a", "/v1/b"], cost_limit_usd=0.05, bind={"origins": ["https://a.example"]})
assert_type(issued.url, str)
assert_type(issued.openai(timeout=3), OpenAI)
assert_type(issued.async_openai(), AsyncOpenAI)
assert_type(issued.anthropic(), Anthropic)
assert_type(issued.google(), Client)
assert_type([row for row in presign.calls(outcome="passed", from_="2026-01-31")], list[Call])
assert_type([row for row in presign.usage(group_by=["model", "metadata.team"])], list[UsageRow])
assert_type(presign.list_calls(format="csv"), str)
assert_type(presign.list_calls(limit=3), CallPage)
assert_type(presign.list_calls()["data"][0]["model"], str | None)
assert_type(presign.with_options(timeout=5, max_retries=0), presign_client.Presign)
assert_type(issued.request_id, str | None)
assert_type(presign_client.request_id_of(presign.list_calls()), str | None)

presign.presign(provder="openai", path="/v1/a")  # type: ignore[call-arg]
presign.presign(path="/v1/a")  # type: ignore[call-arg]
presign.presign(provider="openai", path="/v1/a", max_uses="3")  # type: ignore[arg-type]
presign.calls(outcome="paid")  # type: ignore[arg-type]
presign.with_options(timeout="5")  # type: ignore[arg-type]
presign.list_calls()["rows"]  # type: ignore[typeddict-item]


async def both(presign: presign_client.AsyncPresign) -> Any:
    issued = await presign.presign(provider="openai", path="/v1/a", cost_limit=50_000)
    assert_type(issued.async_openai(), AsyncOpenAI)
    assert_type([row async for row in presign.calls()], list[Call])
    assert_type(await presign.list_calls(limit=3), CallPage)
    await presign.presign(path="/v1/a")  # type: ignore[call-arg]
