"""A backend and a holder in Python: the standard library does, and the openai SDK is used where installed."""

import json
import os
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ISSUER = os.environ.get("ISSUER_URL", "http://127.0.0.1:8787")
API_KEY_FILE = Path(__file__).parents[2] / ".presign" / "api-key"
API_KEY = os.environ.get("PRESIGN_API_KEY") or API_KEY_FILE.read_text().strip()


def post(url: str, body: dict, headers: dict | None = None) -> dict:
    data = json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json", **(headers or {})})
    with urlopen(request) as answer:
        return json.load(answer)


# The backend alone has the API key and the provider's key.
issued = post(
    f"{ISSUER}/v1/presign",
    {
        "provider": "sandbox",
        "path": "/v1/chat/completions",
        "client_api_key": "sk-sandbox",
        "max_uses": 2,
    },
    {"authorization": f"Bearer {API_KEY}"},
)
url = issued["url"]
print(f"Issued for two calls:\n{url}\n")

# The holder has the URL and nothing else.
ask = {"model": "sandbox-1", "messages": [{"role": "user", "content": "Hello"}]}
said = post(url, ask)["choices"][0]["message"]["content"]
print(f"The model said: {said}")
assert "Hello" in said, said

try:
    from openai import OpenAI
except ImportError:
    print("The openai SDK is not installed, so urllib makes the second call too.")
    said = post(url, ask)["choices"][0]["message"]["content"]
else:
    client = OpenAI(base_url=url.removesuffix("/chat/completions"), api_key="unused")
    said = client.chat.completions.create(**ask).choices[0].message.content
    print(f"The model said through the openai SDK: {said}")
assert "Hello" in said, said

try:
    post(url, ask)
except HTTPError as refusal:
    error = json.load(refusal)["error"]
    print(f"A third call: {refusal.code} {error['code']}: {error['message']}")
    assert (refusal.code, error["code"]) == (403, "uses_exhausted"), error
else:
    raise SystemExit("A third call passed on a URL for two.")
