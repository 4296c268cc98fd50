from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._issued import Issued, IssuedBundle


class PresignError(Exception):
    """A request that was refused or not answered. It never contains the API key."""

    def __init__(
        self,
        message: str,
        *,
        # Without a default, the error could not be pickled.
        code: str = "",
        status: int | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after_seconds: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """Stable, so that programs can compare it."""
        self.status = status
        """The answer's HTTP status. None if there was no answer."""
        self.param = param
        """The field or header at fault."""
        self.request_id = request_id
        """The id of the request in the issuer's log."""
        self.retry_after_seconds = retry_after_seconds
        """When the same request may succeed."""
        self.details: dict[str, Any] = dict(details or {})
        """Further facts of the refusal, by code."""


class InvalidRequestError(PresignError):
    """A field is missing, unknown or wrong."""


class AuthenticationError(PresignError):
    """The API key is not valid."""


class InsufficientQuotaError(PresignError):
    """The money is spent."""


class PermissionDeniedError(PresignError):
    """The API key may not do this."""


class NotFoundError(PresignError):
    """The account has no such thing."""


class ConflictError(PresignError):
    """Another request or change came first."""


class RateLimitError(PresignError):
    """Too many requests. `retry_after_seconds` says when the next may pass."""


class ApiError(PresignError):
    """The issuer failed, or a type of refusal that this version does not know."""


class ConnectionFailedError(PresignError):
    """The issuer could not be reached, or the connection broke off."""


class TimedOutError(PresignError):
    """The issuer did not answer in time."""


class UnexpectedAnswerError(PresignError):
    """The answer is not that of an issuer."""


class PresignWarning(UserWarning):
    """The issuer issued a URL that no call can use, such as one whose `cost_limit` is too low."""

    issued: Issued | IssuedBundle | None = None
    """That URL, which the method does not return if Python raises warnings as errors."""


# By the `type` of the issuer's refusals.
REFUSALS: Mapping[str, type[PresignError]] = {
    "invalid_request_error": InvalidRequestError,
    "authentication_error": AuthenticationError,
    "insufficient_quota": InsufficientQuotaError,
    "permission_error": PermissionDeniedError,
    "not_found_error": NotFoundError,
    "conflict_error": ConflictError,
    "rate_limit_error": RateLimitError,
}
