from __future__ import annotations

import copy
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypedDict

from . import models
from ._request import request_id_of
from .models import McpPresignAnswer, McpServerUrl, PresignAnswer

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from google import genai
    from openai import AsyncOpenAI, OpenAI

# SDKs require a key. The gateway replaces it by the real one.
_API_KEY = "presigned"
_ISSUED = re.compile(r"(https?://[^?#]*?/llm/t/[^/?#]+)(/[^?#]*)")
_VERSION = r"/v\d+(?:(?:alpha|beta)\d*)?"


class SdkOptions(TypedDict):
    base_url: str
    api_key: str


@dataclass(frozen=True)
class Issued:
    """An issued URL, and clients that call it.

    >>> issued = Issued({"url": "https://g.example/llm/t/v4.public.a/v1/chat/completions"})
    >>> issued.openai_options()
    {'base_url': 'https://g.example/llm/t/v4.public.a/v1', 'api_key': 'presigned'}

    Printed, it does not show the URL, because anyone who has the URL can use it.
    """

    answer: PresignAnswer = field(repr=False)

    @property
    def url(self) -> str:
        return self.answer["url"]

    @property
    def grant_id(self) -> str:
        return self.answer["grant_id"]

    @property
    def session_id(self) -> str:
        return self.answer["session_id"]

    @property
    def expires_at(self) -> int:
        """Unix time in seconds."""
        return self.answer["expires_at"]

    @property
    def request_id(self) -> str | None:
        """The id of the request in the issuer's log."""
        return request_id_of(self.answer)

    @property
    def warnings(self) -> list[models.Warning]:
        """Says why no call of the URL can pass under its `cost_limit`."""
        return self.answer.get("warnings", [])

    def openai_options(self) -> SdkOptions:
        """Options of the `openai` package, and of others that take the same, for any provider that has OpenAI's API."""
        base, path = self._split()
        # The SDK adds the part after the version. Some providers have no version in their paths.
        prefix = re.match(rf".*?{_VERSION}(?:/openai)?(?=/)", path)
        return {"base_url": base + (prefix.group() if prefix else ""), "api_key": _API_KEY}

    def anthropic_options(self) -> SdkOptions:
        """Options of the `anthropic` package, for a path of Anthropic's API."""
        base, path = self._split()
        before, version, _ = path.partition("/v1/")
        if not version:
            raise ValueError(f"The SDK of Anthropic does not call the path {path}. Issue a URL for a path with /v1/ in it.")
        return {"base_url": base + before, "api_key": _API_KEY}

    def google_options(self) -> dict[str, Any]:
        """Options of the `google-genai` package, for a path of Google's API."""
        base, path = self._split()
        version = re.match(rf"{_VERSION}(?=/)", path)
        if not version:
            raise ValueError(
                f"The SDK of Google does not call the path {path}. Issue a URL for a path that begins with a version, such as /v1beta/."
            )
        # Versions of the SDK differ in the API version that they use by default.
        return {"api_key": _API_KEY, "http_options": {"base_url": base, "api_version": version.group()[1:]}}

    def openai(self, **options: Any) -> OpenAI:
        """The client of the `openai` package for this URL. `options` are further ones of it, such as `timeout`."""
        with _needs("openai"):
            from openai import OpenAI

        return OpenAI(**_merge(self.openai_options(), options))

    def async_openai(self, **options: Any) -> AsyncOpenAI:
        with _needs("openai"):
            from openai import AsyncOpenAI

        return AsyncOpenAI(**_merge(self.openai_options(), options))

    def anthropic(self, **options: Any) -> Anthropic:
        """The client of the `anthropic` package for this URL."""
        with _needs("anthropic"):
            from anthropic import Anthropic

        return Anthropic(**_merge(self.anthropic_options(), options))

    def async_anthropic(self, **options: Any) -> AsyncAnthropic:
        with _needs("anthropic"):
            from anthropic import AsyncAnthropic

        return AsyncAnthropic(**_merge(self.anthropic_options(), options))

    def google(self, **options: Any) -> genai.Client:
        """The client of the `google-genai` package for this URL. Its `aio` is the asynchronous one."""
        with _needs("google-genai"):
            from google import genai

        own = self.google_options()
        given: Any = options.get("http_options") or {}
        if not isinstance(given, dict):
            given = given.model_dump(exclude_none=True)
        more = cast("dict[str, Any]", given)
        return genai.Client(**_merge({**own, "http_options": {**more, **own["http_options"]}}, options))

    def _split(self) -> tuple[str, str]:
        """The URL up to its token, and the provider's path after it."""
        parts = _ISSUED.fullmatch(self.url)
        if not parts:
            raise ValueError("url: expected the answer of `presign`.")
        return parts[1], parts[2]


@contextmanager
def _needs(package: str) -> Generator[None, None, None]:
    """Says how to install the package of an SDK that is not there."""
    try:
        yield
    except ImportError as error:
        module = package.split("-")[0]
        # An SDK may lack a package of its own, too, and then says so itself.
        if (error.name or "").split(".")[0] != module:
            raise
        message = f"{error}. This method needs the SDK: pip install {package}"
        raise ModuleNotFoundError(message, name=error.name, path=error.path) from None


def _merge(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The address and the key are those of the issued URL, so that no other key is sent there."""
    return {**given, **own}


class McpConfig(TypedDict):
    mcpServers: dict[str, McpServerUrl]


@dataclass(frozen=True)
class IssuedBundle:
    """Issued URLs of MCP servers. Printed, it shows no URL."""

    answer: McpPresignAnswer = field(repr=False)

    @property
    def url(self) -> str:
        """Returns an MCP client's configuration with all servers."""
        return self.answer["bundle_url"]

    @property
    def servers(self) -> dict[str, McpServerUrl]:
        return self.answer["servers"]

    @property
    def grant_id(self) -> str:
        return self.answer["grant_id"]

    @property
    def session_id(self) -> str:
        return self.answer["session_id"]

    @property
    def expires_at(self) -> int:
        """Unix time in seconds."""
        return self.answer["expires_at"]

    @property
    def request_id(self) -> str | None:
        """The id of the request in the issuer's log."""
        return request_id_of(self.answer)

    @property
    def warnings(self) -> list[models.Warning]:
        """Says why no call of the bundle can pass under its `cost_limit`."""
        return self.answer.get("warnings", [])

    def mcp_config(self) -> McpConfig:
        """The configuration that MCP clients read: the answer of `url`, without a request."""
        return {"mcpServers": copy.deepcopy(self.servers)}
