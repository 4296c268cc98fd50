# Generated from docs/reference/openapi.json by `pnpm --filter @presign/client generate`. Do not edit.

"""Requests and answers of the issuer. At run time they are plain dictionaries."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import NotRequired, TypeAlias, TypedDict

CallMethod: TypeAlias = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

CallConfig: TypeAlias = dict[str, Any]

Metadata: TypeAlias = dict[str, Any]

class PresignRequest(TypedDict):
    provider: str
    """openai, anthropic, google, cohere, groq, another built-in provider, or one that the operator added."""
    path: str | list[str]
    """One allowed path, or 1 to 50. A path is everything after the provider's origin, version prefix included. The URL ends in the first path. In the others, * stands for any characters except /."""
    client_api_key: NotRequired[str | None]
    """The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored. Required without virtual_key."""
    virtual_key: NotRequired[str | None]
    """Id of a virtual key of this provider. It takes precedence over client_api_key."""
    method: NotRequired[CallMethod | None]
    """The HTTP method of the calls."""
    expires_in: NotRequired[int | None]
    """Validity in seconds. -1: one year."""
    config: NotRequired[CallConfig | None]
    """Fields that replace those of the holder in the JSON body of every call, such as model or max_tokens. At most 16384 bytes."""
    models: NotRequired[list[str] | None]
    """The models that calls may use, 1 to 50 names. A call that does not say which model it uses is refused. Left out: all."""
    max_body_bytes: NotRequired[int | None]
    """How many bytes the body of a call may have, as it is sent and as it is decoded. Left out: as many as the gateway takes."""
    allowed_fields: NotRequired[list[str] | None]
    """The top-level fields that the JSON body of a call may have, at most 100. Fields that config sets need not be named. Left out: all."""
    sockets: NotRequired[bool | None]
    """true: the URL can also be opened as a WebSocket, where its provider has one: OpenAI on `/v1/responses`. Each turn is a call. Left out: an upgrade is refused with 426."""
    cost_limit: NotRequired[int | None]
    """Microdollars that may be spent (1 dollar = 1000000). 0: only calls that cost nothing pass. Left out: unlimited."""
    max_uses: NotRequired[int | None]
    """How many calls may be made. -1, null: unlimited."""
    calls_per_minute: NotRequired[int | None]
    """How many calls may be made in a minute, at once or spread over it. Left out: unlimited."""
    calls_per_day: NotRequired[int | None]
    """How many calls may be made in 24 hours, at once or spread over them. Left out: unlimited."""
    concurrent_calls: NotRequired[int | None]
    """How many calls may be under way at once. Left out: unlimited."""
    tokens_per_minute: NotRequired[int | None]
    """How many tokens of input and output calls may use in a minute. A call takes the most that it can use, and gives the rest back when it ends. Left out: unlimited."""
    bind: NotRequired[BindRequest | None]
    """The pages and addresses that may call the URL. Left out: all."""
    external_session: NotRequired[str | None]
    """Your own id of a session. Sessions can be filtered by it."""
    external_user: NotRequired[str | None]
    """Your own id of the user to be billed. Usage and sessions can be filtered by it."""
    session_id: NotRequired[str | None]
    """The session to join. It must belong to this account and not be revoked. An id that does not exist yet creates a session. Left out: a new session."""
    metadata: NotRequired[Metadata | None]
    """Your own data, at most 65536 bytes of JSON. GET /v1/sessions/{id} returns it."""

class BindRequest(TypedDict):
    origins: NotRequired[list[str] | None]
    """The origins whose pages may call the URL, at most 50. A call without the header Origin is refused, too."""
    ip_ranges: NotRequired[list[AddressRange] | None]
    """The client addresses that may call the URL, at most 50 of IPv4 and IPv6, or ranges of them in CIDR form."""

AddressRange: TypeAlias = str

class PresignAnswer(TypedDict):
    url: str
    """The URL that the holder calls instead of the provider. It contains no key."""
    session_id: str
    expires_at: int
    """Unix time in seconds. The URL is refused from then on."""
    grant_id: str
    """The id of its grant, for `/v1/grants/{id}`."""
    claims: LlmClaims
    """The claims that its token carries. Anyone with the URL can read them."""
    warnings: NotRequired[list[Warning]]
    """Under its `cost_limit` no call of this URL can pass. It is issued all the same, unless the policy of the API key has `refuse_warnings`."""

CriticalClaim: TypeAlias = Literal["calls_per_day", "tokens_per_minute", "max_body_bytes", "allowed_fields", "shared_budgets", "bind", "arguments", "sockets"]

class LlmClaims(TypedDict):
    jti: str
    """Grant id."""
    sub: str
    """Session id."""
    iat: str
    """When it was issued."""
    exp: str
    """When the token ends."""
    iss: str
    """The issuer's address."""
    aud: str
    """The gateway's address."""
    prt: int
    """Redis partition of the grant."""
    crt: NotRequired[list[CriticalClaim]]
    """The names of what restricts the URL and is not in its token, and `sockets` where it may be opened as a socket. Left out: nothing."""
    knd: Literal["llm"]
    prv: str
    """The provider."""
    mth: str
    """The method of its calls."""
    pth: list[str]
    """The paths of its calls."""
    mdl: NotRequired[str]
    """The model to write into the path before it is matched, for providers that have the model there."""

class Warning(TypedDict):
    code: WarningCode
    param: str
    """The field of the request."""
    message: str
    needed: int | None
    """Microdollars that the cheapest call needs. null: no call has a price."""

WarningCode: TypeAlias = Literal["cost_limit_too_low", "price_unknown"]
"""The code with which a gateway would refuse the calls."""

class McpPresignRequest(TypedDict):
    servers: list[McpServerRequest]
    """1 to 50 servers with different names. They share all limits."""
    expires_in: NotRequired[int | None]
    """Validity of the bundle in seconds."""
    cost_limit: NotRequired[int | None]
    """Microdollars that may be spent (1 dollar = 1000000). 0: only calls that cost nothing pass. Left out: unlimited."""
    max_uses: NotRequired[int | None]
    """How many calls may be made. -1, null: unlimited."""
    calls_per_minute: NotRequired[int | None]
    """How many calls may be made in a minute, at once or spread over it. Left out: unlimited."""
    calls_per_day: NotRequired[int | None]
    """How many calls may be made in 24 hours, at once or spread over them. Left out: unlimited."""
    concurrent_calls: NotRequired[int | None]
    """How many calls may be under way at once. Left out: unlimited."""
    bind: NotRequired[BindRequest | None]
    """The pages and addresses that may call the URL. Left out: all."""
    external_session: NotRequired[str | None]
    """Your own id of a session. Sessions can be filtered by it."""
    external_user: NotRequired[str | None]
    """Your own id of the user to be billed. Usage and sessions can be filtered by it."""
    session_id: NotRequired[str | None]
    """The session to join. It must belong to this account and not be revoked. An id that does not exist yet creates a session. Left out: a new session."""
    metadata: NotRequired[Metadata | None]
    """Your own data, at most 65536 bytes of JSON. GET /v1/sessions/{id} returns it."""

class BearerAuth(TypedDict):
    token: str
    """Sent as \"Authorization: Bearer …\"."""
    scheme: NotRequired[str | None]
    """The scheme before the token. Left out: Bearer."""
    headers: NotRequired[McpHeaders | None]
    """Further headers for the server, at most 8. They are encrypted, too."""

McpHeaders: TypeAlias = dict[str, str]

class ApiKeyAuth(TypedDict):
    key: str
    """The key of the server."""
    header: NotRequired[str | None]
    """The header that carries the key. Left out: X-API-Key, unless query is given."""
    query: NotRequired[str | None]
    """The query parameter that carries the key, instead of a header."""
    headers: NotRequired[McpHeaders | None]
    """Further headers for the server, at most 8. They are encrypted, too."""

class OAuth(TypedDict):
    access_token: NotRequired[str | None]
    """Used until it expires. Send it without the other fields."""
    token_url: NotRequired[str | None]
    """Where the gateway gets access tokens. Needs client_id, and client_secret or refresh_token."""
    client_id: NotRequired[str | None]
    """The id of the client at the token endpoint."""
    client_secret: NotRequired[str | None]
    """The client's secret, if it has one."""
    refresh_token: NotRequired[str | None]
    """Left out: client credentials are used."""
    scope: NotRequired[str | None]
    """Scopes to ask for, separated by spaces."""
    audience: NotRequired[str | None]
    """The audience to ask for, if the token endpoint requires one."""
    resource: NotRequired[Literal[False] | str | None]
    """The resource to ask for (RFC 8707). Left out: the URL of the server without its query. false: none is sent."""
    headers: NotRequired[McpHeaders | None]
    """Further headers for the server, at most 8. They are encrypted, too."""

