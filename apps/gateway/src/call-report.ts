import type { IncomingMessage } from 'node:http';
import type { Doubt } from '@presign/providers';
import { errorStatus, type LastCall, type Refusal, type RefusedCall } from '@presign/schema';
import { boundLines } from '@presign/service';
import { logFields } from '@presign/service/log';
import type { Span } from '@presign/service/traces';
import type { Logger } from 'pino';
import type { GrantMemory, Policy } from './grant/policy.ts';
import type { VerifiedGrant } from './grant/verify.ts';
import type { UpstreamTimes } from './http/forward.ts';
import type { RefusedCalls } from './limits/refused-calls.ts';
import { type ReadQuota, takeRefused } from './share/read-quota.ts';

/** `socket`: a connection, whose turns are calls of the kind `llm`. `other`: a request that is no call, because it is malformed or has no route. */
type CallKind = 'llm' | 'mcp' | 'socket' | 'describe' | 'bundle' | 'other';

/** The end of a call that was admitted. */
type CallEnd = {
  /** How sending it ended: `complete`, `broken`, `unanswered`, `unsent`… */
  readonly ended: string;
  /** Why it is not complete. */
  readonly error?: string | undefined;
  /** The provider's own status. */
  readonly upstreamStatus?: number | undefined;
  /** How the answer was incomplete, if it is not a refusal. */
  readonly code?: LastCall['code'] | undefined;
  readonly uses: number;
  /** Undefined: not known. */
  readonly costMicrousd: number | undefined;
  /** Undefined: nothing was held. */
  readonly heldMicrousd?: number | undefined;
  /** The part of the cost above the hold. */
  readonly overrunMicrousd?: number | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** The contradiction in the reported usage. */
  readonly doubt?: Doubt | undefined;
  /** An operator, or the account that issued the URL, has to act. */
  readonly fault?: {
    readonly level: 'warn' | 'error';
    readonly upstream?: string;
    readonly hint?: string | undefined;
  };
};

/** The span of a call, the span of its request to the upstream, and `performance.now()` when that request was sent. */
type CallSpans = { readonly own: Span; readonly upstream: Span; readonly sentAt: number };

/** Everything that is known of one call when it ends. Each step adds what it learns. */
export class CallReport implements UpstreamTimes {
  readonly kind: CallKind;
  readonly requestId: string;
  readonly method: string | undefined;
  readonly holderRequestId: string | undefined;
  /** The holder's `traceparent`, unchecked. */
  readonly traceparent: string | undefined;
  /** `performance.now()` when the request arrived. */
  readonly beganAt = performance.now();
  /** The URL's grant, if its token is signed by a key of this gateway. */
  grant: VerifiedGrant | undefined = undefined;
  policy: Policy | undefined = undefined;
  provider: string | undefined = undefined;
  /** The revision of the grant in this gateway's memory. */
  knowledge: string | undefined = undefined;
  /** Whether its name is in a price list. Any other name could be arbitrary text from the holder. */
  model: string | undefined = undefined;
  /** The field, kind, beta or model for which it was refused, in at most 110 letters, digits and `_.-[]=`. */
  unbounded: string | undefined = undefined;
  /** The length of its body as its holder stated it. */
  readonly statedBytes: string | undefined;
  /** The JSON-RPC messages of a POST to an MCP server. */
  messages: number | undefined = undefined;
  /** The tool or method that they call, in at most 255 characters. */
  tool: string | undefined = undefined;
  /** For a turn: the id of its socket, and its number on the socket. */
  connection: string | undefined = undefined;
  turn: number | undefined = undefined;
  /** How many turns a socket had. */
  turns: number | undefined = undefined;
  /** How a socket closed. */
  closed: { readonly code: number; readonly cause: string } | undefined = undefined;
  /** Undefined: it was not admitted, or its end was not reached. */
  end: CallEnd | undefined = undefined;
  /** Its spans, once it is sent to the upstream and if it is traced. */
  spans: CallSpans | undefined = undefined;
  /** How long its body took to arrive, in ms. */
  bodyMs = 0;
  /** How long Redis took to count it, in ms; 0 where it was not asked. */
  admitMs = 0;
  /** How long the upstream took, in ms, including the time in which the holder read the answer. */
  upstreamMs = 0;
  /** `performance.now()` at the first byte of the upstream's body; 0 before. */
  firstByteAt = 0;

