import {
  type ErrorCode,
  errorMessage,
  errorStatus,
  microdollars,
  moneyLeft,
  RATE_CODES,
  type Refusal,
} from '@presign/schema';
import { allowOf, isDead, refusalAnswer, refusalHeaders } from '../../http/refuse.ts';
import type { RpcId } from '../ids/rpc-id.ts';
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  type Messages,
  PARSE_ERROR,
  waitingIds,
  wantsAnswer,
} from '../request/messages.ts';

/** The part of a refused request that was read. */
export type Refused = {
  readonly refusal: Refusal;
  readonly method: string | undefined;
  readonly messages: Messages | undefined;
  /** It belongs to the 2024-11-05 transport, whose clients read only the status. */
  readonly isLegacy: boolean;
};

/** Whether a refusal concerns the call itself, so that it is sent as a JSON-RPC answer. */
const isAboutCall = ({ code, param }: Refusal): boolean =>
  LIMITS.has(code) ||
  (code === 'invalid_request' && (param === 'method' || param?.startsWith('params.') === true));

const LIMITS: ReadonlySet<ErrorCode> = new Set([
  'uses_exhausted',
  'cost_limit_reached',
  'cost_limit_too_low',
  'cost_held',
  ...RATE_CODES,
  'concurrency_limited',
  'tool_not_allowed',
  'argument_not_allowed',
]);

/**
 * Answers a refused POST, GET or DELETE. The body is JSON-RPC, and the status is never 401: on a 401 a client starts an
 * OAuth login, and would send this URL with its token to discovered addresses.
 */
export function mcpRefusalAnswer(refused: Refused, requestId: string): Response {
  const { refusal, messages } = refused;
  const headers = refusalHeaders(refusal, requestId);
  const status = answerStatus(refused);
  // RFC 9110 §15.5.6: a 405 names the allowed methods.
  if (status === 405) headers.allow = allowOf(refusal).allow ?? (refused.method === 'POST' ? 'GET' : 'POST');
  if (status === 202) return new Response(null, { status, headers });
  headers['content-type'] = 'application/json';
  return new Response(errorMessages(refusal, messages, requestId), { status, headers });
}

function answerStatus({ refusal, method, messages, isLegacy }: Refused): number {
  // The server's own status. It makes clients that know both transports try the other one.
  if (refusal.param === 'transport') return Number(refusal.details?.status);
  const dead = isDead(refusal);
  if (method === 'POST' && (dead || isAboutCall(refusal))) {
    // Without a stream for the error, only the status shows that no answer will follow.
    if (isLegacy) return 404;
    if (messages?.all.some(wantsAnswer)) return 200;
    return dead && messages ? 202 : statusOf(refusal);
  }
  // After a 405 a client continues without a stream. A client of the older transport cannot continue, so it gets the
  // reason.
  if (dead && (method === 'DELETE' || (method === 'GET' && !isLegacy))) return 405;
  return statusOf(refusal);
}

/** The same refusal as JSON-RPC errors, one for each request that waits for an answer. */
export function errorMessages(refusal: Refusal, messages: Messages | undefined, requestId: string): string {
  const ids = waitingIds(messages);
  const error = errorOf(refusal, requestId);
  if (!messages?.isBatch || ids.length === 0) return errorText(ids[0], error);
  // Only the first error lists the allowed tools, because 500 tools for each of 100 calls would be megabytes.
  const { allowed: _, ...data } = error.data;
  const [first, ...others] = ids;
  return `[${[errorText(first, error), ...others.map((id) => errorText(id, { ...error, data }))].join()}]`;
}

/** The refusal of a batch that has too few uses. It names the figures, because a smaller batch may pass. */
export function withBatchFigures(refusal: Refusal, uses: number): Refusal {
  const { limit, used } = refusal.details ?? {};
  if (refusal.code !== 'uses_exhausted' || uses < 2) return refusal;
  // The figures of a budget that other URLs share stay secret.
  if (typeof limit !== 'number' || typeof used !== 'number') return refusal;
  const remaining = Math.max(0, limit - used);
  const message = `This batch needs ${uses} uses, and ${remaining} of ${limit} ${remaining === 1 ? 'is' : 'are'} left. Send fewer calls at once, or issue a new URL.`;
  return { ...refusal, message, details: { ...refusal.details, remaining, needed: uses } };
}

/** An error for each request that still waits for an answer on a stream. */
export const errorsFor = (refusal: Refusal, ids: readonly RpcId[], requestId: string): string[] => {
  const error = errorOf(refusal, requestId);
  return ids.map((id) => errorText(id, error));
};

/** The id is already JSON. */
const errorText = (id: RpcId | undefined, error: object): string =>
  `{"jsonrpc":"2.0","id":${id ?? 'null'},"error":${JSON.stringify(error)}}`;

/** Replaces an unreadable answer, which may quote a secret. */
export const UNDECODED: Refusal = {
  code: 'upstream_unreachable',
  message:
    "The MCP server's answer is compressed, although none was asked for, and cannot be decoded: it is damaged, or too large. The call may have run, so its charge stands.",
};

/** A refusal of a bundle's URL, which is not an MCP endpoint. */
export function bundleRefusalAnswer(refusal: Refusal, requestId: string): Response {
  const answer = refusalAnswer(refusal, requestId);
  return new Response(answer.body, { status: statusOf(refusal), headers: answer.headers });
}

const statusOf = (refusal: Refusal): number => {
  const status = errorStatus(refusal);
  return status === 401 ? 403 : status;
};

function errorOf(
  refusal: Refusal,
  requestId: string,
): { code: number; message: string; data: Record<string, unknown> } {
  const { code, details = {}, retryAfterSeconds } = refusal;
  const { limit, remaining, needed } = details;
  const spent = typeof limit === 'number' && typeof remaining === 'number' ? { used: limit - remaining } : {};
  return {
    code: rpcCode(refusal),
    message: code === 'cost_limit_too_low' ? tooDear(refusal, needed, remaining) : errorMessage(refusal),
    // An MCP client does not show headers to its program.
    data: {
      code,
      ...details,
      ...spent,
      ...(retryAfterSeconds !== undefined && { retry_after: retryAfterSeconds }),
      request_id: requestId,
    },
  };
}

/** A tool's price is fixed, so no change of the call makes it cheaper. A holder must not see what is left of a hidden budget. */
const tooDear = (refusal: Refusal, needed: unknown, remaining: unknown) =>
  typeof needed === 'number' && typeof remaining === 'number'
    ? `This call costs ${microdollars(needed)}, and ${moneyLeft(remaining)}.`
    : errorMessage(refusal);

/** A code from the range that JSON-RPC reserves for servers and MCP for implementations. */
const REFUSED = -32010;
/** The code that MCP servers commonly answer for an unknown session. */
const SESSION_NOT_FOUND = -32001;
/** MCP 2026-07-28, Streamable HTTP: a header does not agree with the body. */
const HEADER_MISMATCH = -32020;

function rpcCode({ code, param }: Refusal): number {
  switch (code) {
    case 'invalid_json':
      return PARSE_ERROR;
    case 'invalid_request':
      if (param === 'method') return METHOD_NOT_FOUND;
      if (param?.startsWith('params.')) return INVALID_PARAMS;
      return param?.startsWith('Mcp-') ? HEADER_MISMATCH : INVALID_REQUEST;
    case 'tool_not_allowed':
    case 'argument_not_allowed':
      return INVALID_PARAMS;
    case 'not_found':
      return SESSION_NOT_FOUND;
    default:
      return REFUSED;
  }
}