class NoAuth(TypedDict):
    pass

class ArgumentCondition(TypedDict):
    equals: NotRequired[str | float | bool | None]
    """The argument is this value, of this type."""
    prefix: NotRequired[str]
    """The argument is a string that begins with this text, character by character: a path with .. is not resolved."""

ArgumentConditions: TypeAlias = dict[str, ArgumentCondition]

ToolArguments: TypeAlias = dict[str, ArgumentConditions]

class McpServerRequest(TypedDict):
    name: str
    """The name of the server in the answer and in the bundle."""
    url: str
    """The address of the MCP server, as the gateway reaches it."""
    transport: NotRequired[McpTransport | None]
    """http: Streamable HTTP. sse: the older HTTP with SSE."""
    auth_type: NotRequired[McpAuthType | None]
    """How the gateway authenticates to the server."""
    auth_config: NotRequired[NoAuth | BearerAuth | ApiKeyAuth | OAuth | None]
    """The fields of the auth_type. They are encrypted before they are stored."""
    pricing: NotRequired[McpPricing | None]
    """The prices of this server's calls, in microdollars."""
    tools: NotRequired[list[str] | None]
    """The tools that may be called and that tools/list shows, at most 500. Left out: all."""
    arguments: NotRequired[ToolArguments | None]
    """The values that arguments of a tool must have, by the name of the tool and the name of the argument. A call without the argument is refused. Tools that are not named take any arguments."""

McpTransport: TypeAlias = Literal["sse", "http"]

McpAuthType: TypeAlias = Literal["none", "bearer", "api_key", "oauth"]

ToolPrices: TypeAlias = dict[str, int]

class McpPricing(TypedDict):
    default: NotRequired[int | None]
    """Microdollars of a call without its own price. Left out: the price that the operator set."""
    tools: NotRequired[ToolPrices | None]
    """Microdollars by the name of a tool."""

class McpPresignAnswer(TypedDict):
    bundle_url: str
    """Returns an MCP client's configuration with all servers."""
    bundle_token: str
    """The last part of bundle_url."""
    expires_at: int
    """Unix time in seconds. The URL is refused from then on."""
    session_id: str
    servers: dict[str, McpServerUrl]
    """The servers by their names in the request."""
    grant_id: str
    """The id of its grant, for `/v1/grants/{id}`."""
    claims: McpBundleClaims
    """The claims that bundle_token carries."""
    warnings: NotRequired[list[Warning]]
    """Under its `cost_limit` no call of this URL can pass. It is issued all the same, unless the policy of the API key has `refuse_warnings`."""

class McpServerUrl(TypedDict):
    url: str
    transport: McpTransport

class McpBundleClaims(TypedDict):
    jti: str
    """Grant id."""
    sub: str
    """Session id."""
    iat: str
    """When it was issued."""
    exp: str
    """When the token ends."""
    iss: str
    """The issuer's address."""
    aud: str
    """The gateway's address."""
    prt: int
    """Redis partition of the grant."""
    crt: NotRequired[list[CriticalClaim]]
    """The names of what restricts the URL and is not in its token, and `sockets` where it may be opened as a socket. Left out: nothing."""
    knd: Literal["mcp_bundle"]

SessionStatus: TypeAlias = Literal["active", "ended"]

class SessionPage(TypedDict):
    data: list[SessionSummary]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class SessionSummary(TypedDict):
    id: str
    name: str | None
    """Your name for it. null: it has no name."""
    created_at: int
    """Unix time in whole seconds."""
    revoked_at: int | None
    """null: the session itself was not revoked."""
    status: SessionStatus
    """Active while one of its grants is active by the figures of the ledger."""
    grant_count: int
    """How many grants it has."""
    expires_at: int | None
    """When the last of its grants expires."""
    external_sessions: list[str]
    """The ids that its grants were issued with."""
    external_users: list[str]
    """The ids that its grants were issued with."""
    revision: int
    """1. Every `PATCH` of it that changes something adds 1."""

class Pending(TypedDict):
    """The change is stored, and Presign applies it as soon as Redis answers."""
    status: Literal["pending"]

class Session(TypedDict):
    id: str
    name: str | None
    """Your name for it. null: it has no name."""
    created_at: int
    """Unix time in whole seconds."""
    revoked_at: int | None
    """null: the session itself was not revoked."""
    status: SessionStatus
    """Active while one of its grants is active by the figures of the ledger."""
    grant_count: int
    """How many grants it has."""
    expires_at: int | None
    """When the last of its grants expires."""
    external_sessions: list[str]
    """The ids that its grants were issued with."""
    external_users: list[str]
    """The ids that its grants were issued with."""
    revision: int
    """1. Every `PATCH` of it that changes something adds 1."""
    metadata: Metadata | None
    """The session's own, which `PATCH` sets. Each grant has the metadata of its issue."""
    grants: list[SessionGrant]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page of grants. null: this is the last page."""

class SessionGrant(TypedDict):
    id: str
    kind: GrantKind
    provider: str
    """`mcp` for MCP grants."""
    method: str | None
    """LLM grants only."""
    paths: list[str] | None
    """LLM grants only."""
    models: list[str] | None
    """LLM grants only: the models that calls may use. null: all."""
    server: McpServer | None
    """Grants of MCP servers only: the server of the request."""
    bundle_id: str | None
    """Grants of MCP servers only: the grant of the bundle."""
    external_session: str | None
    external_user: str | None
    virtual_key: str | None
    """Id of the virtual key that it was issued with. null: it was issued with client_api_key."""
    api_key: str | None
    """Id of the API key that issued it. null: it was issued before Presign recorded this."""
    metadata: Metadata | None
    """As issued. A bundle's metadata is at the bundle's own grant."""
    issued_at: int
    """Unix time in whole seconds."""
    expires_at: int
    """Unix time in whole seconds."""
    status: GrantStatus
    cost_limit: int | None
    """Microdollars. null: no limit."""
    max_uses: int | None
    """null: no limit."""
    calls_per_minute: int | None
    """null: no limit."""
    calls_per_day: int | None
    """null: no limit."""
    concurrent_calls: int | None
    """null: no limit."""
    tokens_per_minute: int | None
    """null: no limit."""
    conditions: Conditions | None
    """Those that it was issued with. null: none."""
    shared_budgets: list[str]
    """Ids of the budgets that its calls draw on, too. They were chosen when it was issued."""
    revision: int
    """1. Every change adds 1. The grants of a bundle share it."""
    settled: Settled
    live: LiveFigures | None
    """Now, running calls included. null: Redis does not answer."""

GrantKind: TypeAlias = Literal["llm", "mcp", "mcp_bundle"]

class McpServer(TypedDict):
    name: str
    url: str
    transport: McpTransport
    tools: list[str] | None
    """null: all."""
    arguments: StoredArguments | None
    """null: any."""

StoredConditions: TypeAlias = dict[str, ArgumentCondition]

StoredArguments: TypeAlias = dict[str, StoredConditions]

GrantStatus: TypeAlias = Literal["active", "exhausted", "expired", "revoked"]

class Conditions(TypedDict):
    max_body_bytes: NotRequired[int]
    allowed_fields: NotRequired[list[str]]
    bind: NotRequired[Bind]
    sockets: NotRequired[Literal[True]]

class Bind(TypedDict):
    origins: NotRequired[list[str]]
    ip_ranges: NotRequired[list[str]]

class Settled(TypedDict):
    """Uses and microdollars in the ledger."""
    used: int
    """Calls."""
    spent: int
    """Microdollars."""

class LiveFigures(TypedDict):
    used: int
    """Calls."""
    spent: int
    """Microdollars."""
    held: int
    """Microdollars held for running calls."""

class SessionChange(TypedDict):
    name: NotRequired[str | None]
    """Your name for it. null: none."""
    metadata: NotRequired[Metadata | None]
    """Replaces all of the session's own metadata. null: none."""
    grants: NotRequired[GrantChange]
    """The change of each of its live URLs and bundles, at most 100, as `PATCH /v1/grants/{id}` takes it. All of them are changed, or none. A limit is that of each URL, not of all together."""

class GrantChange(TypedDict):
    cost_limit: NotRequired[int | None]
    """Microdollars over all its calls, those that it has had included. null: no limit."""
    max_uses: NotRequired[int | None]
    """All its calls, those that it has had included. null, -1: unlimited. 0: no call passes."""
    calls_per_minute: NotRequired[int | None]
    """null: no limit."""
    calls_per_day: NotRequired[int | None]
    """null: no limit."""
    concurrent_calls: NotRequired[int | None]
    """null: no limit."""
    tokens_per_minute: NotRequired[int | None]
    """null: no limit."""
    expires_at: NotRequired[int]
    """When it ends, in Unix seconds. A later end than its token has gives it a new URL; the old one ends when it says."""
    metadata: NotRequired[Metadata | None]
    """Replaces all metadata. null: none."""