  constructor(
    kind: CallKind,
    requestId: string,
    { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  ) {
    this.kind = kind;
    this.requestId = requestId;
    this.method = METHODS.has(method ?? '') ? method : undefined;
    this.holderRequestId = holdersRequestId(headers['x-request-id']);
    this.traceparent = headers['traceparent'] as string | undefined;
    this.statedBytes = headers['content-length'];
  }
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The holder's own request id, if it looks like one. It is too short to hold a token. */
function holdersRequestId(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : undefined;
}

/**
 * Reports the end of a call. Its answer is either the upstream's or this refusal. `status` is given if it differs from the refusal's own.
 */
export type ReportCall = (call: CallReport, refusal?: Refusal | undefined, status?: number) => void;

/**
 * The one place that knows how every call ended. It counts each, and logs one line for it, without URL, header, body or message, because
 * those carry tokens, keys and content. Refusals before admission are free, so their log lines are bounded, and each refusal draws on the
 * read quota of its URL.
 */
export function callReporter({
  log,
  memory,
  callEnded,
  refused,
  readQuota,
  traces,
}: {
  /** Counts a call that took so many ms. */
  readonly callEnded: (call: CallReport, refusal: Refusal | undefined, ms: number) => void;
  /** Counts and records a refused call if a key of this gateway has signed its token. */
  readonly refused: RefusedCalls['add'];
  readonly log: Logger;
  readonly memory: GrantMemory;
  readonly readQuota: ReadQuota;
  readonly traces:
    | { readonly callEnded: (call: CallReport, refusal: Refusal | undefined, status: number) => void }
    | undefined;
}): ReportCall {
  const mayLog = boundLines(log, 'grant', 'refused calls were not logged');
  return (call, refusal, status) => {
    const { end, grant } = call;
    const ms = performance.now() - call.beganAt;
    const answered = status ?? (refusal ? errorStatus(refusal) : (end?.upstreamStatus ?? 200));
    callEnded(call, refusal, ms);
    traces?.callEnded(call, refusal, answered);
    const policy = call.policy ?? (grant && memory.policies.peek(grant.id));
    if (end === undefined && refusal !== undefined) {
      if (grant) takeRefused(readQuota, grant);
      if (grant && isOfCalls(call.kind))
        refused({
          grant,
          accountId: policy?.accountId,
          code: refusal.code,
          name: call.unbounded,
          describe: () => describeRefused(call, refusal, answered),
        });
      if (!mayLog(grant?.id ?? '')) return;
    }
    const line = lineOf(call, refusal, answered, policy, ms);
    const level = end?.fault?.level ?? (end === undefined && line.status >= 500 ? 'warn' : 'info');
    logFields(log, level, line, 'call');
  };
}

/** The other kinds only ask about a URL. */
const isOfCalls = (kind: CallKind): boolean => kind === 'llm' || kind === 'mcp' || kind === 'socket';

/** The part of a refused call that is kept. The issuer knows the rest by its grant. */
function describeRefused(
  call: CallReport,
  { reason, details = {} }: Refusal,
  status: number,
): Omit<RefusedCall, 'ago'> {
  const bytes = Number(call.statedBytes);
  const { limit_of, budget, limit, used, needed, remaining } = details;
  const figures = { limit_of, budget, limit, used, needed, remaining } as RefusedCall['fig'];
  const hasFigures = Object.values(figures ?? {}).some((value) => value !== undefined);
  return {
    rid: call.requestId,
    sta: status,
    rsn: reason,
    mod: call.model,
    tol: call.tool,
    fig: hasFigures ? figures : undefined,
    con: call.connection,
    trn: call.turn,
    siz: Number.isSafeInteger(bytes) ? bytes : undefined,
  };
}

function lineOf(
  call: CallReport,
  refusal: Refusal | undefined,
  status: number,
  policy: Policy | undefined,
  ms: number,
) {
  const { grant, end, bodyMs, upstreamMs, firstByteAt, beganAt } = call;
  // The figures behind a refusal are those that its holder sees.
  const details = refusal?.details;
  // One literal without spreads, because V8 would reallocate the object for each field after a spread.
  return {
    kind: call.kind,
    request_id: call.requestId,
    holder_request_id: call.holderRequestId,
    account: policy?.accountId,
    api_key: policy?.apiKeyId,
    session: grant?.sessionId,
    grant: grant?.id,
    virtual_key: policy?.virtualKeyId,
    external_user: refusal && policy?.externalUser,
    provider: call.provider,
    knowledge: call.knowledge,
    server: policy?.server?.name,
    model: call.model,
    method: call.method,
    messages: call.messages,
    connection: call.connection,
    turn: call.turn,
    turns: call.turns,
    close_code: call.closed?.code,
    close_cause: call.closed?.cause,
    status,
    upstream_status: end?.upstreamStatus === status ? undefined : end?.upstreamStatus,
    code: end?.code ?? refusal?.code,
    reason: refusal?.reason,
    unbounded: call.unbounded,
    limit_of: details?.limit_of,
    budget: details?.budget,
    limit: details?.limit,
    used: details?.used,
    needed: details?.needed,
    remaining: details?.remaining,
    ended: end?.ended,
    error: end?.error,
    uses: end?.uses,
    input_tokens: end?.inputTokens,
    output_tokens: end?.outputTokens,
    doubt: end?.doubt?.why,
    unknown_usage: end?.doubt?.names?.join(' '),
    cost: end?.costMicrousd,
    hold: end?.heldMicrousd,
    first_byte_ms: firstByteAt === 0 ? undefined : tenths(firstByteAt - beganAt),
    own_ms: tenths(ms - upstreamMs - bodyMs),
    upstream_ms: upstreamMs === 0 ? undefined : tenths(upstreamMs),
    body_ms: bodyMs < 1 ? undefined : tenths(bodyMs),
    ms: tenths(ms),
    upstream: end?.fault?.upstream,
    hint: end?.fault?.hint,
  };
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
