# Generated from docs/reference/openapi.json by `pnpm --filter @presign/client generate`. Do not edit.

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, overload

from typing_extensions import NotRequired, TypedDict, Unpack

from ._dollars import Dollars
from .models import (
    SessionStatus,
    SessionPage,
    SessionSummary,
    Pending,
    Session,
    GrantStatus,
    SessionChange,
    GrantChange,
    ChangedSession,
    GrantPage,
    Grant,
    ChangedGrant,
    LedgerOutcome,
    UsageReport,
    UsageDimension,
    UsageRow,
    HourDimension,
    UsageHours,
    Refusals,
    OutcomeFilter,
    CallPage,
    Call,
    CallWithRefunds,
    SimilarCalls,
    SearchKind,
    SearchAnswer,
    AuditAction,
    AuditTargetKind,
    AuditPage,
    AuditEntry,
    Models,
    Limits,
    VirtualKeyRequest,
    VirtualKey,
    VirtualKeyPage,
    VirtualKeyChange,
    RotationRequest,
    ApiKeyRequest,
    NewApiKey,
    ApiKeyPage,
    ApiKey,
    ApiKeyChange,
    AccountRequest,
    NewAccount,
    AccountPage,
    ListedAccount,
    AccountUsage,
    Account,
    AccountChange,
    BudgetRequest,
    SharedBudget,
    SharedBudgetPage,
    BudgetChange,
    WebhookRequest,
    WebhookWithSecret,
    WebhookPage,
    Webhook,
    WebhookChange,
    Delivery,
    DeliveryStatus,
    DeliveryPage,
    AlertRequest,
    Alert,
    AlertPage,
    AlertChange,
    AlertFiringPage,
    AlertFiring,
    PublicKeys,
)

class ListSessionsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    external_session: NotRequired[str | None]
    """Only sessions with a grant that was issued with this external_session."""
    external_user: NotRequired[str | None]
    """Only sessions with a grant that was issued with this external_user."""
    api_key: NotRequired[str | None]
    """Only sessions with a grant that this API key issued, by its id."""
    status: NotRequired[SessionStatus | None]
    """Left out: both."""

class RevokeSessionsQuery(TypedDict):
    external_session: NotRequired[str | None]
    """Revoke what was issued with this external_session."""
    external_user: NotRequired[str | None]
    """Revoke what was issued with this external_user."""
    api_key: NotRequired[str | None]
    """Revoke what this API key issued, by its id."""

class GetSessionQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""

class ListGrantsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    external_session: NotRequired[str | None]
    """Only those that were issued with this external_session."""
    external_user: NotRequired[str | None]
    """Only those that were issued with this external_user."""
    session_id: NotRequired[str | None]
    """Only those of this session."""
    api_key: NotRequired[str | None]
    """Only those that this API key issued, by its id."""
    status: NotRequired[GrantStatus | None]
    """Left out: all. A URL that has just used up a limit is found as `exhausted` once the ledger has its calls."""

class GetUsageQuery(TypedDict):
    from_: NotRequired[float | str | datetime | None]
    """Calls settled at this time or later. Left out: 30 days before `to`. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B), or a day, such as 2026-01-31, for its beginning in `timezone`."""
    to: NotRequired[float | str | datetime | None]
    """Calls settled before this time. Left out: now. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B), or a day, such as 2026-01-31, for its beginning in `timezone`."""
    timezone: NotRequired[str | None]
    """The time zone of `day` and `month`, and of a `from` and `to` that are days, by its IANA name."""
    group_by: NotRequired[list[UsageDimension] | None]
    """The dimensions to sum by, separated by commas: external_user, session_id, model, provider, virtual_key, api_key, server, tool, outcome, day, month, and `metadata.<key>` for a key of `USAGE_METADATA`. Left out: one total."""
    external_user: NotRequired[str | None]
    """Only calls of this external_user."""
    session_id: NotRequired[str | None]
    """Only calls of this session."""
    provider: NotRequired[str | None]
    """Only calls of this provider; `mcp` for MCP servers."""
    model: NotRequired[str | None]
    """Only calls of this model."""
    virtual_key: NotRequired[str | None]
    """Only calls with this virtual key, by its id."""
    server: NotRequired[str | None]
    """Only calls of this MCP server, by its name in the bundle."""
    tool: NotRequired[str | None]
    """Only calls of this MCP tool or method."""
    metadata: NotRequired[dict[str, str] | None]
    """Only calls of URLs with these values in their `metadata`, as `metadata[team]=red` or `metadata.team=red`. The operator declares the keys in `USAGE_METADATA`."""
    api_key: NotRequired[str | None]
    """Only calls of URLs that this API key issued, by its id."""
    outcome: NotRequired[LedgerOutcome | None]
    """Only calls that ended so, as `GET /v1/calls` has it."""
    request_id: NotRequired[str | None]
    """Only the call that answered with this `x-presign-request-id`."""
    limit: NotRequired[int | None]
    """The most groups to return."""
    top: NotRequired[int | None]
    """Only so many groups, those of the highest `cost`, the highest first. At the same cost more `calls` are first, then the order of a report without it. Needs `group_by`, and has no further pages."""

class GetUsageHoursQuery(TypedDict):
    from_: NotRequired[float | str | datetime | None]
    """Hours that begin at this time or later. Left out: 1 day before `to`. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)."""
    to: NotRequired[float | str | datetime | None]
    """Hours that begin before this time, at most 31 days after `from`. Left out: now. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)."""
    group_by: NotRequired[list[HourDimension] | None]
    """The dimensions to sum by in addition to the hour, separated by commas: provider, model, server."""
    provider: NotRequired[str | None]
    """Only calls of this provider; `mcp` for MCP servers."""
    model: NotRequired[str | None]
    """Only calls of this model."""
    server: NotRequired[str | None]
    """Only calls of this MCP server."""

class GetRefusalsQuery(TypedDict):
    days: NotRequired[int | None]
    """How many days (UTC) to read, the present one included."""

class ListCallsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    from_: NotRequired[float | str | datetime | None]
    """Calls settled at this time or later. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)."""
    to: NotRequired[float | str | datetime | None]
    """Calls settled before this time. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)."""
    external_user: NotRequired[str | None]
    """Only calls of this external_user."""
    session_id: NotRequired[str | None]
    """Only calls of this session."""
    grant_id: NotRequired[str | None]
    """Only calls of this grant."""
    api_key: NotRequired[str | None]
    """Only calls of URLs that this API key issued."""
    virtual_key: NotRequired[str | None]
    """Only calls with this virtual key."""
    provider: NotRequired[str | None]
    """Only calls of this provider; `mcp` for MCP servers."""
    model: NotRequired[str | None]
    """Only calls of this model."""
    server: NotRequired[str | None]
    """Only calls of this MCP server, by its name in the bundle."""
    tool: NotRequired[str | None]
    """Only calls of this MCP tool or method."""
    metadata: NotRequired[dict[str, str] | None]
    """Only calls of URLs with these values in their `metadata`, as `metadata[team]=red` or `metadata.team=red`. The operator declares the keys in `USAGE_METADATA`."""
    outcome: NotRequired[OutcomeFilter | None]
    """Only calls that ended so. `failed`: calls that the gateway admitted and that failed, whatever the cause. `refused`: calls that the gateway refused. `all`: these and all others in one list. Left out: all but refused ones."""
    failure: NotRequired[str | None]
    """Only calls that failed so: an error code, or one of the others of the field `failure`."""

class SearchQuery(TypedDict):
    contains: str | None
    """A part of the name. Upper and lower case are the same."""
    kind: NotRequired[SearchKind | None]
    """Only names of this kind."""
    limit: NotRequired[int | None]
    """The most names of each kind to return."""

class ListAuditQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    from_: NotRequired[float | str | datetime | None]
    """Changes at this time or later. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)."""
    to: NotRequired[float | str | datetime | None]
    """Changes before this time. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)."""
    actor: NotRequired[str | None]
    """Only changes by this API key, by its id, or by `cli` or `issuer`."""
    action: NotRequired[AuditAction | None]
    """Only changes of this kind."""
    target_kind: NotRequired[AuditTargetKind | None]
    """Only changes of something of this kind."""
    target_id: NotRequired[str | None]
    """Only changes of what has this id."""

class ListModelsQuery(TypedDict):
    provider: NotRequired[str | None]
    """Only models of this provider."""
    model: NotRequired[str | None]
    """Only this model, by any name that a list gives it. Needs `provider`."""

class ListVirtualKeysQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""

class ListApiKeysQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""

class ListAccountsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    include: NotRequired[Literal["usage"] | None]
    """`usage`: each account also has the answer of `GET /v1/accounts/{id}/usage`. Left out: the list takes less time."""

class ListBudgetsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    template: NotRequired[str | None]
    """Only the budgets that this template made."""
    external_user: NotRequired[str | None]
    """Only the budgets of this user."""

class ListWebhooksQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""

class ListDeliveriesQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""
    status: NotRequired[DeliveryStatus | None]
    """Left out: all."""

class ListAlertsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""

class ListFiringsQuery(TypedDict):
    limit: NotRequired[int | None]
    """The most entries to return."""