class ChangedSession(TypedDict):
    id: str
    name: NotRequired[str | None]
    """Your name for it. null: it has no name."""
    created_at: NotRequired[int]
    """Unix time in whole seconds."""
    revoked_at: NotRequired[int | None]
    """null: the session itself was not revoked."""
    status: NotRequired[SessionStatus]
    """Active while one of its grants is active by the figures of the ledger."""
    grant_count: NotRequired[int]
    """How many grants it has."""
    expires_at: NotRequired[int | None]
    """When the last of its grants expires."""
    external_sessions: NotRequired[list[str]]
    """The ids that its grants were issued with."""
    external_users: NotRequired[list[str]]
    """The ids that its grants were issued with."""
    revision: int
    """1. Every `PATCH` of it that changes something adds 1."""
    metadata: NotRequired[Metadata | None]
    """The session's own, which `PATCH` sets. Each grant has the metadata of its issue."""
    changed: list[ChangedUrl]
    """The live URLs and bundles that `grants` was for."""

class ChangedUrl(TypedDict):
    id: str
    url: str | None
    """The URL that lasts until expires_at, if that is the end of its token. null: the URL stays, or another API key issued it and the one that asks has a policy."""

class GrantPage(TypedDict):
    data: list[Grant]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class Grant(TypedDict):
    id: str
    kind: GrantKind
    provider: str
    """`mcp` for MCP grants."""
    method: str | None
    """LLM grants only."""
    paths: list[str] | None
    """LLM grants only."""
    models: list[str] | None
    """LLM grants only: the models that calls may use. null: all."""
    server: McpServer | None
    """Grants of MCP servers only: the server of the request."""
    bundle_id: str | None
    """Grants of MCP servers only: the grant of the bundle."""
    external_session: str | None
    external_user: str | None
    virtual_key: str | None
    """Id of the virtual key that it was issued with. null: it was issued with client_api_key."""
    api_key: str | None
    """Id of the API key that issued it. null: it was issued before Presign recorded this."""
    metadata: Metadata | None
    """As issued. A bundle's metadata is at the bundle's own grant."""
    issued_at: int
    """Unix time in whole seconds."""
    expires_at: int
    """Unix time in whole seconds."""
    status: GrantStatus
    cost_limit: int | None
    """Microdollars. null: no limit."""
    max_uses: int | None
    """null: no limit."""
    calls_per_minute: int | None
    """null: no limit."""
    calls_per_day: int | None
    """null: no limit."""
    concurrent_calls: int | None
    """null: no limit."""
    tokens_per_minute: int | None
    """null: no limit."""
    conditions: Conditions | None
    """Those that it was issued with. null: none."""
    shared_budgets: list[str]
    """Ids of the budgets that its calls draw on, too. They were chosen when it was issued."""
    revision: int
    """1. Every change adds 1. The grants of a bundle share it."""
    settled: Settled
    live: LiveFigures | None
    """Now, running calls included. null: Redis does not answer."""
    session_id: str
    session_name: str | None
    """The name of its session. null: it has none."""

class ChangedGrant(TypedDict):
    id: str
    kind: NotRequired[GrantKind]
    provider: NotRequired[str]
    """`mcp` for MCP grants."""
    method: NotRequired[str | None]
    """LLM grants only."""
    paths: NotRequired[list[str] | None]
    """LLM grants only."""
    models: NotRequired[list[str] | None]
    """LLM grants only: the models that calls may use. null: all."""
    server: NotRequired[McpServer | None]
    """Grants of MCP servers only: the server of the request."""
    bundle_id: NotRequired[str | None]
    """Grants of MCP servers only: the grant of the bundle."""
    external_session: NotRequired[str | None]
    external_user: NotRequired[str | None]
    virtual_key: NotRequired[str | None]
    """Id of the virtual key that it was issued with. null: it was issued with client_api_key."""
    api_key: NotRequired[str | None]
    """Id of the API key that issued it. null: it was issued before Presign recorded this."""
    metadata: NotRequired[Metadata | None]
    """As issued. A bundle's metadata is at the bundle's own grant."""
    issued_at: NotRequired[int]
    """Unix time in whole seconds."""
    expires_at: int
    """Unix time in whole seconds."""
    status: NotRequired[GrantStatus]
    cost_limit: NotRequired[int | None]
    """Microdollars. null: no limit."""
    max_uses: NotRequired[int | None]
    """null: no limit."""
    calls_per_minute: NotRequired[int | None]
    """null: no limit."""
    calls_per_day: NotRequired[int | None]
    """null: no limit."""
    concurrent_calls: NotRequired[int | None]
    """null: no limit."""
    tokens_per_minute: NotRequired[int | None]
    """null: no limit."""
    conditions: NotRequired[Conditions | None]
    """Those that it was issued with. null: none."""
    shared_budgets: NotRequired[list[str]]
    """Ids of the budgets that its calls draw on, too. They were chosen when it was issued."""
    revision: int
    """1. Every change adds 1. The grants of a bundle share it."""
    settled: NotRequired[Settled]
    live: NotRequired[LiveFigures | None]
    """Now, running calls included. null: Redis does not answer."""
    session_id: str
    session_name: NotRequired[str | None]
    """The name of its session. null: it has none."""
    url: str | None
    """The URL that lasts until expires_at, if that is the end of its token. null: the URL stays, or another API key issued it and the one that asks has a policy."""

LedgerOutcome: TypeAlias = Literal["passed", "provider_error", "provider_refused", "provider_unreachable", "provider_timeout", "answer_broken", "holder_left", "cut", "credential_refused", "gateway_error", "lease_ended", "under_way", "refunded"]

UsageReport = TypedDict(
    "UsageReport",
    {
        "from": "float",
        "to": "float",
        "group_by": "list[UsageDimension]",
        "next_cursor": "str | None",
        "groups": "int",
        "data": "list[UsageRow]",
        "total": "UsageSums",
    },
)

UsageField: TypeAlias = Literal["external_user", "session_id", "model", "provider", "virtual_key", "api_key", "server", "tool", "outcome", "day", "month"]

UsageDimension: TypeAlias = UsageField | str

class UsageRow(TypedDict):
    external_user: NotRequired[str | None]
    session_id: NotRequired[str]
    model: NotRequired[str | None]
    provider: NotRequired[str]
    virtual_key: NotRequired[str | None]
    api_key: NotRequired[str | None]
    server: NotRequired[str | None]
    tool: NotRequired[str | None]
    outcome: NotRequired[str | None]
    """How the calls ended, as in a call. null: not recorded."""
    day: NotRequired[str]
    """In `timezone`, `2026-01-31`."""
    month: NotRequired[str]
    """In `timezone`, `2026-01`."""
    metadata: NotRequired[dict[str, str | None]]
    """By key, for each `metadata.<key>` of `group_by`."""
    calls: int
    """Calls that gateways admitted. They may have failed later."""
    uses: int
    """Uses that they took from their limits."""
    cost: int
    """Microdollars of the calls whose cost is known."""
    failed_calls: int
    """Those of them that failed, whatever the cause: `outcome` has it."""
    calls_of_unknown_cost: int
    input_tokens: int
    """As providers reported them."""
    output_tokens: int
    """As providers reported them."""

class UsageSums(TypedDict):
    calls: int
    """Calls that gateways admitted. They may have failed later."""
    uses: int
    """Uses that they took from their limits."""
    cost: int
    """Microdollars of the calls whose cost is known."""
    failed_calls: int
    """Those of them that failed, whatever the cause: `outcome` has it."""
    calls_of_unknown_cost: int
    input_tokens: int
    """As providers reported them."""
    output_tokens: int
    """As providers reported them."""

HourDimension: TypeAlias = Literal["provider", "model", "server"]

UsageHours = TypedDict(
    "UsageHours",
    {
        "from": "int",
        "to": "int",
        "data": "list[UsageHour]",
    },
)

class UsageHour(TypedDict):
    hour: int
    """When the hour began, in Unix seconds."""
    provider: NotRequired[str]
    model: NotRequired[str | None]
    server: NotRequired[str | None]
    calls: int
    """Calls that ended in it."""
    failed_calls: int
    """Those of them that failed, whatever the cause."""
    error_rate: float
    """The part of the calls that failed by the fault of the provider or of Presign, from 0 to 1."""
    outcomes: CallsByOutcome
    """How many calls ended how."""
    total_ms: Percentiles
    first_byte_ms: Percentiles

CallsByOutcome: TypeAlias = dict[str, int]

