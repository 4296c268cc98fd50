import { type ErrorCode, errorMessage, errorStatus, type Refusal, rateLimitHeaders } from '@presign/schema';
import { ANSWER_HEADERS } from '../http/headers.ts';
import { refusalAnswer } from '../http/refuse.ts';
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  type Message,
  type Messages,
  PARSE_ERROR,
} from './messages.ts';

/** Whether a refusal is about the call itself, and so is the protocol's answer to it. */
export const isLimit = ({ code, param }: Refusal): boolean =>
  LIMITS.has(code) ||
  (code === 'invalid_request' && (param === 'method' || param?.startsWith('params.') === true));

const LIMITS: ReadonlySet<ErrorCode> = new Set([
  'uses_exhausted',
  'cost_limit_reached',
  'cost_limit_too_low',
  'cost_held',
  'rate_limited',
  'tool_not_allowed',
]);

/**
 * A refusal as the answer to a POST, GET or DELETE: always JSON-RPC, never 401, which would make a client start an
 * OAuth login and send this URL, token included, to addresses of its own finding.
 * @param messages what was asked, as far as it is known
 */
export function mcpRefusalAnswer(
  refusal: Refusal,
  messages: Messages | undefined,
  requestId: string,
): Response {
  const isAnswer = isLimit(refusal) && messages?.all.some(wantsAnswer) === true;
  const headers: Record<string, string> = {
    ...ANSWER_HEADERS,
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'x-presign-request-id': requestId,
  };
  if (refusal.rateLimit) Object.assign(headers, rateLimitHeaders(refusal.rateLimit));
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds);
  const status = isAnswer ? 200 : statusOf(refusal);
  return Response.json(errorMessages(refusal, messages, requestId), { status, headers });
}

/** The same refusal as JSON-RPC errors: one for each request that waits for an answer. */
export function errorMessages(refusal: Refusal, messages: Messages | undefined, requestId: string): unknown {
  const ids = (messages?.all ?? []).filter(wantsAnswer).map(({ id }) => id);
  const error = errorOf(refusal, requestId);
  const asError = (id: string | number | null | undefined) => ({ jsonrpc: '2.0', id: id ?? null, error });
  return messages?.isBatch && ids.length > 0 ? ids.map(asError) : asError(ids[0]);
}

export const wantsAnswer = ({ id, method }: Message): boolean => id !== undefined && method !== undefined;

/** A refusal of a bundle's URL, which no MCP client's protocol reads. */
export function bundleRefusalAnswer(refusal: Refusal, requestId: string): Response {
  const answer = refusalAnswer(refusal, requestId);
  return new Response(answer.body, { status: statusOf(refusal), headers: answer.headers });
}

const statusOf = (refusal: Refusal): number => {
  const status = errorStatus(refusal);
  return status === 401 ? 403 : status;
};

function errorOf(refusal: Refusal, requestId: string) {
  const { code, details = {} } = refusal;
  const { limit, remaining, needed } = details;
  const spent = typeof limit === 'number' && typeof remaining === 'number' ? { used: limit - remaining } : {};
  return {
    code: rpcCode(refusal),
    message: code === 'cost_limit_too_low' ? tooDear(needed, remaining) : errorMessage(refusal),
    data: { code, ...details, ...spent, request_id: requestId },
  };
}

/** A tool's price is fixed: nothing about the call makes it cheaper. */
const tooDear = (needed: unknown, remaining: unknown) =>
  `This call costs ${needed} microdollars, and ${remaining} are left.`;

/** A code from the range that JSON-RPC reserves for servers and MCP for implementations. */
const REFUSED = -32010;
/** The code that MCP servers commonly answer for an unknown session. */
const SESSION_NOT_FOUND = -32001;
/** MCP 2026-07-28, Streamable HTTP: a header says other than the body. */
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
      return INVALID_PARAMS;
    case 'not_found':
      return SESSION_NOT_FOUND;
    default:
      return REFUSED;
  }
}
