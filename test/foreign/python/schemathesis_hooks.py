"""What schemathesis cannot know of the API. SCHEMATHESIS_HOOKS names this file."""

import os

import schemathesis

# Rules that JSON Schema cannot state. A request that keeps to the document may be refused for one of these fields alone.
BEYOND_THE_DOCUMENT = {
    # The form of a cursor is not public.
    "cursor": "the next_cursor of an earlier answer",
    # The operator decides which providers, keys and paths there are, and the provider which keys it can use.
    "provider": "a provider of this installation",
    "providers": "providers of this installation",
    "virtual_key": "a virtual key of the account, for this provider",
    "virtual_keys": "virtual keys of the account",
    "api_key": "an API key of the account that is in use",
    "webhook": "an endpoint of the account",
    "client_api_key": "a key that the provider can use",
    "key": "a key that the provider can use",
    "path": "1,536 bytes in all, escapes that are UTF-8, no * in the first, and a path that the models fit",
    "models": "models that a call on the path can use",
    # Sizes in bytes, depth, and whole numbers below 2^53 at any depth.
    "config": "at most 16,384 bytes, 64 levels, and a config that fits the path",
    "metadata": "at most 65,536 bytes and 64 levels",
    # JSON Schema has no parser of URLs, and no unique names.
    "url": "a URL that can be parsed and reached",
    "token_url": "a URL that can be parsed",
    "servers": "unique names, parseable URLs, and prices of allowed tools alone",
    "header": "a header that the protocol does not use",
    "origins": "origins as browsers write them",
    "ip_ranges": "addresses and ranges that can be parsed",
    "time_zone": "a name in the IANA database",
    "tokens_per_minute": "a path whose calls have a bound of tokens",
    "concurrent_calls": "a bundle without a server over sse",
    "grants": "at most 100 live URLs in the session, each of which can have these limits",
    "mcp_hosts": "a host as URLs have it",
    # Depends on the clock, or on another field.
    "expires_at": "a time to come, and at most a year",
    "from": "a time before to, since 1970",
    "to": "a time since 1970",
    "group_by": "each dimension once",
    "top": "with a group_by, and without a cursor",
    "limit": "no limit for an export of the audit log",
    "external_user": "exactly one filter of DELETE /v1/sessions",
    "scopes": "some of the scopes that the key has",
    "policy": "no policy for a key with the scope admin or operator",
    "budget": "a budget for a virtual key that was made with one, or a budget of the account that is no template",
    "id": "the bundle and not one of its servers",
    # A name of white space: engines of regular expressions disagree on it.
    "name": "not white space alone",
    # Refused by the HTTP layer: text that is not ASCII.
    "Idempotency-Key": "ASCII",
}


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Keeps the API key of this run: a changed or revoked one would be refused from then on."""
    if case.path_parameters and case.path_parameters.get("id") == os.environ["OWN_API_KEY_ID"]:
        case.path_parameters["id"] = "00000000-0000-4000-8000-000000000000"
    # Node refuses an address of more than 16 KB with 431, before the issuer sees it.
    for name, value in (case.query or {}).items():
        if isinstance(value, str):
            case.query[name] = value[:400]


@schemathesis.check
def refuses_for_a_reason(ctx, response, case):
    """Data that keeps to the document is accepted, or refused for a field whose rule the document cannot state."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code not in (400, 413, 415):
        return
    error = response.json()["error"]
    param = error["param"] or ""
    names = set(param.replace("[", ".").split("."))
    if error["code"] == "invalid_request" and param == "" and "disabled" in error["message"]:
        return
    if error["code"] not in ("invalid_request", "unknown_provider") or not names & BEYOND_THE_DOCUMENT.keys():
        raise AssertionError(f"refused although it keeps to the document: {error['message']}")
