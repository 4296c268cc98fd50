"""All that the two clients share: the request, and what is made of its answer. Nothing here sends or waits."""

from __future__ import annotations

import json
import logging
import random
import re
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Union, cast
from urllib.parse import quote

import httpx

from ._dollars import Dollars, microdollars
from ._errors import (
    REFUSALS,
    ApiError,
    ConnectionFailedError,
    PresignError,
    PresignWarning,
    TimedOutError,
    UnexpectedAnswerError,
)

if TYPE_CHECKING:
    from ._issued import Issued, IssuedBundle

_LOG = logging.getLogger("presign_client")


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    # Method and path for errors, without the values of the path.
    what: str
    headers: Mapping[str, str]
    params: list[tuple[str, str]]
    # Written once, because the issuer refuses the same key with other bytes.
    content: bytes | None


def write_request(
    base: str,
    method: str,
    path: str,
    values: Mapping[str, str],
    *,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    if_revision: int | None = None,
    cost_limit_usd: Dollars | None = None,
) -> Request:
    headers: dict[str, str] = {}
    if method == "POST":
        headers["idempotency-key"] = _key(idempotency_key)
    if if_revision is not None:
        headers["if-match"] = f'"{if_revision}"'
    content = None
    if body is not None:
        headers["content-type"] = "application/json"
        content = _json(with_dollars(body, cost_limit_usd))
    written = re.sub(r"\{(\w+)\}", lambda name: _segment(name[1], values[name[1]]), path)
    return Request(method, base + written, f"{method} {path}", headers, _params(query or {}), content)


def with_dollars(body: Mapping[str, Any], cost_limit_usd: Dollars | None) -> Mapping[str, Any]:
    if cost_limit_usd is None:
        return body
    if "cost_limit" in body:
        raise ValueError("cost_limit_usd: cost_limit is given too. Give one of them.")
    try:
        return {**body, "cost_limit": microdollars(cost_limit_usd)}
    except ValueError as error:
        raise ValueError(f"cost_limit_usd: {error}") from None


def _json(body: Mapping[str, Any]) -> bytes:
    """The body of a request. An error names the field that JSON cannot have, and never its value."""
    written: list[str] = []
    for name, value in body.items():
        try:
            written.append(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}")
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise TypeError(f"{name}: expected a value that JSON can have, such as a number or a text, not this {kind}.") from None
    return f"{{{', '.join(written)}}}".encode()


def _key(key: str | None) -> str:
    if key is None:
        return str(uuid.uuid4())
    if not re.fullmatch(r"[\x21-\x7e]{1,255}", key):
        raise ValueError("idempotency_key: expected 1 to 255 visible ASCII characters.")
    return key


