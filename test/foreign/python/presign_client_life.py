"""Issues, calls, is refused, lists, retries and verifies with presign-client: the same checks for both of its clients."""

import asyncio
import base64
import hmac
import inspect
import json
import logging
import pickle
import socket
import sys
import threading
import time
import warnings
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import openai
import pandas
import presign_client
from presign_client import AsyncPresign, Issued, Presign, PresignError, verify_webhook

URL, KEY = sys.argv[1:3]
CHAT = {"provider": "sandbox", "path": "/v1/chat/completions", "client_api_key": "sk-sandbox"}
HELLO = {"model": "sandbox-1", "messages": [{"role": "user", "content": "Hello"}]}


class Server:
    """Answers with the given answers in turn, and keeps what it was sent."""

    def __init__(self, *answers):
        self.answers, self.seen = list(answers), []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"] or 0))
                server.seen.append(({k.lower(): v for k, v in self.headers.items()}, body))
                status, headers, text = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


class Either:
    """A client of either kind, whose methods are awaited, and whose lists are read to the end."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        async def method(*args, **fields):
            answer = getattr(self.client, name)(*args, **fields)
            if hasattr(answer, "__anext__"):
                return [row async for row in answer]
            if hasattr(answer, "__next__"):
                return list(answer)
            return await answer if inspect.isawaitable(answer) else answer

        return method


async def refusal_of(request):
    try:
        await request
    except (PresignError, TypeError, ValueError) as error:
        return error
    raise AssertionError("it was not refused")


# Wrong arguments, and how their errors begin: with the name of the argument.
MISTAKES = [
    ("presign", {**CHAT, "cost_limit": Decimal("0.05")}, TypeError, "cost_limit: expected a value that JSON can have"),
    ("presign", {**CHAT, "expires_in": timedelta(hours=1)}, TypeError, "expires_in: expected a value that JSON can have"),
    ("presign", {**CHAT, "metadata": {"a": float("nan")}}, TypeError, "metadata: expected a value that JSON can have"),
    ("presign", {**CHAT, "cost_limit_usd": -1}, ValueError, "cost_limit_usd: expected dollars of 0 or more"),
    ("presign", {**CHAT, "cost_limit_usd": 0.1 + 0.2}, ValueError, "cost_limit_usd: expected dollars of 0 or more"),
    ("get_grant", {"id": Issued({"url": "http://a/llm/t/b/v1/c"})}, TypeError, "id: expected an id, not Issued"),
    ("change_grant", {"id": None, "max_uses": 1}, TypeError, "id: expected an id, not NoneType"),
    ("usage", {"format": "csv"}, ValueError, "format: rows are read from JSON"),
    ("calls", {"format": "csv"}, ValueError, "format: rows are read from JSON"),
]


async def mistakes(presign):
    for method, fields, kind, begins in MISTAKES:
        error = await refusal_of(getattr(presign, method)(**fields))
        assert type(error) is kind and str(error).startswith(begins), (method, error)
    assert "round(amount, 6)" in str(await refusal_of(presign.presign(**CHAT, cost_limit_usd=0.1 + 0.2)))


async def warned(presign):
    server = {"name": "a", "url": "https://mcp.example.com/mcp", "pricing": {"default": 1000}}
    for method, fields in (("presign", CHAT), ("mcp_presign", {"servers": [server]})):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            issued = await getattr(presign, method)(**fields, cost_limit=5)
            await getattr(presign, method)(**fields, cost_limit_usd=5)
        assert [(each.category, each.filename) for each in seen] == [(presign_client.PresignWarning, __file__)], seen
        assert str(seen[0].message) == issued.warnings[0]["message"]
        assert "is less than the cheapest call needs" in str(seen[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                await getattr(presign, method)(**fields, cost_limit=5)
                raise AssertionError("it was not warned of")
            except presign_client.PresignWarning as warning:
                assert warning.issued.url.startswith("http") and warning.issued.grant_id != issued.grant_id


def unmet():
    """An SDK that is not installed."""
    issued = Issued({"url": "http://a/llm/t/b/v1/c"})
    google = Issued({"url": "http://a/llm/t/b/v1beta/c"})
    for package, method in (
        ("openai", issued.openai),
        ("openai", issued.async_openai),
        ("anthropic", issued.anthropic),
        ("anthropic", issued.async_anthropic),
        ("google-genai", google.google),
    ):
        module = "google.genai" if package == "google-genai" else package
        others = {name: each for name, each in sys.modules.items() if name.startswith(module)}
        with mock.patch.dict(sys.modules, {**dict.fromkeys(others), module: None}):
            try:
                method()
                raise AssertionError(f"{module} is there")
            except ImportError as error:
                assert f"pip install {package}" in str(error), error


async def dollars(presign):
    for given in (0.05, "0.05", Decimal("0.05")):
        issued = await presign.presign(**CHAT, cost_limit_usd=given)
        assert (await presign.get_grant(issued.grant_id))["cost_limit"] == 50_000
    changed = await presign.change_grant(issued.grant_id, cost_limit_usd=0.29)
    assert changed["cost_limit"] == 290_000
    for wrong in (-1, 0.0000001, "1e999999999", "1e-999999999", float("nan"), True, "a"):
        assert "at most six decimals" in str(await refusal_of(presign.presign(**CHAT, cost_limit_usd=wrong)))
    both = await refusal_of(presign.presign(**CHAT, cost_limit_usd=1, cost_limit=1))
    assert "cost_limit is given too" in str(both)


async def calls(presign, call):
    user = f"{type(presign.client).__name__}-{time.time()}"
    issued = await presign.presign(**CHAT, max_uses=2, external_user=user)
    assert issued.url not in repr(issued)
    for _ in range(2):
        assert "Hello" in await call(issued)
    try:
        await call(issued)
        raise AssertionError("it was not refused")
    except openai.PermissionDeniedError as error:
        assert error.code == "uses_exhausted"
    while len(rows := await presign.calls(external_user=user, limit=1, outcome="passed")) < 2:
        await asyncio.sleep(0.1)
    assert [row["model"] for row in rows] == ["sandbox-1", "sandbox-1"]
    page = await presign.list_calls(external_user=user, limit=1)
    assert len(page["data"]) == 1 and page["next_cursor"]
    assert len((await presign.list_calls(external_user=user, format="csv")).splitlines()) >= 3
    frame = pandas.DataFrame(iter(rows))
    assert frame["cost"].sum() == sum(row["cost"] for row in rows)
    day = datetime(2020, 1, 1, tzinfo=timezone.utc)
    [total] = await presign.usage(from_=day, external_user=user, group_by=["external_user", "model"])
    assert (total["external_user"], total["calls"]) == (user, 2)
    assert "time zone" in str(await refusal_of(presign.get_usage(from_=datetime(2020, 1, 1))))


async def refusals(presign):
    wrong = await refusal_of(presign.presign(**CHAT, max_uses=0))
    assert type(wrong) is presign_client.InvalidRequestError
    assert (wrong.status, wrong.code, wrong.param) == (400, "invalid_request", "max_uses")
    assert wrong.request_id and str(wrong) == wrong.message
    copy = pickle.loads(pickle.dumps(wrong))
    assert (copy.code, copy.details, str(copy)) == (wrong.code, wrong.details, str(wrong))
    several = await refusal_of(presign.presign(**CHAT, max_uses=0, expires_in=0))
    assert len(several.details["problems"]) == 2
    missing = await refusal_of(presign.get_session("0d9c8b7a-6f5e-4d3c-8b2a-190807060504"))
    assert type(missing) is presign_client.NotFoundError
    made = await presign.create_budget(scope={"external_user": f"b-{time.time()}"}, cost_limit_usd=5, window="month")
    stale = await refusal_of(presign.change_budget(made["id"], if_revision=made["revision"] + 1, name="a"))
    assert type(stale) is presign_client.ConflictError or stale.status == 412, stale
    assert await presign.delete_budget(made["id"]) in (None, {"status": "pending"})
    for name in ("", ".", ".."):
        assert "expected an id" in str(await refusal_of(presign.get_session(name)))


async def repeats(presign):
    key = f"key-{time.time()}"
    first, second = [await presign.presign(**CHAT, idempotency_key=key) for _ in range(2)]
    assert first.url == second.url
    again = await refusal_of(presign.presign(**CHAT, idempotency_key=key, max_uses=1))
    assert type(again) is presign_client.ConflictError and again.code == "idempotency_conflict"
    bundle = await presign.mcp_presign(servers=[{"name": "a", "url": "https://mcp.example.com/mcp"}], cost_limit_usd=1)
    assert list(bundle.mcp_config()["mcpServers"]) == ["a"] and bundle.url not in repr(bundle)


ISSUED = (200, {"content-type": "application/json"}, '{"url": "http://a/llm/t/b/v1/c"}')
RATE_LIMITED = '{"error": {"code": "rate_limited", "message": "sk-key of presign", "type": "rate_limit_error", "param": null}}'
# Answers of a server, and how often it is asked. An int is the status of a failure that ends it.
RETRIES = [
    ([(503, {}, ""), (502, {}, ""), ISSUED], 3, None),
    ([(429, {"retry-after": "0"}, RATE_LIMITED), ISSUED], 2, None),
    ([(409, {"retry-after": "0"}, ""), ISSUED], 2, None),
    ([(503, {}, "")], 3, "UnexpectedAnswerError"),
    ([(429, {"retry-after": "31"}, RATE_LIMITED)], 1, "RateLimitError"),
    ([(409, {}, "")], 1, "UnexpectedAnswerError"),
    ([(500, {}, "")], 1, "UnexpectedAnswerError"),
    ([(307, {"location": "/elsewhere"}, "")], 1, "UnexpectedAnswerError"),
    ([(200, {"content-type": "application/json"}, "<html>")], 1, "UnexpectedAnswerError"),
]


async def retries(client):
    for answers, asked, failure in RETRIES:
        server = Server(*answers)
        presign = Either(client(server.url, "sk-key"))
        if failure is None:
            await presign.presign(**CHAT)
        else:
            error = await refusal_of(presign.presign(**CHAT))
            assert type(error).__name__ == failure, (answers, error)
            assert "sk-key" not in str(error) + repr(vars(error))
        assert len(server.seen) == asked, (answers, len(server.seen))
        assert len({(headers["idempotency-key"], body) for headers, body in server.seen}) == 1
    waits = Server((429, {"retry-after": "1"}, RATE_LIMITED), ISSUED)
    begun = time.monotonic()
    await Either(client(waits.url, "sk-key")).presign(**CHAT)
    assert time.monotonic() - begun >= 1
    gone = await refusal_of(Either(client("http://127.0.0.1:9", "sk-key", max_retries=0)).presign(**CHAT))
    assert (type(gone).__name__, gone.code) == ("ConnectionFailedError", "connection_failed")
    assert gone.__context__ is None and "127.0.0.1:9: ConnectError" in str(gone)
    for url, key in (("ftp://a", "k"), ("http://a", "k\n"), ("http://a", ""), ("http://a", None), (None, "k"), ("http://a", b"k")):
        try:
            client(url, key)
            raise AssertionError(f"{url} was accepted")
        except ValueError as error:
            assert not isinstance(key, str) or key == "" or key not in str(error).removeprefix("api_key")


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.levelname} {record.getMessage()}")


async def attempts(client):
    seen_as = [(status, {**headers, "x-request-id": f"request-{n}"}, text) for n, (status, headers, text) in enumerate([(503, {}, ""), ISSUED])]
    server, log, lines = Server(*seen_as), logging.getLogger("presign_client"), Lines()
    log.addHandler(lines)
    log.setLevel(logging.DEBUG)
    presign = client(server.url, "sk-key")
    issued = await Either(presign).presign(**CHAT, idempotency_key="order-7")
    log.removeHandler(lines)
    assert issued.request_id == presign_client.request_id_of(issued.answer) == "request-1"
    assert list(issued.answer) == ["url"] and presign_client.request_id_of(dict(issued.answer)) is None
    first, second = lines.lines
    assert first.startswith("INFO POST /v1/presign: attempt 1, 503 after ") and ", request_id request-0, again in " in first
    assert second.startswith("DEBUG POST /v1/presign: attempt 2, 200 after ") and second.endswith(", request_id request-1")
    for secret in ("sk-key", "sk-sandbox", "/llm/t/", "order-7", "127.0.0.1"):
        assert secret not in first + second
    away = Server((503, {}, ""))
    patient = client(away.url, "sk-key")
    await refusal_of(Either(patient.with_options(max_retries=0)).presign(**CHAT))
    assert len(away.seen) == 1
    await refusal_of(Either(patient).presign(**CHAT))
    assert len(away.seen) == 4
    with socket.create_server(("127.0.0.1", 0)) as silent:
        waits = client(f"http://127.0.0.1:{silent.getsockname()[1]}", "sk-key")
        late = await refusal_of(Either(waits.with_options(timeout=0.01, max_retries=0)).presign(**CHAT))
        assert type(late) is presign_client.TimedOutError
    for wrong in ({"timeout": 0}, {"max_retries": -1}):
        try:
            patient.with_options(**wrong)
            raise AssertionError(f"{wrong} was accepted")
        except ValueError:
            pass


async def received(*request):
    return verify_webhook(*request)


async def webhooks(presign):
    receiver = Server((204, {}, ""))
    hook = await presign.create_webhook(url=receiver.url, events=["grant.threshold"])
    await presign.test_webhook(hook["id"])
    while not receiver.seen:
        await asyncio.sleep(0.05)
    headers, body = receiver.seen[0]
    assert verify_webhook(body, headers, hook["secret"])["type"] == "webhook.test"
    rotated = {"Webhook-Signature": f"v1,AAAA {headers['webhook-signature']}"}
    others = {name.title(): value for name, value in headers.items() if name != "webhook-signature"}
    assert verify_webhook(body.decode(), {**others, **rotated}, hook["secret"])["type"] == "webhook.test"
    for wrong in (
        (body + b" ", headers, hook["secret"]),
        (body, {**headers, "webhook-id": "msg_other"}, hook["secret"]),
        (body, {**headers, "webhook-signature": ""}, hook["secret"]),
        (body, {**headers, "webhook-signature": "v1,\u00e9"}, hook["secret"]),
        (body, headers, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    ):
        assert await refusal_of(received(*wrong))
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        without = {other: value for other, value in headers.items() if other != name}
        assert str(await refusal_of(received(body, without, hook["secret"]))) == f"{name}: missing"
    for secret in (None, 5, b"whsec_YQ=="):
        assert str(await refusal_of(received(body, headers, secret))).startswith("secret: expected")
    for parsed in ({"type": "webhook.test"}, None):
        assert str(await refusal_of(received(parsed, headers, hook["secret"]))).startswith("payload: expected the body as it came")
    await presign.delete_webhook(hook["id"])


def vectors(given):
    """Signatures that another library made 301 seconds ago, and one that anyone can make."""
    for payload, headers, secret in given:
        assert verify_webhook(payload, headers, secret, tolerance_seconds=900) == json.loads(payload)
        unkeyed = hmac.digest(b"", f"msg_1.{headers['webhook-timestamp']}.{payload}".encode(), "sha256")
        forged = {**headers, "webhook-signature": f"v1,{base64.b64encode(unkeyed).decode()}"}
        for wrong in ((headers, secret, 300), (forged, "", 900), (forged, "whsec_", 900)):
            try:
                verify_webhook(payload, *wrong[:2], tolerance_seconds=wrong[2])
                raise AssertionError(f"{wrong} was accepted")
            except ValueError:
                pass


async def call_sync(issued):
    return issued.openai(max_retries=0).chat.completions.create(**HELLO).choices[0].message.content


async def call_async(issued):
    answer = await issued.async_openai(max_retries=0).chat.completions.create(**HELLO)
    return answer.choices[0].message.content


async def main():
    vectors(json.load(sys.stdin))
    unmet()
    for client, call in ((Presign, call_sync), (AsyncPresign, call_async)):
        presign = Either(client(URL, KEY))
        assert KEY not in repr(presign.client)
        await dollars(presign)
        await mistakes(presign)
        await warned(presign)
        await calls(presign, call)
        await refusals(presign)
        await repeats(presign)
        await retries(client)
        await attempts(client)
        await webhooks(presign)
        await presign.close()
        print(client.__name__)


asyncio.run(main())
