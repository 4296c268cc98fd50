"""A client of the Presign issuer: it issues signed, expiring, capped URLs for LLM APIs and MCP servers."""

from ._client import AsyncPresign, Presign
from ._dollars import Dollars, microdollars
from ._errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    InsufficientQuotaError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    PresignError,
    PresignWarning,
    RateLimitError,
    TimedOutError,
    UnexpectedAnswerError,
)
from ._issued import Issued, IssuedBundle
from ._request import request_id_of
from ._webhooks import WebhookEvent, WebhookVerificationError, verify_webhook

__all__ = [
    "ApiError",
    "AsyncPresign",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailedError",
    "Dollars",
    "InsufficientQuotaError",
    "InvalidRequestError",
    "Issued",
    "IssuedBundle",
    "NotFoundError",
    "PermissionDeniedError",
    "Presign",
    "PresignError",
    "PresignWarning",
    "RateLimitError",
    "TimedOutError",
    "UnexpectedAnswerError",
    "WebhookEvent",
    "WebhookVerificationError",
    "microdollars",
    "request_id_of",
    "verify_webhook",
]