def _segment(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected an id, not {type(value).__name__}.")
    # Dots would make another address.
    if value in ("", ".", ".."):
        raise ValueError(f"{name}: expected an id.")
    return quote(value, safe="")


def _params(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    params: list[tuple[str, str]] = []
    for argument, value in query.items():
        # Python has keywords such as `from`.
        name = argument.rstrip("_")
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value)
            # OpenAPI: style deepObject.
            params += [(f"{name}[{key}]", _text(each)) for key, each in items.items()]
        elif value is not None:
            params.append((name, _text(value)))
    return params


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("expected a time with a time zone, such as datetime.now(timezone.utc).")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        # OpenAPI: style form, explode false.
        return ",".join(map(_text, items))
    return str(value)


def list_query(query: Mapping[str, Any], cursor: str) -> Mapping[str, Any]:
    """The query of the next page of a list."""
    if query.get("format") not in (None, "json"):
        raise ValueError("format: rows are read from JSON. A method of one page, such as get_usage, returns text.")
    return {**query, "cursor": cursor or None}


def warn_of(issued: Issued | IssuedBundle) -> None:
    """Issues a warning at the line that called the client, for each of an answer."""
    for each in issued.warnings:
        warning = PresignWarning(each["message"])
        warning.issued = issued
        warnings.warn(warning, stacklevel=3)


class Answer(dict[str, Any]):
    """The fields of an answer, and the id of its request."""

    request_id: str | None = None


def request_id_of(answer: Mapping[str, Any]) -> str | None:
    """The id of the request whose answer this is, in the issuer's log. None for any other value, and for a copy."""
    return answer.request_id if isinstance(answer, Answer) else None


# An error if there was no answer.
Outcome = Union[httpx.Response, PresignError]


def unanswered(request: Request, error: httpx.RequestError) -> PresignError:
    """Only the name of the error: its message may quote the request."""
    url = httpx.URL(request.url)
    port = "" if url.port is None else f":{url.port}"
    where = f"{url.scheme}://{url.host}{port}: {type(error).__name__}"
    if isinstance(error, httpx.TimeoutException):
        return TimedOutError(f"{request.what}: the issuer did not answer in time ({where}).", code="timed_out")
    why = "the issuer could not be reached, or the connection broke off"
    return ConnectionFailedError(f"{request.what}: {why} ({where}).", code="connection_failed")


def read_answer(request: Request, answer: httpx.Response) -> Any:
    if answer.status_code == 204:
        return None
    media_type = answer.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type in ("text/csv", "application/x-ndjson"):
        return answer.text
    try:
        fields = answer.json()
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise _unexpected(request, answer)
    read = Answer(cast("dict[str, Any]", fields))
    read.request_id = answer.headers.get("x-request-id")
    return read


def error_of(request: Request, outcome: Outcome, api_key: str) -> PresignError:
    if isinstance(outcome, PresignError):
        return outcome
    try:
        # An issuer never quotes the key, but a proxy might.
        error = json.loads(outcome.text.replace(api_key, "[API key]"))["error"]
        message, code = str(error.pop("message")), str(error.pop("code"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _unexpected(request, outcome)
    kind = REFUSALS.get(error.pop("type", ""), ApiError)
    return kind(
        message,
        code=code,
        status=outcome.status_code,
        param=error.pop("param", None),
        request_id=error.pop("request_id", None),
        retry_after_seconds=_retry_after(outcome),
        details=error,
    )


def log_attempt(request: Request, outcome: Outcome, attempt: int, seconds: float, delay: float | None) -> None:
    """Has no value of the request: no key, id, URL or body."""
    if isinstance(outcome, PresignError):
        status, request_id = outcome.code, None
    else:
        status, request_id = str(outcome.status_code), outcome.headers.get("x-request-id")
    again = "" if delay is None else f", again in {delay:.2f} s"
    level = logging.DEBUG if delay is None else logging.INFO
    text = "%s: attempt %d, %s after %.3f s, request_id %s%s"
    _LOG.log(level, text, request.what, attempt, status, seconds, request_id, again)


def _unexpected(request: Request, answer: httpx.Response) -> PresignError:
    return UnexpectedAnswerError(
        f"{request.what}: the answer is not that of an issuer (status {answer.status_code}).",
        code="unexpected_answer",
        status=answer.status_code,
        request_id=answer.headers.get("x-request-id"),
        retry_after_seconds=_retry_after(answer),
    )


def _retry_after(answer: httpx.Response) -> int | None:
    text = answer.headers.get("retry-after", "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


# A longer wait becomes an error, which states the wait.
_LONGEST_WAIT_S = 30
_FIRST_BACKOFF_S = 0.25
_LONGEST_BACKOFF_S = 4.0


def retry_delay(request: Request, outcome: Outcome, retries: int) -> float | None:
    """How many seconds to wait before the request is repeated. None if it is not repeated."""
    if not _may_repeat(request, outcome):
        return None
    asked = None if isinstance(outcome, PresignError) else _retry_after(outcome)
    if asked is None:
        # Random, so that clients that failed together do not return together.
        return random.uniform(0, min(_FIRST_BACKOFF_S * 2**retries, _LONGEST_BACKOFF_S))
    return asked + random.uniform(0, _FIRST_BACKOFF_S) if asked <= _LONGEST_WAIT_S else None


def _may_repeat(request: Request, outcome: Outcome) -> bool:
    # RFC 9110 section 9.2.2: the others are idempotent. A POST has an Idempotency-Key. A second PATCH with the revision of the first
    # would fail though the first is stored.
    is_idempotent = request.method != "PATCH"
    if isinstance(outcome, PresignError):
        return is_idempotent
    status = outcome.status_code
    if not is_idempotent:
        return status == 429
    # A conflict with Retry-After: the first attempt of this Idempotency-Key is still under way.
    under_way = status == 409 and _retry_after(outcome) is not None
    return under_way or status in (429, 502, 503, 504)