class Percentiles(TypedDict):
    """Milliseconds, at most 9 % off. null: no call has this time."""
    p50: int | None
    p95: int | None

Refusals = TypedDict(
    "Refusals",
    {
        "from": "str",
        "to": "str",
        "data": "list[RefusalCount]",
    },
)

class RefusalCount(TypedDict):
    day: str
    """In UTC, `2026-01-31`."""
    code: str
    """The code of the error that the holder got."""
    calls: int
    """How many calls were refused with it."""
    names: list[RefusedName]
    """The fields, kinds and models for which no bound or price is known, with how many of these calls each, the most first. `other`: calls whose names are too many or too long. Empty with other codes."""

class RefusedName(TypedDict):
    name: str
    calls: int

OutcomeFilter: TypeAlias = Literal["passed", "provider_error", "provider_refused", "provider_unreachable", "provider_timeout", "answer_broken", "holder_left", "cut", "credential_refused", "gateway_error", "lease_ended", "under_way", "refunded", "failed", "refused", "all"]

class CallPage(TypedDict):
    data: list[Call]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class Call(TypedDict):
    request_id: str | None
    """The `x-presign-request-id` of the answer."""
    started_at: int
    """Unix time in whole seconds."""
    settled_at: int
    """Unix time in whole seconds."""
    outcome: Outcome
    failure: str | None
    """How it failed, in one word more exact than `outcome`: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: it did not."""
    status: int | None
    """The provider's status, or that of a refusal. null: the provider gave no answer, or it is an MCP call under way."""
    first_byte_ms: int | None
    """From the call's arrival to the first byte of the provider's answer. null: there was none."""
    own_ms: float | None
    """The time that Presign took of it: without its body on the way, and without the provider. null: not recorded."""
    total_ms: int | None
    """From the call's arrival to the end of its answer. null: not recorded."""
    retry_count: int | None
    """Which repetition it was, as the SDK stated it in `X-Stainless-Retry-Count`: 0 is the first try. null: not stated."""
    user_agent: str | None
    """The first 64 characters of the header. null: it had none."""
    connection: str | None
    """The socket that it is a turn of: the `x-presign-request-id` of its handshake. null: it had a request of its own."""
    turn: int | None
    """Its number on that socket, from 1."""
    session_id: str
    grant_id: str
    api_key: str | None
    virtual_key: str | None
    external_user: str | None
    metadata: CallMetadata | None
    """Values of the keys of `USAGE_METADATA` that its URL had. null: none."""
    provider: str
    model: str | None
    server: str | None
    """MCP: the name of the server."""
    tool: str | None
    """MCP: the tool or method."""
    uses: int
    input_tokens: int | None
    """As the provider reported them. null: it did not."""
    output_tokens: int | None
    """As the provider reported them. null: it did not."""
    hold: int | None
    """Microdollars that were held while it ran. null: nothing was held."""
    cost: int | None
    """Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it."""
    overrun: int
    """Microdollars beyond the hold, which no limit was charged."""
    price_list: PriceListOfCall | None
    """The list that priced it, as `GET /v1/models` names it. null: no list."""
    knowledge: str | None
    """The version of what was known of the provider when it was bounded, as `/readyz` names it: `source:id`. null for MCP."""
    refusal: RefusalOfCall | None
    """How it was refused. null: it was not."""

Outcome: TypeAlias = Literal["passed", "provider_error", "provider_refused", "provider_unreachable", "provider_timeout", "answer_broken", "holder_left", "cut", "credential_refused", "gateway_error", "lease_ended", "under_way", "refunded", "refused"]
"""`passed`: the holder got a whole answer below 400. `provider_error`: the provider answered 500 or more. `provider_refused`: the provider answered 400 to 499. `provider_unreachable`: no connection, or no answer before it ended. `provider_timeout`: the provider did not answer in time. `answer_broken`: the provider ended its answer before it was whole. `holder_left`: the holder did not wait for the end of its answer. `cut`: the URL ended while the call ran: it was revoked or suspended, or it expired. `credential_refused`: the provider refused the credential of the URL, or its credential could not be used. `gateway_error`: the gateway could not send it: a fault of its own, Redis, or its end. `lease_ended`: its gateway died, and its hold was charged. `under_way`: an MCP call whose end is not recorded: it runs, or its gateway died. `refunded`: a row that returns the charge of an MCP call that surely did not run. `refused`: the gateway refused it, and it cost nothing."""

CallMetadata: TypeAlias = dict[str, str]

class PriceListOfCall(TypedDict):
    source: str
    id: str

class RefusalOfCall(TypedDict):
    code: str
    """The code of the error that the holder got."""
    reason: str | None
    """Says more than the code, as in the log. null: it says it all."""
    name: str | None
    """The field, kind or model for which no bound or price is known."""
    limit_of: LimitOwner | None
    """Whose limit refused it. null: no such limit did."""
    budget: str | None
    """The id of the shared budget, if it is of one."""
    limit: int | None
    """The limit: microdollars for money, else uses, tokens or calls."""
    used: int | None
    """How much of it was used, in the same unit."""
    needed: int | None
    """How much the call needed."""
    remaining: int | None
    """How much was left."""
    body_bytes: int | None
    """The length of its body. null: the holder did not state it."""

LimitOwner: TypeAlias = Literal["url", "virtual_key", "budget"]

class CallWithRefunds(TypedDict):
    request_id: str | None
    """The `x-presign-request-id` of the answer."""
    started_at: int
    """Unix time in whole seconds."""
    settled_at: int
    """Unix time in whole seconds."""
    outcome: Outcome
    failure: str | None
    """How it failed, in one word more exact than `outcome`: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: it did not."""
    status: int | None
    """The provider's status, or that of a refusal. null: the provider gave no answer, or it is an MCP call under way."""
    first_byte_ms: int | None
    """From the call's arrival to the first byte of the provider's answer. null: there was none."""
    own_ms: float | None
    """The time that Presign took of it: without its body on the way, and without the provider. null: not recorded."""
    total_ms: int | None
    """From the call's arrival to the end of its answer. null: not recorded."""
    retry_count: int | None
    """Which repetition it was, as the SDK stated it in `X-Stainless-Retry-Count`: 0 is the first try. null: not stated."""
    user_agent: str | None
    """The first 64 characters of the header. null: it had none."""
    connection: str | None
    """The socket that it is a turn of: the `x-presign-request-id` of its handshake. null: it had a request of its own."""
    turn: int | None
    """Its number on that socket, from 1."""
    session_id: str
    grant_id: str
    api_key: str | None
    virtual_key: str | None
    external_user: str | None
    metadata: CallMetadata | None
    """Values of the keys of `USAGE_METADATA` that its URL had. null: none."""
    provider: str
    model: str | None
    server: str | None
    """MCP: the name of the server."""
    tool: str | None
    """MCP: the tool or method."""
    uses: int
    input_tokens: int | None
    """As the provider reported them. null: it did not."""
    output_tokens: int | None
    """As the provider reported them. null: it did not."""
    hold: int | None
    """Microdollars that were held while it ran. null: nothing was held."""
    cost: int | None
    """Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it."""
    overrun: int
    """Microdollars beyond the hold, which no limit was charged."""
    price_list: PriceListOfCall | None
    """The list that priced it, as `GET /v1/models` names it. null: no list."""
    knowledge: str | None
    """The version of what was known of the provider when it was bounded, as `/readyz` names it: `source:id`. null for MCP."""
    refusal: RefusalOfCall | None
    """How it was refused. null: it was not."""
    price_lines: list[PriceLine] | None
    """How the cost follows from the usage. Their sum, rounded up once, is `cost` + `overrun`. null: the cost does not follow from a usage (a call that the provider refused, or one that is charged its hold), the usage contradicts itself, it is a batch of MCP calls of more than 20 prices, or a gateway before this field served it."""
    refunds: list[Refund]
    """Its refunds, oldest first."""

class PriceLine(TypedDict):
    unit: str
    """Tokens of one kind without those of other lines (`input_tokens`, `cache_read_tokens`, …), another unit that is billed (`web_searches`), `calls` of MCP tools, or `other` for roundings and rules of the price list that are no rate."""
    count: int
    rate: int
    """Microdollars for a million tokens, or for each of another unit."""

class Refund(TypedDict):
    settled_at: int
    """Unix time in whole seconds."""
    uses: int
    cost: int | None
    """Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it."""

class SimilarCalls(TypedDict):
    data: list[Call]
    """Newest first, without the call itself; at most the 100 newest."""

SearchKind: TypeAlias = Literal["external_user", "session"]

class SearchAnswer(TypedDict):
    data: list[Named]
    """Users first: those whose names begin with the text, then the others by name. Then sessions, newest first."""
    complete: bool
    """false: there may be more names that have this part."""