class Operations:
    def _send(self, method: str, path: str, values: Mapping[str, str], **parts: Any) -> Any:
        raise NotImplementedError

    def _each(self, path: str, values: Mapping[str, str], query: Mapping[str, Any]) -> Iterator[Any]:
        raise NotImplementedError

    def list_sessions(self, *, cursor: str | None = None, **fields: Unpack[ListSessionsQuery]) -> SessionPage:
        """List sessions, newest first, by external ids and status."""
        answer: SessionPage = self._send("GET", "/v1/sessions", {}, query={**fields, "cursor": cursor})
        return answer

    def sessions(self, **fields: Unpack[ListSessionsQuery]) -> Iterator[SessionSummary]:
        """List sessions, newest first, by external ids and status: the rows of all pages."""
        return self._each("/v1/sessions", {}, fields)

    def revoke_sessions(self, **fields: Unpack[RevokeSessionsQuery]) -> Pending | None:
        """Revoke all grants of one of your own users or sessions, or of an API key."""
        answer: Pending | None = self._send("DELETE", "/v1/sessions", {}, query={**fields})
        return answer

    def get_session(self, id: str, *, cursor: str | None = None, **fields: Unpack[GetSessionQuery]) -> Session:
        """Get a session and its grants, with their uses and spending."""
        answer: Session = self._send("GET", "/v1/sessions/{id}", {"id": id}, query={**fields, "cursor": cursor})
        return answer

    def change_session(self, id: str, *, if_revision: int | None = None, **fields: Unpack[SessionChange]) -> ChangedSession | Pending:
        """Name a session, set its metadata, or change all its live URLs."""
        answer: ChangedSession | Pending = self._send("PATCH", "/v1/sessions/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    def revoke_session(self, id: str) -> Pending | None:
        """Revoke a session and all its grants."""
        answer: Pending | None = self._send("DELETE", "/v1/sessions/{id}", {"id": id})
        return answer

    def list_grants(self, *, cursor: str | None = None, **fields: Unpack[ListGrantsQuery]) -> GrantPage:
        """List issued URLs with their limits, uses and spending, newest first."""
        answer: GrantPage = self._send("GET", "/v1/grants", {}, query={**fields, "cursor": cursor})
        return answer

    def grants(self, **fields: Unpack[ListGrantsQuery]) -> Iterator[Grant]:
        """List issued URLs with their limits, uses and spending, newest first: the rows of all pages."""
        return self._each("/v1/grants", {}, fields)

    def get_grant(self, id: str) -> Grant:
        """Get one issued URL with its limits, uses and spending."""
        answer: Grant = self._send("GET", "/v1/grants/{id}", {"id": id})
        return answer

    def change_grant(self, id: str, *, if_revision: int | None = None, cost_limit_usd: Dollars | None = None, **fields: Unpack[GrantChange]) -> ChangedGrant | Pending:
        """Raise, lower, extend or shorten an issued URL, or a bundle."""
        answer: ChangedGrant | Pending = self._send("PATCH", "/v1/grants/{id}", {"id": id}, body=fields, if_revision=if_revision, cost_limit_usd=cost_limit_usd)
        return answer

    def revoke_grant(self, id: str) -> Pending | None:
        """Revoke one issued URL, or a bundle with its servers."""
        answer: Pending | None = self._send("DELETE", "/v1/grants/{id}", {"id": id})
        return answer

    @overload
    def get_usage(self, *, format: Literal["csv"], cursor: str | None = None, **fields: Unpack[GetUsageQuery]) -> str: ...

    @overload
    def get_usage(self, *, format: Literal["json"] = "json", cursor: str | None = None, **fields: Unpack[GetUsageQuery]) -> UsageReport: ...

    def get_usage(self, *, format: str = "json", cursor: str | None = None, **fields: Unpack[GetUsageQuery]) -> str | UsageReport:
        """Sum settled calls over a range, as JSON or CSV."""
        answer: str | UsageReport = self._send("GET", "/v1/usage", {}, query={**fields, "cursor": cursor, "format": format})
        return answer

    def usage(self, **fields: Unpack[GetUsageQuery]) -> Iterator[UsageRow]:
        """Sum settled calls over a range, as JSON or CSV: the rows of all pages."""
        return self._each("/v1/usage", {}, fields)

    def get_usage_hours(self, **fields: Unpack[GetUsageHoursQuery]) -> UsageHours:
        """Error rate and percentiles of the times of calls, by the hour."""
        answer: UsageHours = self._send("GET", "/v1/usage/hours", {}, query={**fields})
        return answer

    def get_refusals(self, **fields: Unpack[GetRefusalsQuery]) -> Refusals:
        """Count refused calls by day and code."""
        answer: Refusals = self._send("GET", "/v1/refusals", {}, query={**fields})
        return answer

    @overload
    def list_calls(self, *, format: Literal["csv", "ndjson"], cursor: str | None = None, **fields: Unpack[ListCallsQuery]) -> str: ...

    @overload
    def list_calls(self, *, format: Literal["json"] = "json", cursor: str | None = None, **fields: Unpack[ListCallsQuery]) -> CallPage: ...

    def list_calls(self, *, format: str = "json", cursor: str | None = None, **fields: Unpack[ListCallsQuery]) -> str | CallPage:
        """List calls, newest first, with their tokens, hold, cost and end, or how they were refused."""
        answer: str | CallPage = self._send("GET", "/v1/calls", {}, query={**fields, "cursor": cursor, "format": format})
        return answer

    def calls(self, **fields: Unpack[ListCallsQuery]) -> Iterator[Call]:
        """List calls, newest first, with their tokens, hold, cost and end, or how they were refused: the rows of all pages."""
        return self._each("/v1/calls", {}, fields)

    def get_call(self, request_id: str) -> CallWithRefunds:
        """Get a call by the x-presign-request-id of its answer."""
        answer: CallWithRefunds = self._send("GET", "/v1/calls/{request_id}", {"request_id": request_id})
        return answer

    def list_similar_calls(self, request_id: str) -> SimilarCalls:
        """List the calls like one within 60 seconds of it."""
        answer: SimilarCalls = self._send("GET", "/v1/calls/{request_id}/similar", {"request_id": request_id})
        return answer

    def search(self, **fields: Unpack[SearchQuery]) -> SearchAnswer:
        """Find users and sessions by a part of their names."""
        answer: SearchAnswer = self._send("GET", "/v1/search", {}, query={**fields})
        return answer

    @overload
    def list_audit(self, *, format: Literal["csv", "ndjson"], cursor: str | None = None, **fields: Unpack[ListAuditQuery]) -> str: ...

    @overload
    def list_audit(self, *, format: Literal["json"] = "json", cursor: str | None = None, **fields: Unpack[ListAuditQuery]) -> AuditPage: ...

    def list_audit(self, *, format: str = "json", cursor: str | None = None, **fields: Unpack[ListAuditQuery]) -> str | AuditPage:
        """List changes, newest first: who made them, when, from where, before and after."""
        answer: str | AuditPage = self._send("GET", "/v1/audit", {}, query={**fields, "cursor": cursor, "format": format})
        return answer

    def audit(self, **fields: Unpack[ListAuditQuery]) -> Iterator[AuditEntry]:
        """List changes, newest first: who made them, when, from where, before and after: the rows of all pages."""
        return self._each("/v1/audit", {}, fields)

    def list_models(self, **fields: Unpack[ListModelsQuery]) -> Models:
        """List the models that have a price."""
        answer: Models = self._send("GET", "/v1/models", {}, query={**fields})
        return answer

    def get_limits(self) -> Limits:
        """Get the limits of your API key, and those of every request."""
        answer: Limits = self._send("GET", "/v1/limits", {})
        return answer

    def create_virtual_key(self, *, idempotency_key: str | None = None, **fields: Unpack[VirtualKeyRequest]) -> VirtualKey:
        """Store a provider's key under an id of its own."""
        answer: VirtualKey = self._send("POST", "/v1/virtual-keys", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    def list_virtual_keys(self, *, cursor: str | None = None, **fields: Unpack[ListVirtualKeysQuery]) -> VirtualKeyPage:
        """List virtual keys, newest first, with the use and spending of their budgets."""
        answer: VirtualKeyPage = self._send("GET", "/v1/virtual-keys", {}, query={**fields, "cursor": cursor})
        return answer

    def virtual_keys(self, **fields: Unpack[ListVirtualKeysQuery]) -> Iterator[VirtualKey]:
        """List virtual keys, newest first, with the use and spending of their budgets: the rows of all pages."""
        return self._each("/v1/virtual-keys", {}, fields)

    def get_virtual_key(self, id: str) -> VirtualKey:
        """Get a virtual key, with the use and spending of its budget."""
        answer: VirtualKey = self._send("GET", "/v1/virtual-keys/{id}", {"id": id})
        return answer

    def change_virtual_key(self, id: str, *, if_revision: int | None = None, **fields: Unpack[VirtualKeyChange]) -> VirtualKey | Pending:
        """Rename a virtual key, or change its config or its budget."""
        answer: VirtualKey | Pending = self._send("PATCH", "/v1/virtual-keys/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    def delete_virtual_key(self, id: str) -> Pending | None:
        """Delete a virtual key, and end all URLs issued with it."""
        answer: Pending | None = self._send("DELETE", "/v1/virtual-keys/{id}", {"id": id})
        return answer

    def rotate_virtual_key(self, id: str, *, idempotency_key: str | None = None, **fields: Unpack[RotationRequest]) -> VirtualKey | Pending:
        """Replace the provider's key of a virtual key."""
        answer: VirtualKey | Pending = self._send("POST", "/v1/virtual-keys/{id}/rotate", {"id": id}, body=fields, idempotency_key=idempotency_key)
        return answer

    def create_api_key(self, *, idempotency_key: str | None = None, **fields: Unpack[ApiKeyRequest]) -> NewApiKey:
        """Create an API key."""
        answer: NewApiKey = self._send("POST", "/v1/api-keys", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    def list_api_keys(self, *, cursor: str | None = None, **fields: Unpack[ListApiKeysQuery]) -> ApiKeyPage:
        """List API keys, newest first, without the keys themselves."""
        answer: ApiKeyPage = self._send("GET", "/v1/api-keys", {}, query={**fields, "cursor": cursor})
        return answer

    def api_keys(self, **fields: Unpack[ListApiKeysQuery]) -> Iterator[ApiKey]:
        """List API keys, newest first, without the keys themselves: the rows of all pages."""
        return self._each("/v1/api-keys", {}, fields)

    def get_api_key(self, id: str) -> ApiKey:
        """Get an API key, without the key itself."""
        answer: ApiKey = self._send("GET", "/v1/api-keys/{id}", {"id": id})
        return answer

    def change_api_key(self, id: str, *, if_revision: int | None = None, **fields: Unpack[ApiKeyChange]) -> ApiKey:
        """Rename an API key, or change its expiry, rate limit or policy, or take scopes from it."""
        answer: ApiKey = self._send("PATCH", "/v1/api-keys/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    def revoke_api_key(self, id: str) -> None:
        """Revoke an API key."""
        self._send("DELETE", "/v1/api-keys/{id}", {"id": id})

    def create_account(self, *, idempotency_key: str | None = None, **fields: Unpack[AccountRequest]) -> NewAccount:
        """Create an account with its first API key."""
        answer: NewAccount = self._send("POST", "/v1/accounts", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    def list_accounts(self, *, cursor: str | None = None, **fields: Unpack[ListAccountsQuery]) -> AccountPage:
        """List accounts, newest first."""
        answer: AccountPage = self._send("GET", "/v1/accounts", {}, query={**fields, "cursor": cursor})
        return answer

    def accounts(self, **fields: Unpack[ListAccountsQuery]) -> Iterator[ListedAccount]:
        """List accounts, newest first: the rows of all pages."""
        return self._each("/v1/accounts", {}, fields)

    def get_account(self, id: str) -> Account:
        """Get an account."""
        answer: Account = self._send("GET", "/v1/accounts/{id}", {"id": id})
        return answer

    def change_account(self, id: str, *, if_revision: int | None = None, **fields: Unpack[AccountChange]) -> Account:
        """Rename an account, or change its limits."""
        answer: Account = self._send("PATCH", "/v1/accounts/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    def delete_account(self, id: str) -> Pending | None:
        """Delete an account."""
        answer: Pending | None = self._send("DELETE", "/v1/accounts/{id}", {"id": id})
        return answer

    def get_account_usage(self, id: str) -> AccountUsage:
        """Get what an account spends this month and spent in the month before."""
        answer: AccountUsage = self._send("GET", "/v1/accounts/{id}/usage", {"id": id})
        return answer

    def suspend_account(self, id: str, *, idempotency_key: str | None = None) -> Pending | None:
        """Suspend an account."""
        answer: Pending | None = self._send("POST", "/v1/accounts/{id}/suspend", {"id": id}, idempotency_key=idempotency_key)
        return answer

    def resume_account(self, id: str, *, idempotency_key: str | None = None) -> Pending | None:
        """End the suspension of an account."""
        answer: Pending | None = self._send("POST", "/v1/accounts/{id}/resume", {"id": id}, idempotency_key=idempotency_key)
        return answer

    def create_budget(self, *, idempotency_key: str | None = None, cost_limit_usd: Dollars | None = None, **fields: Unpack[BudgetRequest]) -> SharedBudget:
        """Create a budget that URLs share, or a template that makes one for each user or value of a metadata key."""
        answer: SharedBudget = self._send("POST", "/v1/budgets", {}, body=fields, idempotency_key=idempotency_key, cost_limit_usd=cost_limit_usd)
        return answer

    def list_budgets(self, *, cursor: str | None = None, **fields: Unpack[ListBudgetsQuery]) -> SharedBudgetPage:
        """List shared budgets, newest first, with the figures of their present windows."""
        answer: SharedBudgetPage = self._send("GET", "/v1/budgets", {}, query={**fields, "cursor": cursor})
        return answer

    def budgets(self, **fields: Unpack[ListBudgetsQuery]) -> Iterator[SharedBudget]:
        """List shared budgets, newest first, with the figures of their present windows: the rows of all pages."""
        return self._each("/v1/budgets", {}, fields)

    def get_budget(self, id: str) -> SharedBudget:
        """Get a shared budget with the figures of its present window."""
        answer: SharedBudget = self._send("GET", "/v1/budgets/{id}", {"id": id})
        return answer

    def change_budget(self, id: str, *, if_revision: int | None = None, cost_limit_usd: Dollars | None = None, **fields: Unpack[BudgetChange]) -> SharedBudget | Pending:
        """Raise, lower or rename a shared budget."""
        answer: SharedBudget | Pending = self._send("PATCH", "/v1/budgets/{id}", {"id": id}, body=fields, if_revision=if_revision, cost_limit_usd=cost_limit_usd)
        return answer

    def delete_budget(self, id: str) -> Pending | None:
        """Delete a shared budget."""
        answer: Pending | None = self._send("DELETE", "/v1/budgets/{id}", {"id": id})
        return answer

    def create_webhook(self, *, idempotency_key: str | None = None, **fields: Unpack[WebhookRequest]) -> WebhookWithSecret:
        """Add an endpoint that receives events."""
        answer: WebhookWithSecret = self._send("POST", "/v1/webhooks", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    def list_webhooks(self, *, cursor: str | None = None, **fields: Unpack[ListWebhooksQuery]) -> WebhookPage:
        """List the endpoints that receive events."""
        answer: WebhookPage = self._send("GET", "/v1/webhooks", {}, query={**fields, "cursor": cursor})
        return answer

    def webhooks(self, **fields: Unpack[ListWebhooksQuery]) -> Iterator[Webhook]:
        """List the endpoints that receive events: the rows of all pages."""
        return self._each("/v1/webhooks", {}, fields)

    def get_webhook(self, id: str) -> Webhook:
        """Get an endpoint, and whether deliveries reach it."""
        answer: Webhook = self._send("GET", "/v1/webhooks/{id}", {"id": id})
        return answer

    def change_webhook(self, id: str, *, if_revision: int | None = None, **fields: Unpack[WebhookChange]) -> Webhook:
        """Change the URL, the events or the description of an endpoint."""
        answer: Webhook = self._send("PATCH", "/v1/webhooks/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    def delete_webhook(self, id: str) -> None:
        """Remove an endpoint with its log of deliveries."""
        self._send("DELETE", "/v1/webhooks/{id}", {"id": id})

    def rotate_webhook_secret(self, id: str, *, idempotency_key: str | None = None) -> WebhookWithSecret:
        """Give an endpoint a new secret; both sign for 24 hours."""
        answer: WebhookWithSecret = self._send("POST", "/v1/webhooks/{id}/rotate-secret", {"id": id}, idempotency_key=idempotency_key)
        return answer

    def enable_webhook(self, id: str, *, idempotency_key: str | None = None) -> Webhook:
        """Enable an endpoint that was disabled."""
        answer: Webhook = self._send("POST", "/v1/webhooks/{id}/enable", {"id": id}, idempotency_key=idempotency_key)
        return answer

    def test_webhook(self, id: str, *, idempotency_key: str | None = None) -> Delivery:
        """Send a test event to an endpoint."""
        answer: Delivery = self._send("POST", "/v1/webhooks/{id}/test", {"id": id}, idempotency_key=idempotency_key)
        return answer

    def list_deliveries(self, id: str, *, cursor: str | None = None, **fields: Unpack[ListDeliveriesQuery]) -> DeliveryPage:
        """List an endpoint's deliveries, their attempts and the result of the last one."""
        answer: DeliveryPage = self._send("GET", "/v1/webhooks/{id}/deliveries", {"id": id}, query={**fields, "cursor": cursor})
        return answer

    def deliveries(self, id: str, **fields: Unpack[ListDeliveriesQuery]) -> Iterator[Delivery]:
        """List an endpoint's deliveries, their attempts and the result of the last one: the rows of all pages."""
        return self._each("/v1/webhooks/{id}/deliveries", {"id": id}, fields)

    def replay_delivery(self, id: str, delivery_id: str, *, idempotency_key: str | None = None) -> Delivery:
        """Deliver an event again, whether or not it arrived."""
        answer: Delivery = self._send("POST", "/v1/webhooks/{id}/deliveries/{delivery_id}/replay", {"id": id, "delivery_id": delivery_id}, idempotency_key=idempotency_key)
        return answer

    def create_alert(self, *, idempotency_key: str | None = None, **fields: Unpack[AlertRequest]) -> Alert:
        """Create an alert for a budget, spend or errors."""
        answer: Alert = self._send("POST", "/v1/alerts", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    def list_alerts(self, *, cursor: str | None = None, **fields: Unpack[ListAlertsQuery]) -> AlertPage:
        """List alerts with their state, newest first."""
        answer: AlertPage = self._send("GET", "/v1/alerts", {}, query={**fields, "cursor": cursor})
        return answer

    def alerts(self, **fields: Unpack[ListAlertsQuery]) -> Iterator[Alert]:
        """List alerts with their state, newest first: the rows of all pages."""
        return self._each("/v1/alerts", {}, fields)

    def get_alert(self, id: str) -> Alert:
        """Get an alert, whether it fires, and its last figure."""
        answer: Alert = self._send("GET", "/v1/alerts/{id}", {"id": id})
        return answer

    def change_alert(self, id: str, *, if_revision: int | None = None, **fields: Unpack[AlertChange]) -> Alert:
        """Change, disable or enable an alert."""
        answer: Alert = self._send("PATCH", "/v1/alerts/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    def delete_alert(self, id: str) -> None:
        """Delete an alert with its history."""
        self._send("DELETE", "/v1/alerts/{id}", {"id": id})

    def test_alert(self, id: str, *, idempotency_key: str | None = None) -> Delivery:
        """Send a test of an alert to its endpoint."""
        answer: Delivery = self._send("POST", "/v1/alerts/{id}/test", {"id": id}, idempotency_key=idempotency_key)
        return answer

    def list_firings(self, id: str, *, cursor: str | None = None, **fields: Unpack[ListFiringsQuery]) -> AlertFiringPage:
        """List the times that an alert fired, and how each was delivered."""
        answer: AlertFiringPage = self._send("GET", "/v1/alerts/{id}/firings", {"id": id}, query={**fields, "cursor": cursor})
        return answer

    def firings(self, id: str, **fields: Unpack[ListFiringsQuery]) -> Iterator[AlertFiring]:
        """List the times that an alert fired, and how each was delivered: the rows of all pages."""
        return self._each("/v1/alerts/{id}/firings", {"id": id}, fields)

    def public_keys(self) -> PublicKeys:
        """Get the public keys that verify this issuer's tokens."""
        answer: PublicKeys = self._send("GET", "/v1/keys", {})
        return answer

class AsyncOperations:
    async def _send(self, method: str, path: str, values: Mapping[str, str], **parts: Any) -> Any:
        raise NotImplementedError

    def _each(self, path: str, values: Mapping[str, str], query: Mapping[str, Any]) -> AsyncIterator[Any]:
        raise NotImplementedError

    async def list_sessions(self, *, cursor: str | None = None, **fields: Unpack[ListSessionsQuery]) -> SessionPage:
        """List sessions, newest first, by external ids and status."""
        answer: SessionPage = await self._send("GET", "/v1/sessions", {}, query={**fields, "cursor": cursor})
        return answer

    def sessions(self, **fields: Unpack[ListSessionsQuery]) -> AsyncIterator[SessionSummary]:
        """List sessions, newest first, by external ids and status: the rows of all pages."""
        return self._each("/v1/sessions", {}, fields)

    async def revoke_sessions(self, **fields: Unpack[RevokeSessionsQuery]) -> Pending | None:
        """Revoke all grants of one of your own users or sessions, or of an API key."""
        answer: Pending | None = await self._send("DELETE", "/v1/sessions", {}, query={**fields})
        return answer

    async def get_session(self, id: str, *, cursor: str | None = None, **fields: Unpack[GetSessionQuery]) -> Session:
        """Get a session and its grants, with their uses and spending."""
        answer: Session = await self._send("GET", "/v1/sessions/{id}", {"id": id}, query={**fields, "cursor": cursor})
        return answer

    async def change_session(self, id: str, *, if_revision: int | None = None, **fields: Unpack[SessionChange]) -> ChangedSession | Pending:
        """Name a session, set its metadata, or change all its live URLs."""
        answer: ChangedSession | Pending = await self._send("PATCH", "/v1/sessions/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    async def revoke_session(self, id: str) -> Pending | None:
        """Revoke a session and all its grants."""
        answer: Pending | None = await self._send("DELETE", "/v1/sessions/{id}", {"id": id})
        return answer

    async def list_grants(self, *, cursor: str | None = None, **fields: Unpack[ListGrantsQuery]) -> GrantPage:
        """List issued URLs with their limits, uses and spending, newest first."""
        answer: GrantPage = await self._send("GET", "/v1/grants", {}, query={**fields, "cursor": cursor})
        return answer

    def grants(self, **fields: Unpack[ListGrantsQuery]) -> AsyncIterator[Grant]:
        """List issued URLs with their limits, uses and spending, newest first: the rows of all pages."""
        return self._each("/v1/grants", {}, fields)

    async def get_grant(self, id: str) -> Grant:
        """Get one issued URL with its limits, uses and spending."""
        answer: Grant = await self._send("GET", "/v1/grants/{id}", {"id": id})
        return answer

    async def change_grant(self, id: str, *, if_revision: int | None = None, cost_limit_usd: Dollars | None = None, **fields: Unpack[GrantChange]) -> ChangedGrant | Pending:
        """Raise, lower, extend or shorten an issued URL, or a bundle."""
        answer: ChangedGrant | Pending = await self._send("PATCH", "/v1/grants/{id}", {"id": id}, body=fields, if_revision=if_revision, cost_limit_usd=cost_limit_usd)
        return answer

    async def revoke_grant(self, id: str) -> Pending | None:
        """Revoke one issued URL, or a bundle with its servers."""
        answer: Pending | None = await self._send("DELETE", "/v1/grants/{id}", {"id": id})
        return answer

    @overload
    async def get_usage(self, *, format: Literal["csv"], cursor: str | None = None, **fields: Unpack[GetUsageQuery]) -> str: ...

    @overload
    async def get_usage(self, *, format: Literal["json"] = "json", cursor: str | None = None, **fields: Unpack[GetUsageQuery]) -> UsageReport: ...

    async def get_usage(self, *, format: str = "json", cursor: str | None = None, **fields: Unpack[GetUsageQuery]) -> str | UsageReport:
        """Sum settled calls over a range, as JSON or CSV."""
        answer: str | UsageReport = await self._send("GET", "/v1/usage", {}, query={**fields, "cursor": cursor, "format": format})
        return answer

    def usage(self, **fields: Unpack[GetUsageQuery]) -> AsyncIterator[UsageRow]:
        """Sum settled calls over a range, as JSON or CSV: the rows of all pages."""
        return self._each("/v1/usage", {}, fields)

    async def get_usage_hours(self, **fields: Unpack[GetUsageHoursQuery]) -> UsageHours:
        """Error rate and percentiles of the times of calls, by the hour."""
        answer: UsageHours = await self._send("GET", "/v1/usage/hours", {}, query={**fields})
        return answer

    async def get_refusals(self, **fields: Unpack[GetRefusalsQuery]) -> Refusals:
        """Count refused calls by day and code."""
        answer: Refusals = await self._send("GET", "/v1/refusals", {}, query={**fields})
        return answer

    @overload
    async def list_calls(self, *, format: Literal["csv", "ndjson"], cursor: str | None = None, **fields: Unpack[ListCallsQuery]) -> str: ...

    @overload
    async def list_calls(self, *, format: Literal["json"] = "json", cursor: str | None = None, **fields: Unpack[ListCallsQuery]) -> CallPage: ...

    async def list_calls(self, *, format: str = "json", cursor: str | None = None, **fields: Unpack[ListCallsQuery]) -> str | CallPage:
        """List calls, newest first, with their tokens, hold, cost and end, or how they were refused."""
        answer: str | CallPage = await self._send("GET", "/v1/calls", {}, query={**fields, "cursor": cursor, "format": format})
        return answer

    def calls(self, **fields: Unpack[ListCallsQuery]) -> AsyncIterator[Call]:
        """List calls, newest first, with their tokens, hold, cost and end, or how they were refused: the rows of all pages."""
        return self._each("/v1/calls", {}, fields)

    async def get_call(self, request_id: str) -> CallWithRefunds:
        """Get a call by the x-presign-request-id of its answer."""
        answer: CallWithRefunds = await self._send("GET", "/v1/calls/{request_id}", {"request_id": request_id})
        return answer

    async def list_similar_calls(self, request_id: str) -> SimilarCalls:
        """List the calls like one within 60 seconds of it."""
        answer: SimilarCalls = await self._send("GET", "/v1/calls/{request_id}/similar", {"request_id": request_id})
        return answer

    async def search(self, **fields: Unpack[SearchQuery]) -> SearchAnswer:
        """Find users and sessions by a part of their names."""
        answer: SearchAnswer = await self._send("GET", "/v1/search", {}, query={**fields})
        return answer

    @overload
    async def list_audit(self, *, format: Literal["csv", "ndjson"], cursor: str | None = None, **fields: Unpack[ListAuditQuery]) -> str: ...

    @overload
    async def list_audit(self, *, format: Literal["json"] = "json", cursor: str | None = None, **fields: Unpack[ListAuditQuery]) -> AuditPage: ...

    async def list_audit(self, *, format: str = "json", cursor: str | None = None, **fields: Unpack[ListAuditQuery]) -> str | AuditPage:
        """List changes, newest first: who made them, when, from where, before and after."""
        answer: str | AuditPage = await self._send("GET", "/v1/audit", {}, query={**fields, "cursor": cursor, "format": format})
        return answer

    def audit(self, **fields: Unpack[ListAuditQuery]) -> AsyncIterator[AuditEntry]:
        """List changes, newest first: who made them, when, from where, before and after: the rows of all pages."""
        return self._each("/v1/audit", {}, fields)

    async def list_models(self, **fields: Unpack[ListModelsQuery]) -> Models:
        """List the models that have a price."""
        answer: Models = await self._send("GET", "/v1/models", {}, query={**fields})
        return answer

    async def get_limits(self) -> Limits:
        """Get the limits of your API key, and those of every request."""
        answer: Limits = await self._send("GET", "/v1/limits", {})
        return answer

    async def create_virtual_key(self, *, idempotency_key: str | None = None, **fields: Unpack[VirtualKeyRequest]) -> VirtualKey:
        """Store a provider's key under an id of its own."""
        answer: VirtualKey = await self._send("POST", "/v1/virtual-keys", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    async def list_virtual_keys(self, *, cursor: str | None = None, **fields: Unpack[ListVirtualKeysQuery]) -> VirtualKeyPage:
        """List virtual keys, newest first, with the use and spending of their budgets."""
        answer: VirtualKeyPage = await self._send("GET", "/v1/virtual-keys", {}, query={**fields, "cursor": cursor})
        return answer

    def virtual_keys(self, **fields: Unpack[ListVirtualKeysQuery]) -> AsyncIterator[VirtualKey]:
        """List virtual keys, newest first, with the use and spending of their budgets: the rows of all pages."""
        return self._each("/v1/virtual-keys", {}, fields)

    async def get_virtual_key(self, id: str) -> VirtualKey:
        """Get a virtual key, with the use and spending of its budget."""
        answer: VirtualKey = await self._send("GET", "/v1/virtual-keys/{id}", {"id": id})
        return answer

    async def change_virtual_key(self, id: str, *, if_revision: int | None = None, **fields: Unpack[VirtualKeyChange]) -> VirtualKey | Pending:
        """Rename a virtual key, or change its config or its budget."""
        answer: VirtualKey | Pending = await self._send("PATCH", "/v1/virtual-keys/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    async def delete_virtual_key(self, id: str) -> Pending | None:
        """Delete a virtual key, and end all URLs issued with it."""
        answer: Pending | None = await self._send("DELETE", "/v1/virtual-keys/{id}", {"id": id})
        return answer

    async def rotate_virtual_key(self, id: str, *, idempotency_key: str | None = None, **fields: Unpack[RotationRequest]) -> VirtualKey | Pending:
        """Replace the provider's key of a virtual key."""
        answer: VirtualKey | Pending = await self._send("POST", "/v1/virtual-keys/{id}/rotate", {"id": id}, body=fields, idempotency_key=idempotency_key)
        return answer

    async def create_api_key(self, *, idempotency_key: str | None = None, **fields: Unpack[ApiKeyRequest]) -> NewApiKey:
        """Create an API key."""
        answer: NewApiKey = await self._send("POST", "/v1/api-keys", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    async def list_api_keys(self, *, cursor: str | None = None, **fields: Unpack[ListApiKeysQuery]) -> ApiKeyPage:
        """List API keys, newest first, without the keys themselves."""
        answer: ApiKeyPage = await self._send("GET", "/v1/api-keys", {}, query={**fields, "cursor": cursor})
        return answer

    def api_keys(self, **fields: Unpack[ListApiKeysQuery]) -> AsyncIterator[ApiKey]:
        """List API keys, newest first, without the keys themselves: the rows of all pages."""
        return self._each("/v1/api-keys", {}, fields)

    async def get_api_key(self, id: str) -> ApiKey:
        """Get an API key, without the key itself."""
        answer: ApiKey = await self._send("GET", "/v1/api-keys/{id}", {"id": id})
        return answer

    async def change_api_key(self, id: str, *, if_revision: int | None = None, **fields: Unpack[ApiKeyChange]) -> ApiKey:
        """Rename an API key, or change its expiry, rate limit or policy, or take scopes from it."""
        answer: ApiKey = await self._send("PATCH", "/v1/api-keys/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    async def revoke_api_key(self, id: str) -> None:
        """Revoke an API key."""
        await self._send("DELETE", "/v1/api-keys/{id}", {"id": id})

    async def create_account(self, *, idempotency_key: str | None = None, **fields: Unpack[AccountRequest]) -> NewAccount:
        """Create an account with its first API key."""
        answer: NewAccount = await self._send("POST", "/v1/accounts", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    async def list_accounts(self, *, cursor: str | None = None, **fields: Unpack[ListAccountsQuery]) -> AccountPage:
        """List accounts, newest first."""
        answer: AccountPage = await self._send("GET", "/v1/accounts", {}, query={**fields, "cursor": cursor})
        return answer

    def accounts(self, **fields: Unpack[ListAccountsQuery]) -> AsyncIterator[ListedAccount]:
        """List accounts, newest first: the rows of all pages."""
        return self._each("/v1/accounts", {}, fields)

    async def get_account(self, id: str) -> Account:
        """Get an account."""
        answer: Account = await self._send("GET", "/v1/accounts/{id}", {"id": id})
        return answer

    async def change_account(self, id: str, *, if_revision: int | None = None, **fields: Unpack[AccountChange]) -> Account:
        """Rename an account, or change its limits."""
        answer: Account = await self._send("PATCH", "/v1/accounts/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    async def delete_account(self, id: str) -> Pending | None:
        """Delete an account."""
        answer: Pending | None = await self._send("DELETE", "/v1/accounts/{id}", {"id": id})
        return answer

    async def get_account_usage(self, id: str) -> AccountUsage:
        """Get what an account spends this month and spent in the month before."""
        answer: AccountUsage = await self._send("GET", "/v1/accounts/{id}/usage", {"id": id})
        return answer

    async def suspend_account(self, id: str, *, idempotency_key: str | None = None) -> Pending | None:
        """Suspend an account."""
        answer: Pending | None = await self._send("POST", "/v1/accounts/{id}/suspend", {"id": id}, idempotency_key=idempotency_key)
        return answer

    async def resume_account(self, id: str, *, idempotency_key: str | None = None) -> Pending | None:
        """End the suspension of an account."""
        answer: Pending | None = await self._send("POST", "/v1/accounts/{id}/resume", {"id": id}, idempotency_key=idempotency_key)
        return answer

    async def create_budget(self, *, idempotency_key: str | None = None, cost_limit_usd: Dollars | None = None, **fields: Unpack[BudgetRequest]) -> SharedBudget:
        """Create a budget that URLs share, or a template that makes one for each user or value of a metadata key."""
        answer: SharedBudget = await self._send("POST", "/v1/budgets", {}, body=fields, idempotency_key=idempotency_key, cost_limit_usd=cost_limit_usd)
        return answer

    async def list_budgets(self, *, cursor: str | None = None, **fields: Unpack[ListBudgetsQuery]) -> SharedBudgetPage:
        """List shared budgets, newest first, with the figures of their present windows."""
        answer: SharedBudgetPage = await self._send("GET", "/v1/budgets", {}, query={**fields, "cursor": cursor})
        return answer

    def budgets(self, **fields: Unpack[ListBudgetsQuery]) -> AsyncIterator[SharedBudget]:
        """List shared budgets, newest first, with the figures of their present windows: the rows of all pages."""
        return self._each("/v1/budgets", {}, fields)

    async def get_budget(self, id: str) -> SharedBudget:
        """Get a shared budget with the figures of its present window."""
        answer: SharedBudget = await self._send("GET", "/v1/budgets/{id}", {"id": id})
        return answer

    async def change_budget(self, id: str, *, if_revision: int | None = None, cost_limit_usd: Dollars | None = None, **fields: Unpack[BudgetChange]) -> SharedBudget | Pending:
        """Raise, lower or rename a shared budget."""
        answer: SharedBudget | Pending = await self._send("PATCH", "/v1/budgets/{id}", {"id": id}, body=fields, if_revision=if_revision, cost_limit_usd=cost_limit_usd)
        return answer

    async def delete_budget(self, id: str) -> Pending | None:
        """Delete a shared budget."""
        answer: Pending | None = await self._send("DELETE", "/v1/budgets/{id}", {"id": id})
        return answer

    async def create_webhook(self, *, idempotency_key: str | None = None, **fields: Unpack[WebhookRequest]) -> WebhookWithSecret:
        """Add an endpoint that receives events."""
        answer: WebhookWithSecret = await self._send("POST", "/v1/webhooks", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    async def list_webhooks(self, *, cursor: str | None = None, **fields: Unpack[ListWebhooksQuery]) -> WebhookPage:
        """List the endpoints that receive events."""
        answer: WebhookPage = await self._send("GET", "/v1/webhooks", {}, query={**fields, "cursor": cursor})
        return answer

    def webhooks(self, **fields: Unpack[ListWebhooksQuery]) -> AsyncIterator[Webhook]:
        """List the endpoints that receive events: the rows of all pages."""
        return self._each("/v1/webhooks", {}, fields)

    async def get_webhook(self, id: str) -> Webhook:
        """Get an endpoint, and whether deliveries reach it."""
        answer: Webhook = await self._send("GET", "/v1/webhooks/{id}", {"id": id})
        return answer

    async def change_webhook(self, id: str, *, if_revision: int | None = None, **fields: Unpack[WebhookChange]) -> Webhook:
        """Change the URL, the events or the description of an endpoint."""
        answer: Webhook = await self._send("PATCH", "/v1/webhooks/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    async def delete_webhook(self, id: str) -> None:
        """Remove an endpoint with its log of deliveries."""
        await self._send("DELETE", "/v1/webhooks/{id}", {"id": id})

    async def rotate_webhook_secret(self, id: str, *, idempotency_key: str | None = None) -> WebhookWithSecret:
        """Give an endpoint a new secret; both sign for 24 hours."""
        answer: WebhookWithSecret = await self._send("POST", "/v1/webhooks/{id}/rotate-secret", {"id": id}, idempotency_key=idempotency_key)
        return answer

    async def enable_webhook(self, id: str, *, idempotency_key: str | None = None) -> Webhook:
        """Enable an endpoint that was disabled."""
        answer: Webhook = await self._send("POST", "/v1/webhooks/{id}/enable", {"id": id}, idempotency_key=idempotency_key)
        return answer

    async def test_webhook(self, id: str, *, idempotency_key: str | None = None) -> Delivery:
        """Send a test event to an endpoint."""
        answer: Delivery = await self._send("POST", "/v1/webhooks/{id}/test", {"id": id}, idempotency_key=idempotency_key)
        return answer

    async def list_deliveries(self, id: str, *, cursor: str | None = None, **fields: Unpack[ListDeliveriesQuery]) -> DeliveryPage:
        """List an endpoint's deliveries, their attempts and the result of the last one."""
        answer: DeliveryPage = await self._send("GET", "/v1/webhooks/{id}/deliveries", {"id": id}, query={**fields, "cursor": cursor})
        return answer

    def deliveries(self, id: str, **fields: Unpack[ListDeliveriesQuery]) -> AsyncIterator[Delivery]:
        """List an endpoint's deliveries, their attempts and the result of the last one: the rows of all pages."""
        return self._each("/v1/webhooks/{id}/deliveries", {"id": id}, fields)

    async def replay_delivery(self, id: str, delivery_id: str, *, idempotency_key: str | None = None) -> Delivery:
        """Deliver an event again, whether or not it arrived."""
        answer: Delivery = await self._send("POST", "/v1/webhooks/{id}/deliveries/{delivery_id}/replay", {"id": id, "delivery_id": delivery_id}, idempotency_key=idempotency_key)
        return answer

    async def create_alert(self, *, idempotency_key: str | None = None, **fields: Unpack[AlertRequest]) -> Alert:
        """Create an alert for a budget, spend or errors."""
        answer: Alert = await self._send("POST", "/v1/alerts", {}, body=fields, idempotency_key=idempotency_key)
        return answer

    async def list_alerts(self, *, cursor: str | None = None, **fields: Unpack[ListAlertsQuery]) -> AlertPage:
        """List alerts with their state, newest first."""
        answer: AlertPage = await self._send("GET", "/v1/alerts", {}, query={**fields, "cursor": cursor})
        return answer

    def alerts(self, **fields: Unpack[ListAlertsQuery]) -> AsyncIterator[Alert]:
        """List alerts with their state, newest first: the rows of all pages."""
        return self._each("/v1/alerts", {}, fields)

    async def get_alert(self, id: str) -> Alert:
        """Get an alert, whether it fires, and its last figure."""
        answer: Alert = await self._send("GET", "/v1/alerts/{id}", {"id": id})
        return answer

    async def change_alert(self, id: str, *, if_revision: int | None = None, **fields: Unpack[AlertChange]) -> Alert:
        """Change, disable or enable an alert."""
        answer: Alert = await self._send("PATCH", "/v1/alerts/{id}", {"id": id}, body=fields, if_revision=if_revision)
        return answer

    async def delete_alert(self, id: str) -> None:
        """Delete an alert with its history."""
        await self._send("DELETE", "/v1/alerts/{id}", {"id": id})

    async def test_alert(self, id: str, *, idempotency_key: str | None = None) -> Delivery:
        """Send a test of an alert to its endpoint."""
        answer: Delivery = await self._send("POST", "/v1/alerts/{id}/test", {"id": id}, idempotency_key=idempotency_key)
        return answer

    async def list_firings(self, id: str, *, cursor: str | None = None, **fields: Unpack[ListFiringsQuery]) -> AlertFiringPage:
        """List the times that an alert fired, and how each was delivered."""
        answer: AlertFiringPage = await self._send("GET", "/v1/alerts/{id}/firings", {"id": id}, query={**fields, "cursor": cursor})
        return answer

    def firings(self, id: str, **fields: Unpack[ListFiringsQuery]) -> AsyncIterator[AlertFiring]:
        """List the times that an alert fired, and how each was delivered: the rows of all pages."""
        return self._each("/v1/alerts/{id}/firings", {"id": id}, fields)

    async def public_keys(self) -> PublicKeys:
        """Get the public keys that verify this issuer's tokens."""
        answer: PublicKeys = await self._send("GET", "/v1/keys", {})
        return answer
