from __future__ import annotations

import asyncio
import copy
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
from typing_extensions import Self, Unpack

from ._dollars import Dollars
from ._issued import Issued, IssuedBundle
from ._operations import AsyncOperations, Operations
from ._request import (
    Outcome,
    Request,
    error_of,
    list_query,
    log_attempt,
    read_answer,
    retry_delay,
    unanswered,
    warn_of,
    write_request,
)
from .models import McpPresignRequest, PresignRequest


def _fits(pattern: str, value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


class _Settings:
    """What both clients are made of. It shows no API key when it is printed."""

    def __init__(self, url: str, api_key: str, max_retries: int, timeout: float | None = None) -> None:
        if not _fits(r"https?://[^\s?#@]+", url):
            raise ValueError("url: expected an http or https URL.")
        # The error of a header that cannot be sent would quote the key.
        if not _fits(r"[\x21-\x7e]+", api_key):
            raise ValueError("api_key: expected visible ASCII characters without spaces or line breaks.")
        if max_retries < 0:
            raise ValueError("max_retries: expected 0 or more.")
        self.url = url.rstrip("/")
        self.api_key = api_key
        if timeout is not None and not timeout > 0:
            raise ValueError("timeout: expected more than 0 seconds.")
        self.max_retries = max_retries
        self.timeout = timeout
        """None: that of the HTTP client."""

    def patient(self, max_retries: int | None, timeout: float | None) -> _Settings:
        retries = self.max_retries if max_retries is None else max_retries
        return _Settings(self.url, self.api_key, retries, self.timeout if timeout is None else timeout)

    def of_request(self, request: Request) -> Mapping[str, Any]:
        """The arguments with which httpx sends it."""
        fixed = {"accept": "application/json", "authorization": f"Bearer {self.api_key}"}
        return {
            "method": request.method,
            "url": request.url,
            "params": request.params,
            "content": request.content,
            "headers": {**request.headers, **fixed},
            # The body may contain a provider's key, which must not be sent to another address.
            "follow_redirects": False,
            "timeout": httpx.USE_CLIENT_DEFAULT if self.timeout is None else self.timeout,
        }

    def delay(self, request: Request, outcome: Outcome, retries: int, seconds: float) -> float:
        """The seconds before the next attempt. It raises the error of the last one."""
        delay = retry_delay(request, outcome, retries) if retries < self.max_retries else None
        log_attempt(request, outcome, retries + 1, seconds, delay)
        if delay is None:
            raise error_of(request, outcome, self.api_key)
        return delay


class Presign(Operations):
    """A client of the issuer at `url`, which sends it `api_key`.

    It has a method for each operation of the API, such as `get_session`, and one for the rows of each list over all its
    pages, such as `calls`. A request that fails is sent again `max_retries` times where that is safe. `timeout` is the
    longest wait for a connection, and for the next bytes of an answer, in seconds. Methods raise `PresignError`.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        max_retries: int = 2,
        timeout: float = 30.0,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._settings = _Settings(url, api_key, max_retries)
        self._http = http_client or httpx.Client(timeout=timeout)

    def presign(
        self,
        *,
        cost_limit_usd: Dollars | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[PresignRequest],
    ) -> Issued:
        """Issue a URL for an LLM API. `cost_limit_usd` is in dollars, `cost_limit` in microdollars."""
        more = {"cost_limit_usd": cost_limit_usd, "idempotency_key": idempotency_key}
        issued = Issued(self._send("POST", "/v1/presign", {}, body=fields, **more))
        warn_of(issued)
        return issued

    def mcp_presign(
        self,
        *,
        cost_limit_usd: Dollars | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[McpPresignRequest],
    ) -> IssuedBundle:
        """Issue URLs for MCP servers, and one that returns them all as a client's configuration."""
        more = {"cost_limit_usd": cost_limit_usd, "idempotency_key": idempotency_key}
        issued = IssuedBundle(self._send("POST", "/v2/mcp-presign", {}, body=fields, **more))
        warn_of(issued)
        return issued

    def with_options(self, *, max_retries: int | None = None, timeout: float | None = None) -> Self:
        """A client with other patience over the same connections: `presign.with_options(timeout=5).get_session(id)`."""
        other = copy.copy(self)
        other._settings = self._settings.patient(max_retries, timeout)
        return other

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, method: str, path: str, values: Mapping[str, str], **parts: Any) -> Any:
        request = write_request(self._settings.url, method, path, values, **parts)
        retries = 0
        while True:
            started = time.monotonic()
            outcome = self._attempt(request)
            seconds = time.monotonic() - started
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                log_attempt(request, outcome, retries + 1, seconds, None)
                return read_answer(request, outcome)
            time.sleep(self._settings.delay(request, outcome, retries, seconds))
            retries += 1

    def _attempt(self, request: Request) -> Outcome:
        try:
            return self._http.request(**self._settings.of_request(request))
        except httpx.RequestError as error:
            return unanswered(request, error)

    def _each(self, path: str, values: Mapping[str, str], query: Mapping[str, Any]) -> Iterator[Any]:
        cursor: str | None = ""
        while cursor is not None:
            page = self._send("GET", path, values, query=list_query(query, cursor))
            yield from page["data"]
            cursor = page["next_cursor"]


