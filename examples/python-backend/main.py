"""A backend in Python that issues a URL, and a holder that calls it with nothing else."""

import os
import sys
import uuid
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

# An example that fails ends with one line.
sys.excepthook = lambda _kind, error, _trace: print(" ".join(str(error).split()), file=sys.stderr)

ISSUER = os.environ.get("ISSUER_URL") or "http://127.0.0.1:8787"
try:
    requests.get(f"{ISSUER}/healthz", timeout=30)
except requests.RequestException:
    raise SystemExit(f"No issuer answers at {ISSUER}. Is `npx -y pnpm@12 start` running? (ISSUER_URL sets the address.)") from None

API_KEY_FILE = Path(__file__).parents[2] / ".presign" / "api-key"
API_KEY = os.environ.get("PRESIGN_API_KEY") or API_KEY_FILE.read_text().strip()

# The backend alone has the API key and the provider's key. With an Idempotency-Key a request may be sent again
# whatever became of the first, POST too: it issues nothing twice.
backend = requests.Session()
backend.headers["Authorization"] = f"Bearer {API_KEY}"
backend.mount(ISSUER, HTTPAdapter(max_retries=Retry(3, backoff_factor=0.5, status_forcelist=[429, 503], allowed_methods=None)))


def reason_in(answer: requests.Response) -> str:
    """One line that says what the issuer or the gateway answered."""
    try:
        error = answer.json()["error"]
        return f"{answer.status_code} {error['code']}: {error['message'].removeprefix(error['code'] + ': ')}"
    except (ValueError, LookupError, TypeError):
        return f"{answer.status_code} {answer.reason}"


def said_in(answer: requests.Response) -> str:
    """What the model said."""
    if not answer.ok:
        raise SystemExit(reason_in(answer))
    return answer.json()["choices"][0]["message"]["content"]


def issue_url(user: str, order: str) -> dict:
    """The answer of the issuer: url, session_id, expires_at. The same order gets the same URL."""
    answer = backend.post(
        f"{ISSUER}/v1/presign",
        headers={"Idempotency-Key": order},
        json={
            "provider": "sandbox",
            "path": "/v1/chat/completions",
            "client_api_key": "sk-sandbox",
            "max_uses": 2,
            "external_user": user,
        },
        timeout=30,
    )
    if not answer.ok:
        raise SystemExit(reason_in(answer))
    return answer.json()


order = f"order-{uuid.uuid4()}"
issued = issue_url("user-42", order)
url = issued["url"]
print(f"Issued for two calls:\n{url}\n")
assert issue_url("user-42", order) == issued, "the same Idempotency-Key issued another URL"
print("Asked again with the same Idempotency-Key: the same URL.")

# The holder has the URL and nothing else.
ask = {"model": "sandbox-1", "messages": [{"role": "user", "content": "Hello"}]}
answer = requests.post(url, json=ask, timeout=30)
said = said_in(answer)
print(f"The model said: {said}")
assert "Hello" in said, said
assert answer.headers["x-presign-uses-remaining"] == "1", answer.headers

try:
    from openai import OpenAI
except ImportError:
    print("The openai SDK is not installed, so requests makes the second call, too.")
    said = said_in(requests.post(url, json=ask, timeout=30))
else:
    client = OpenAI(base_url=url.removesuffix("/chat/completions"), api_key="unused")
    said = client.chat.completions.create(**ask).choices[0].message.content
    print(f"The model said through the openai SDK: {said}")
assert "Hello" in said, said

refusal = requests.post(url, json=ask, timeout=30)
error = refusal.json()["error"]
print(f"A third call: {refusal.status_code} {error['message']}")
assert (refusal.status_code, error["code"]) == (403, "uses_exhausted"), error
