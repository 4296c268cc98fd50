from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict


class WebhookVerificationError(ValueError):
    """The request is not from the issuer, or is too old."""


class WebhookEvent(TypedDict):
    type: str
    timestamp: str
    """When the event happened, in ISO 8601."""
    data: dict[str, Any]


def verify_webhook(
    payload: bytes | str,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance_seconds: int = 300,
) -> WebhookEvent:
    """The event of a webhook request whose signature is right (https://www.standardwebhooks.com).

    `payload` is the body as it came. Handle each `webhook-id` once, because an event can arrive more than once.

    >>> headers = {"webhook-id": "msg_1", "webhook-timestamp": "1614265330", "webhook-signature": "v1,AAAA"}
    >>> verify_webhook(b"{}", headers, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    Traceback (most recent call last):
    ...
    presign_client._webhooks.WebhookVerificationError: webhook-timestamp: not within 300 seconds of now
    """
    body = _bytes(payload)
    of = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not of.get(name):
            raise WebhookVerificationError(f"{name}: missing")
    event_id, sent_at = of["webhook-id"], of["webhook-timestamp"]
    if not (sent_at.isascii() and sent_at.isdigit() and abs(time.time() - int(sent_at[:12])) <= tolerance_seconds):
        raise WebhookVerificationError(f"webhook-timestamp: not within {tolerance_seconds} seconds of now")
    signed = f"{event_id}.{sent_at}.".encode() + body
    right = b"v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest())
    # After a rotation of the secret there are two.
    given = of["webhook-signature"].encode().split()
    if not any([hmac.compare_digest(right, each) for each in given]):
        raise WebhookVerificationError("webhook-signature: wrong for this body and secret")
    event: WebhookEvent = json.loads(body)
    return event


def _bytes(payload: object) -> bytes:
    if isinstance(payload, str):
        return payload.encode()
    if isinstance(payload, (bytes, bytearray)):
        return bytes(payload)
    raise TypeError(f"payload: expected the body as it came, in bytes or text, not {type(payload).__name__}.")


def _key(secret: object) -> bytes:
    text = secret if isinstance(secret, str) else ""
    try:
        key = base64.b64decode(text[len("whsec_") :], validate=True) if text.startswith("whsec_") else b""
    except binascii.Error:
        key = b""
    # An empty key would let anyone sign.
    if not key:
        raise ValueError("secret: expected the secret of an endpoint, whsec_…")
    return key