class AsyncPresign(AsyncOperations):
    """`Presign` for asyncio: its methods are coroutines, and lists are asynchronous iterators."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        max_retries: int = 2,
        timeout: float = 30.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = _Settings(url, api_key, max_retries)
        self._http = http_client or httpx.AsyncClient(timeout=timeout)

    async def presign(
        self,
        *,
        cost_limit_usd: Dollars | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[PresignRequest],
    ) -> Issued:
        """Issue a URL for an LLM API. `cost_limit_usd` is in dollars, `cost_limit` in microdollars."""
        more = {"cost_limit_usd": cost_limit_usd, "idempotency_key": idempotency_key}
        issued = Issued(await self._send("POST", "/v1/presign", {}, body=fields, **more))
        warn_of(issued)
        return issued

    async def mcp_presign(
        self,
        *,
        cost_limit_usd: Dollars | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[McpPresignRequest],
    ) -> IssuedBundle:
        """Issue URLs for MCP servers, and one that returns them all as a client's configuration."""
        more = {"cost_limit_usd": cost_limit_usd, "idempotency_key": idempotency_key}
        issued = IssuedBundle(await self._send("POST", "/v2/mcp-presign", {}, body=fields, **more))
        warn_of(issued)
        return issued

    def with_options(self, *, max_retries: int | None = None, timeout: float | None = None) -> Self:
        """A client with other patience over the same connections: `presign.with_options(timeout=5).get_session(id)`."""
        other = copy.copy(self)
        other._settings = self._settings.patient(max_retries, timeout)
        return other

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, method: str, path: str, values: Mapping[str, str], **parts: Any) -> Any:
        request = write_request(self._settings.url, method, path, values, **parts)
        retries = 0
        while True:
            started = time.monotonic()
            outcome = await self._attempt(request)
            seconds = time.monotonic() - started
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                log_attempt(request, outcome, retries + 1, seconds, None)
                return read_answer(request, outcome)
            await asyncio.sleep(self._settings.delay(request, outcome, retries, seconds))
            retries += 1

    async def _attempt(self, request: Request) -> Outcome:
        try:
            return await self._http.request(**self._settings.of_request(request))
        except httpx.RequestError as error:
            return unanswered(request, error)

    async def _each(self, path: str, values: Mapping[str, str], query: Mapping[str, Any]) -> AsyncIterator[Any]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self._send("GET", path, values, query=list_query(query, cursor))
            for row in page["data"]:
                yield row
            cursor = page["next_cursor"]