class Named(TypedDict):
    kind: SearchKind
    id: str
    """The id of a session. A user has its name as its id."""
    name: str

AuditAction: TypeAlias = Literal["account.created", "account.changed", "account.suspended", "account.resumed", "account.deleted", "api_key.created", "api_key.changed", "api_key.revoked", "virtual_key.created", "virtual_key.changed", "virtual_key.rotated", "virtual_key.deleted", "webhook.created", "webhook.changed", "webhook.deleted", "webhook.secret_rotated", "webhook.enabled", "webhook.tested", "delivery.replayed", "grant.changed", "session.changed", "budget.created", "budget.changed", "budget.deleted", "alert.created", "alert.changed", "alert.deleted", "alert.tested", "urls.revoked", "console.signed_in"]

AuditTargetKind: TypeAlias = Literal["account", "api_key", "virtual_key", "webhook", "delivery", "grant", "session", "external_user", "external_session", "budget", "alert"]

class AuditPage(TypedDict):
    data: list[AuditEntry]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class AuditEntry(TypedDict):
    id: str
    at: int
    """Unix time in whole seconds."""
    actor: str
    """The one who made the change: the id of an API key, `cli` for the command line, or `issuer` for the key of `BOOTSTRAP_API_KEY`."""
    action: AuditAction
    target: AuditTarget
    request_id: str | None
    """The `x-request-id` of the answer. null: it was no request."""
    remote_address: str | None
    """The other end of the issuer's connection: the address of the proxy if there is one. null: it was no request."""
    before: AuditState | None
    """The changed fields as they were. null: there was nothing before, or the API key lacks the scope that reads such a target."""
    after: AuditState | None
    """The changed fields as they are since. null: nothing is left, or the API key lacks the scope that reads such a target."""

class AuditTarget(TypedDict):
    kind: AuditTargetKind
    id: str

AuditState: TypeAlias = dict[str, Any]

class Models(TypedDict):
    lists: list[PriceList]
    """The lists in use. The first that prices a model decides."""
    data: list[PricedModel]

class PriceList(TypedDict):
    source: PriceSource
    id: str
    """Changes with the content of the list."""
    date: str
    """The day of the bundled list's release, or on which the operator's list was first read."""
    waits: bool
    """The list has large drops that wait for the operator. Until then its prices count only where they are higher."""

PriceSource: TypeAlias = Literal["providers_file", "file", "url", "bundled"]
"""`providers_file`: `PROVIDERS_FILE`. `file`, `url`: the list of `PRICES_FILE` or `PRICES_URL`. `bundled`: the list that ships with Presign."""

class PricedModel(TypedDict):
    provider: str
    model: str
    source: PriceSource
    date: str | None
    """The date of the list. null: `PROVIDERS_FILE`, which has none."""
    rates: Rates

Rates: TypeAlias = dict[str, int]
"""The highest rate of each unit over all tiers and the next 24 hours, by which calls are held: microdollars for a million tokens, or for one of any other unit."""

class Limits(TypedDict):
    api_key: ApiKeyOfRequest
    account: AccountLimits
    account_name: str
    """The name of the account of the API key."""
    usage_metadata: list[str]
    """The keys of `metadata` by which usage is summed: `USAGE_METADATA` of the operator."""
    presign: PresignLimits | None
    """`POST /v1/presign` with this API key. null: it may not issue such URLs."""
    mcp_presign: McpPresignLimits | None
    """`POST /v2/mcp-presign` with this API key. null: it may not issue bundles."""
    requests: RequestLimits

class ApiKeyOfRequest(TypedDict):
    """The API key of the request."""
    id: str
    name: str
    scopes: list[Scope]
    expires_at: int | None
    """Unix time in whole seconds; null: never."""
    requests_per_minute: int
    """Requests that it may make in a minute."""
    policy: KeyPolicy | None
    """The URLs that it may issue. null: all."""

Scope: TypeAlias = Literal["presign", "read", "admin", "operator"]

class KeyPolicy(TypedDict):
    providers: NotRequired[list[str]]
    """The providers. mcp stands for MCP servers."""
    paths: NotRequired[list[str]]
    """Each path of a URL must be one of these, or match one in which * stands for any characters except /."""
    models: NotRequired[list[str]]
    """The models. The gateway refuses every other model on each URL of the key."""
    max_body_bytes: NotRequired[int]
    """The max_body_bytes of each URL of an LLM provider. A request can only lower it."""
    allowed_fields: NotRequired[list[str]]
    """The top-level fields of the bodies of each URL of an LLM provider, in addition to those of config. A request can only leave some out, and its config can set no other field."""
    bind: NotRequired[Bind]
    sockets: NotRequired[bool]
    """false: no URL can be opened as a WebSocket. true: each URL of an LLM provider must be issued with `sockets`."""
    virtual_keys: NotRequired[list[str]]
    """A URL must use one of these virtual keys of the account, so client_api_key is refused."""
    mcp_hosts: NotRequired[list[str]]
    """The hosts of MCP servers, with the port if it is not the default of the scheme."""
    required: NotRequired[list[LimitName]]
    """Limits that each URL must have, of any size."""
    config: NotRequired[CallConfig]
    """Set in each URL. Neither the request nor its virtual key can change these settings."""
    refuse_warnings: NotRequired[bool]
    """true: a URL that would be issued with `warnings` is refused with 400 instead."""
    external_user: NotRequired[str]
    """The external_user of each URL."""
    highest: NotRequired[HighestLimits]

LimitName: TypeAlias = Literal["cost_limit", "max_uses", "calls_per_minute", "calls_per_day", "concurrent_calls", "tokens_per_minute"]

class HighestLimits(TypedDict):
    cost_limit: NotRequired[int]
    """Microdollars. A URL must have a cost_limit."""
    max_uses: NotRequired[int]
    """Calls. A URL must have a max_uses."""
    calls_per_minute: NotRequired[int]
    """A URL must have a calls_per_minute."""
    calls_per_day: NotRequired[int]
    """A URL must have a calls_per_day."""
    concurrent_calls: NotRequired[int]
    """A URL must have a concurrent_calls."""
    tokens_per_minute: NotRequired[int]
    """A URL of an LLM provider must have a tokens_per_minute."""
    expires_in: NotRequired[int]
    """Seconds. A request without expires_in gets one hour, or this if it is shorter."""

class AccountLimits(TypedDict):
    """The most that the account may have. null: no limit."""
    api_keys: int | None
    """API keys that are neither revoked nor expired."""
    sessions: int | None
    """Sessions with a URL that has neither expired nor been revoked."""
    urls_per_minute: int | None
    """URLs and bundles that its API keys issue in a minute."""
    cost_limit: int | None
    """The highest cost_limit of a URL or a bundle, in microdollars. Each must then have one."""

class PresignLimits(TypedDict):
    expires_in: LimitRange
    """Seconds."""
    cost_limit: LimitRange
    """Microdollars."""
    max_uses: LimitRange
    """Calls."""
    calls_per_minute: LimitRange
    calls_per_day: LimitRange
    concurrent_calls: LimitRange
    tokens_per_minute: LimitRange
    paths: int
    """Paths of a URL."""
    path_bytes: int
    """Bytes of all paths together."""
    models: int
    """Entries of `models`."""
    config_bytes: int
    """Bytes of `config` as JSON."""
    metadata_bytes: int
    """Bytes of `metadata` as JSON."""
    external_id_chars: int
    """Characters of `external_session` and of `external_user`."""

class LimitRange(TypedDict):
    minimum: int
    maximum: int
    default: int | None
    """The value of a request without the field. null: no limit."""
    required: bool
    """Whether a request without the field is refused."""

class McpPresignLimits(TypedDict):
    expires_in: LimitRange
    """Seconds."""
    cost_limit: LimitRange
    """Microdollars."""
    max_uses: LimitRange
    """Calls."""
    calls_per_minute: LimitRange
    calls_per_day: LimitRange
    concurrent_calls: LimitRange
    servers: int
    """Servers of a bundle."""
    tools: int
    """Entries of `tools` of a server."""
    metadata_bytes: int
    """Bytes of `metadata` as JSON."""
    external_id_chars: int
    """Characters of `external_session` and of `external_user`."""

class RequestLimits(TypedDict):
    """Every request to this API."""
    body_bytes: int
    """Bytes of a body."""
    body_depth: int
    """Levels that a body may nest."""
    body_values: int
    """Values and names in a body."""
    page_default: int
    """Entries of a page without `limit`."""
    page_maximum: int
    """The largest `limit` of a list."""
    usage_groups: int
    """The largest `limit` of `GET /v1/usage`."""
    idempotency_key_seconds: int
    """How long an `Idempotency-Key` is remembered."""
    webhooks: int
    """Endpoints of an account."""
    alerts: int
    """Alerts of an account."""

class VirtualKeyRequest(TypedDict):
    provider: str
    """The provider whose key it is."""
    name: str
    """Your name for it."""
    key: str
    """The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored, and no answer shows any part of it."""
    config: NotRequired[CallConfig | None]
    """As config of POST /v1/presign, whose fields take precedence over these."""
    budget: NotRequired[VirtualKeyBudgetRequest | None]
    """Limits over all URLs issued with it, in addition to the limits of each URL. Left out: none. A change can set them later."""

class VirtualKeyBudgetRequest(TypedDict):
    max_uses: NotRequired[int | None]
    """Calls over all its URLs. -1: unlimited."""
    cost_limit: NotRequired[int | None]
    """Microdollars over all its URLs."""

class VirtualKey(TypedDict):
    id: str
    """The value for virtual_key of POST /v1/presign."""
    name: str
    provider: str
    config: CallConfig | None
    budget: Budget
    """Its limits, and the uses and spending of all its URLs."""
    version: int
    """1. Every rotation adds 1."""
    revision: int
    """1. Every change of its name, config or budget adds 1."""
    created_at: int
    """Unix time in whole seconds."""
    revoked_at: int | None
    """Unix time in whole seconds; null: not deleted."""

class VirtualKeyLiveFigures(TypedDict):
    used: int
    spent: int
    held: int

class BudgetSettled(TypedDict):
    """Uses and microdollars in the ledger."""
    used: int
    spent: int

class Budget(TypedDict):
    max_uses: int | None
    """null: no limit."""
    cost_limit: int | None
    """Microdollars; null: no limit."""
    settled: BudgetSettled
    """Uses and microdollars in the ledger."""
    live: VirtualKeyLiveFigures | None
    """Running calls included; null when Redis does not answer."""

class VirtualKeyPage(TypedDict):
    data: list[VirtualKey]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class VirtualKeyChange(TypedDict):
    name: NotRequired[str]
    """Your name for it."""
    config: NotRequired[CallConfig | None]
    """Replaces all of it, for URLs that are issued from now on. null: none."""
    budget: NotRequired[VirtualKeyBudgetChange | None]
    """The limits of its budget. null: none. The counted figures stay."""

class VirtualKeyBudgetChange(TypedDict):
    max_uses: NotRequired[int | None]
    """Calls over all its URLs, those that were made included. null, -1: unlimited. 0: no call passes."""
    cost_limit: NotRequired[int | None]
    """Microdollars over all its URLs, those that are spent included. null: no limit."""

class RotationRequest(TypedDict):
    key: str
    """The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored, and no answer shows any part of it."""

class ApiKeyRequest(TypedDict):
    name: str
    """Your name for it."""
    scopes: list[Scope]
    """presign: issue and revoke URLs. read: read sessions, usage, virtual keys and the audit log. admin: everything in the account. operator: create, suspend and delete accounts."""
    expires_in: NotRequired[int | None]
    """Validity in seconds. Left out: it does not expire."""
    requests_per_minute: NotRequired[int | None]
    """How many requests it may make in a minute. Left out: the operator's default."""
    policy: NotRequired[KeyPolicyRequest | None]
    """The URLs that it may issue. Not for a key with the scope admin or operator, which could create another key. Left out: all."""

class KeyPolicyRequest(TypedDict):
    providers: NotRequired[list[str] | None]
    """The providers. mcp stands for MCP servers."""
    paths: NotRequired[list[str] | None]
    """Each path of a URL must be one of these, or match one in which * stands for any characters except /."""
    models: NotRequired[list[str] | None]
    """The models. The gateway refuses every other model on each URL of the key."""
    max_body_bytes: NotRequired[int | None]
    """The max_body_bytes of each URL of an LLM provider. A request can only lower it."""
    allowed_fields: NotRequired[list[str] | None]
    """The top-level fields of the bodies of each URL of an LLM provider, in addition to those of config. A request can only leave some out, and its config can set no other field."""
    bind: NotRequired[BindRequest | None]
    """The bind of each URL. A request can only leave origins out, and make ranges smaller."""
    sockets: NotRequired[bool | None]
    """false: no URL can be opened as a WebSocket. true: each URL of an LLM provider must be issued with `sockets`."""
    virtual_keys: NotRequired[list[str] | None]
    """A URL must use one of these virtual keys of the account, so client_api_key is refused."""
    mcp_hosts: NotRequired[list[str] | None]
    """The hosts of MCP servers, with the port if it is not the default of the scheme."""
    required: NotRequired[list[LimitName] | None]
    """Limits that each URL must have, of any size."""
    config: NotRequired[CallConfig | None]
    """Set in each URL. Neither the request nor its virtual key can change these settings."""
    refuse_warnings: NotRequired[bool | None]
    """true: a URL that would be issued with `warnings` is refused with 400 instead."""
    external_user: NotRequired[str | None]
    """The external_user of each URL."""
    highest: NotRequired[HighestLimitsRequest | None]
    """The highest limits of a URL. A URL without such a limit is refused."""

class HighestLimitsRequest(TypedDict):
    cost_limit: NotRequired[int | None]
    """Microdollars. A URL must have a cost_limit."""
    max_uses: NotRequired[int | None]
    """Calls. A URL must have a max_uses."""
    calls_per_minute: NotRequired[int | None]
    """A URL must have a calls_per_minute."""
    calls_per_day: NotRequired[int | None]
    """A URL must have a calls_per_day."""
    concurrent_calls: NotRequired[int | None]
    """A URL must have a concurrent_calls."""
    tokens_per_minute: NotRequired[int | None]
    """A URL of an LLM provider must have a tokens_per_minute."""
    expires_in: NotRequired[int | None]
    """Seconds. A request without expires_in gets one hour, or this if it is shorter."""

class NewApiKey(TypedDict):
    id: str
    name: str
    scopes: list[Scope]
    hint: str
    """Its first and last characters, to recognise it. Only … for a key that the issuer did not make."""
    created_at: int
    """Unix time in whole seconds."""
    expires_at: int | None
    """Unix time in whole seconds; null: never."""
    revoked_at: int | None
    """Unix time in whole seconds; null: not revoked."""
    requests_per_minute: int | None
    """null: the operator's default."""
    policy: KeyPolicy | None
    """The URLs that it may issue. null: all."""
    revision: int
    """1. Every change adds 1."""
    last_used_at: float | None
    """Unix time in seconds, to the minute; null: never used."""
    key: str
    """The key. Only this answer shows it: the issuer stores only its hash."""

class ApiKeyPage(TypedDict):
    data: list[ApiKey]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class ApiKey(TypedDict):
    id: str
    name: str
    scopes: list[Scope]
    hint: str
    """Its first and last characters, to recognise it. Only … for a key that the issuer did not make."""
    created_at: int
    """Unix time in whole seconds."""
    expires_at: int | None
    """Unix time in whole seconds; null: never."""
    revoked_at: int | None
    """Unix time in whole seconds; null: not revoked."""
    requests_per_minute: int | None
    """null: the operator's default."""
    policy: KeyPolicy | None
    """The URLs that it may issue. null: all."""
    revision: int
    """1. Every change adds 1."""
    last_used_at: float | None
    """Unix time in seconds, to the minute; null: never used."""

class ApiKeyChange(TypedDict):
    name: NotRequired[str]
    """Your name for it."""
    scopes: NotRequired[list[Scope]]
    """Some of the scopes that it has. A new key can have others."""
    expires_at: NotRequired[int | None]
    """When it expires, in Unix seconds. null: never."""
    requests_per_minute: NotRequired[int | None]
    """How many requests it may make in a minute. null: the operator's default."""
    policy: NotRequired[KeyPolicyRequest | None]
    """The URLs that it may issue from now on, instead of the policy that it had. null: all."""

class AccountRequest(TypedDict):
    name: str
    """Your name for it."""
    limits: NotRequired[AccountLimitsChange | None]
    """The most that the account may have. Left out: no limits."""

class AccountLimitsChange(TypedDict):
    """The most that the account may have. null removes a limit."""
    api_keys: NotRequired[int | None]
    """API keys that are neither revoked nor expired."""
    sessions: NotRequired[int | None]
    """Sessions with a URL that has neither expired nor been revoked."""
    urls_per_minute: NotRequired[int | None]
    """URLs and bundles that its API keys issue in a minute."""
    cost_limit: NotRequired[int | None]
    """The highest cost_limit of a URL or a bundle, in microdollars. Each must then have one."""

class NewAccount(TypedDict):
    id: str
    name: str
    created_at: int
    """Unix time in whole seconds."""
    suspended_at: int | None
    """Unix time in whole seconds; null: not suspended."""
    deleted_at: int | None
    """Unix time in whole seconds; null: not deleted."""
    limits: AccountLimits
    revision: int
    """1. Every change of its name or limits adds 1."""
    api_key: NewApiKey

class AccountPage(TypedDict):
    data: list[ListedAccount]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class ListedAccount(TypedDict):
    id: str
    name: str
    created_at: int
    """Unix time in whole seconds."""
    suspended_at: int | None
    """Unix time in whole seconds; null: not suspended."""
    deleted_at: int | None
    """Unix time in whole seconds; null: not deleted."""
    limits: AccountLimits
    revision: int
    """1. Every change of its name or limits adds 1."""
    usage: NotRequired[AccountUsage]
    """With `include=usage` only."""

class AccountUsage(TypedDict):
    this_month: AccountMonth
    """From the beginning of the month in UTC until now."""
    last_month: AccountMonth | None
    """The whole month before. null: its sums are deleted."""
    last_call_at: int | None
    """Unix time in whole seconds; null: no call is in the ledger."""
    live_api_keys: int
    """API keys that are neither revoked nor expired."""
    live_urls: int
    """URLs that are neither revoked nor expired, counted up to 10000."""

AccountMonth = TypedDict(
    "AccountMonth",
    {
        "from": "int",
        "to": "int",
        "calls": "int",
        "cost": "int",
    },
)

class Account(TypedDict):
    id: str
    name: str
    created_at: int
    """Unix time in whole seconds."""
    suspended_at: int | None
    """Unix time in whole seconds; null: not suspended."""
    deleted_at: int | None
    """Unix time in whole seconds; null: not deleted."""
    limits: AccountLimits
    revision: int
    """1. Every change of its name or limits adds 1."""

class AccountChange(TypedDict):
    name: NotRequired[str]
    """Your name for it."""
    limits: NotRequired[AccountLimitsChange]

class BudgetRequest(TypedDict):
    name: NotRequired[str | None]
    """Your name for it. No holder sees it."""
    scope: BudgetScopeRequest
    """The URLs that it covers: those that are issued from now on."""
    max_uses: NotRequired[int | None]
    """Calls in a window. -1: unlimited."""
    cost_limit: NotRequired[int | None]
    """Microdollars in a window."""
    tokens: NotRequired[int | None]
    """Tokens of input and output in a window. Calls of MCP servers use none."""
    window: NotRequired[BudgetWindow]
    """How long its figures count. lifetime: for good."""
    time_zone: NotRequired[str]
    """Where days, weeks and months begin: a name in the IANA database."""
    anchor: NotRequired[int | None]
    """A time at which a window begins, in Unix seconds. Left out: windows begin with the hour, the day, Monday or the month."""
    thresholds: NotRequired[list[int]]
    """Percents of each limit at which `budget.threshold` is sent. Empty: none."""
    visible: NotRequired[bool | None]
    """Whether holders of its URLs see its limits, what is left of them and when they reset; it then lowers output bounds, too. Left out: true for a scope of `external_user`, else false."""

MetadataScope: TypeAlias = dict[str, str]

class BudgetScopeRequest(TypedDict):
    account: NotRequired[Literal[True] | None]
    """All URLs of the account."""
    api_key: NotRequired[str | None]
    """URLs that this API key issues."""
    virtual_key: NotRequired[str | None]
    """URLs of this virtual key."""
    external_user: NotRequired[str | None]
    """URLs with this `external_user`. `*`: each user gets a budget with the first URL that names the user."""
    metadata: NotRequired[MetadataScope | None]
    """URLs whose `metadata` has this key with exactly this text. `*`: each value gets a budget with the first URL that has it."""

BudgetWindow: TypeAlias = Literal["lifetime", "hour", "day", "week", "month"]

class SharedBudget(TypedDict):
    id: str
    kind: BudgetKind
    name: str | None
    scope: BudgetScope
    template: str | None
    """Id of the template that made it. null: POST did."""
    max_uses: int | None
    """Calls in a window. null: no limit."""
    cost_limit: int | None
    """Microdollars in a window. null: no limit."""
    tokens: int | None
    """Tokens of input and output in a window. null: no limit."""
    thresholds: list[int]
    """Percents of each limit at which `budget.threshold` is sent."""
    visible: bool
    """Whether holders of its URLs see it."""
    window: BudgetWindow
    time_zone: str
    anchor: int | None
    """Unix time in seconds. null: none."""
    revision: int
    """1. Every change adds 1."""
    current: CurrentWindow | None
    """The present window. null: no call has drawn on it, or it is a template."""
    created_at: int
    """It covers URLs that were issued later. Unix time in seconds."""
    deleted_at: int | None
    """null: not deleted."""

BudgetKind: TypeAlias = Literal["budget", "template"]
"""template: it makes a budget for each user or value, and has no figures of its own."""

class BudgetScope(TypedDict):
    """Exactly one field."""
    account: NotRequired[Literal[True]]
    api_key: NotRequired[str]
    virtual_key: NotRequired[str]
    external_user: NotRequired[str]
    metadata: NotRequired[dict[str, str]]

class CurrentWindow(TypedDict):
    starts_at: int
    """Unix time in whole seconds."""
    ends_at: int | None
    """null: it has no end."""
    settled: SettledOfWindow
    live: LiveFiguresOfWindow | None
    """Running calls included. null: Redis does not answer."""

class SettledOfWindow(TypedDict):
    """Calls, microdollars and tokens in the ledger."""
    used: int
    spent: int
    tokens: int

class LiveFiguresOfWindow(TypedDict):
    used: int
    spent: int
    held: int
    tokens: int
    tokens_held: int

class SharedBudgetPage(TypedDict):
    data: list[SharedBudget]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class BudgetChange(TypedDict):
    name: NotRequired[str | None]
    """null: none."""
    max_uses: NotRequired[int | None]
    """Calls in a window, those of this window included. null, -1: unlimited. 0: no call passes."""
    cost_limit: NotRequired[int | None]
    """Microdollars in a window, those of this window included. null: no limit."""
    tokens: NotRequired[int | None]
    """Tokens in a window, those of this window included. null: no limit."""
    thresholds: NotRequired[list[int]]
    """Empty: none."""
    visible: NotRequired[bool]
    """Whether holders of its URLs see it."""

class WebhookRequest(TypedDict):
    url: str
    """The https URL that events are sent to by POST. Its address must be public."""
    format: NotRequired[WebhookFormat]
    """`slack`: the url is an incoming webhook of Slack. It gets the messages of alerts that name it."""
    events: NotRequired[list[EventType] | None]
    """Types of events to send. Left out: all except audit.entry. Empty: only those of alerts that name it. A Slack endpoint has none."""
    description: NotRequired[str | None]
    """Your description of it."""

WebhookFormat: TypeAlias = Literal["standard", "slack"]

EventType: TypeAlias = Literal["session.exhausted", "grant.threshold", "virtual_key.threshold", "budget.threshold", "budget.exhausted", "budget.reset", "grant.revoked", "grant.expired", "usage.settled", "audit.entry"]

class WebhookWithSecret(TypedDict):
    id: str
    format: WebhookFormat
    url: str
    """A Slack endpoint shows only the host: the rest of its URL is a secret."""
    events: list[EventType] | None
    """null: all except audit.entry. Empty: only those of alerts that name it."""
    description: str | None
    created_at: int
    """Unix time in whole seconds."""
    previous_secret_expires_at: int | None
    """Unix time in seconds. Until then, the previous secret also signs."""
    status: WebhookStatus
    disabled_reason: DisabledReason | None
    """`gone`: it answered 410. `failing`: every attempt failed for days."""
    disabled_at: int | None
    failing_since: int | None
    """Unix time in seconds of the first failure since the last success. null: no attempt failed since then."""
    revision: int
    """1. Every change of its url, events or description adds 1."""
    secret: str | None
    """Only this answer shows it: `whsec_` and base64, the form that the libraries of Standard Webhooks accept. null: requests to Slack are not signed."""

WebhookStatus: TypeAlias = Literal["enabled", "disabled"]
"""`disabled`: it receives nothing until you enable it."""

DisabledReason: TypeAlias = Literal["gone", "failing"]

class WebhookPage(TypedDict):
    data: list[Webhook]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class Webhook(TypedDict):
    id: str
    format: WebhookFormat
    url: str
    """A Slack endpoint shows only the host: the rest of its URL is a secret."""
    events: list[EventType] | None
    """null: all except audit.entry. Empty: only those of alerts that name it."""
    description: str | None
    created_at: int
    """Unix time in whole seconds."""
    previous_secret_expires_at: int | None
    """Unix time in seconds. Until then, the previous secret also signs."""
    status: WebhookStatus
    disabled_reason: DisabledReason | None
    """`gone`: it answered 410. `failing`: every attempt failed for days."""
    disabled_at: int | None
    failing_since: int | None
    """Unix time in seconds of the first failure since the last success. null: no attempt failed since then."""
    revision: int
    """1. Every change of its url, events or description adds 1."""

class WebhookChange(TypedDict):
    url: NotRequired[str]
    """Where events are sent from now on, also those whose delivery is under way. The secret stays."""
    events: NotRequired[list[EventType] | None]
    """Types of events that happen from now on. null: all except audit.entry."""
    description: NotRequired[str | None]
    """Your description of it. null: none."""

class Delivery(TypedDict):
    id: str
    event_id: str
    """The value of the header `webhook-id`, the same at every attempt and after a replay."""
    type: DeliveryType
    status: DeliveryStatus
    attempts: int
    """Attempts since it was created or replayed."""
    last_status: int | None
    """HTTP status of the last attempt's answer; null when none came."""
    last_error: DeliveryError | None
    """Why the last attempt failed; null when it did not."""
    next_try_at: int | None
    """Unix time in seconds; null when no further attempt is made."""
    created_at: int
    """Unix time in whole seconds."""
    delivered_at: int | None

DeliveryType: TypeAlias = Literal["session.exhausted", "grant.threshold", "virtual_key.threshold", "budget.threshold", "budget.exhausted", "budget.reset", "grant.revoked", "grant.expired", "usage.settled", "audit.entry", "alert.fired", "alert.resolved", "webhook.test"]

DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]

DeliveryError: TypeAlias = Literal["http_status", "timeout", "unreachable", "address_not_public", "secret_unreadable", "endpoint_disabled"]

class DeliveryPage(TypedDict):
    data: list[Delivery]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class AlertRequest(TypedDict):
    name: str
    """Your name for it. Its messages begin with it."""
    condition: AlertConditionRequest
    """When it fires."""
    webhook: NotRequired[str | None]
    """Id of the endpoint that gets its events. Left out: it shows in the console alone."""
    enabled: NotRequired[bool]
    """Whether it is evaluated."""

class BudgetCondition(TypedDict):
    budget: str
    """Id of a shared budget, and of no template."""
    percent: int
    """It fires once so much of the fullest of its limits is settled."""

class SpendCondition(TypedDict):
    window: AlertWindow
    """The window that calls are added up in. It counts from its beginning."""
    time_zone: NotRequired[str]
    """Where days begin: a name in the IANA database."""
    amount: int
    """It fires at so many microdollars of settled calls."""

AlertWindow: TypeAlias = Literal["hour", "day"]

class SpendJumpCondition(TypedDict):
    window: AlertWindow
    """The window that calls are added up in. It counts from its beginning."""
    time_zone: NotRequired[str]
    """Where days begin: a name in the IANA database."""
    factor: float
    """It fires at so many times the mean of the 7 days before, or of the same hour of the 7 days before."""
    at_least: int
    """Below so many microdollars it does not fire."""

class FailuresCondition(TypedDict):
    percent: int
    """It fires once so many percent of the calls failed, and neither their holder nor their issuer was the cause."""
    calls: NotRequired[int]
    """With fewer calls it does not fire."""
    minutes: NotRequired[int]
    """Calls that settled in the last minutes count."""
    provider: NotRequired[str | None]
    """Only calls to this provider. `mcp`: calls of MCP servers. Left out: all."""

class AlertConditionRequest(TypedDict):
    budget: NotRequired[BudgetCondition | None]
    """A part of a shared budget is settled."""
    spend: NotRequired[SpendCondition | None]
    """Calls of an hour or a day cost so much."""
    spend_jump: NotRequired[SpendJumpCondition | None]
    """They cost much more than before."""
    errors: NotRequired[FailuresCondition | None]
    """Calls fail."""

class Alert(TypedDict):
    id: str
    name: str
    condition: AlertCondition
    webhook: str | None
    """Id of the endpoint that gets its events. null: none, or it was deleted."""
    enabled: bool
    firing_since: int | None
    """Unix time in whole seconds; null: it does not fire."""
    value: float | None
    """The last figure. Microdollars for spend, else percent. null: there is none yet."""
    threshold: float | None
    """The figure at which it fires. null: there is none yet."""
    checked_at: int | None
    """Unix time in whole seconds; null: it was not evaluated yet."""
    revision: int
    """1. Every change adds 1."""
    created_at: int
    """Unix time in whole seconds."""

class AlertCondition(TypedDict):
    """Exactly one field."""
    budget: NotRequired[AlertOfBudget]
    spend: NotRequired[AlertOfSpend]
    spend_jump: NotRequired[AlertOfSpendJump]
    errors: NotRequired[AlertOfFailures]

class AlertOfBudget(TypedDict):
    budget: str
    percent: int

class AlertOfSpend(TypedDict):
    window: AlertWindow
    time_zone: str
    amount: int

class AlertOfSpendJump(TypedDict):
    window: AlertWindow
    time_zone: str
    factor: float
    at_least: int

class AlertOfFailures(TypedDict):
    percent: int
    calls: int
    minutes: int
    provider: NotRequired[str]

class AlertPage(TypedDict):
    data: list[Alert]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class AlertChange(TypedDict):
    name: NotRequired[str]
    """Your name for it."""
    condition: NotRequired[AlertConditionRequest]
    """Replaces all of it. If the alert fires, it is resolved first."""
    webhook: NotRequired[str | None]
    """Id of the endpoint that gets its events from now on. null: none."""
    enabled: NotRequired[bool]
    """false: it is evaluated no more. If it fires, it is resolved."""

class AlertFiringPage(TypedDict):
    data: list[AlertFiring]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page. null: this is the last page."""

class AlertFiring(TypedDict):
    id: str
    """Also the `webhook-id` of its `alert.fired`."""
    fired_at: int
    """Unix time in whole seconds."""
    resolved_at: int | None
    """Unix time in whole seconds; null: it still fires."""
    value: float
    """Microdollars for spend, else percent."""
    threshold: float
    """Microdollars for spend, else percent."""
    starts_at: int | None
    """Unix time in whole seconds; null: the window of the budget has no beginning."""
    ends_at: int | None
    """Unix time in whole seconds; null: the window of the budget has no end."""
    delivery: AlertDelivery | None
    """How `alert.fired` was delivered. null: to no endpoint."""

class AlertDelivery(TypedDict):
    status: DeliveryStatus
    attempts: int
    last_status: int | None
    last_error: DeliveryError | None

class PublicKeys(TypedDict):
    keys: list[PublicKey]

class PublicKey(TypedDict):
    kid: str
    public_key: str

class ErrorDetails(TypedDict):
    code: ErrorCode
    message: str
    """For people. It may be more precise than the table, and may change."""
    type: ErrorType
    param: str | None
    """The field or header at fault, as the caller wrote it."""
    request_id: str
    """Names the request in the log."""
    problems: NotRequired[list[FieldProblem]]
    """If several fields are wrong: all of them, at most 20. The first is also in `param` and `message`."""

ErrorCode: TypeAlias = Literal["invalid_request", "invalid_json", "unknown_provider", "unauthenticated", "token_invalid", "token_expired", "cost_limit_reached", "cost_limit_too_low", "token_limit_reached", "token_limit_too_low", "forbidden", "policy_forbids", "account_limit", "account_suspended", "grant_revoked", "uses_exhausted", "path_not_allowed", "method_not_allowed", "model_not_allowed", "origin_not_allowed", "address_not_allowed", "field_not_allowed", "tool_not_allowed", "argument_not_allowed", "not_found", "method_not_supported", "session_conflict", "idempotency_conflict", "last_admin_key", "own_account", "virtual_key_revoked", "grant_ended", "api_key_ended", "budget_deleted", "account_deleted", "budget_conflict", "revision_mismatch", "body_too_large", "unsupported_media_type", "sockets_not_allowed", "price_unknown", "cost_unbounded", "tokens_unbounded", "token_rate_too_low", "rate_limited", "daily_rate_limited", "token_rate_limited", "concurrency_limited", "cost_held", "tokens_held", "internal_error", "upstream_unreachable", "upstream_auth_failed", "overloaded", "limits_unavailable", "database_unavailable", "upstream_timeout"]
"""Stable: programs switch on it."""

ErrorType: TypeAlias = Literal["invalid_request_error", "authentication_error", "insufficient_quota", "permission_error", "not_found_error", "conflict_error", "rate_limit_error", "api_error"]
"""As SDKs of providers name it."""

class FieldProblem(TypedDict):
    param: str | None
    """The field or header at fault, as the caller wrote it."""
    message: str

class ErrorBody(TypedDict):
    error: ErrorDetails
