import { isJsonObject, parseJson, type Refusal } from '@presign/schema';
import { afterSpace, membersOf } from '../../json/parts.ts';
import { withEdits } from '../ids/places.ts';
import type { McpCall } from '../request/request.ts';
import { isLegacy } from './legacy-sse.ts';

/** A server that speaks only the other transport answers the connecting request with one of these. */
const TO_GET: ReadonlySet<number> = new Set([400, 404, 405, 406]);
const TO_POST: ReadonlySet<number> = new Set([404, 405]);

/**
 * The refusal of a client that connects by one transport to a server that speaks the other one.
 * @param status the server's status, which is kept, because it makes clients that know both transports try the other
 * one (MCP 2025-11-25, "Backwards Compatibility")
 */
export function transportRefusal(call: McpCall, status: number): Refusal | undefined {
  const { incoming, method, messages, server, endpoint } = call;
  const issuedFor = server.transport;
  if (method === 'GET') {
    const startsStream = issuedFor === 'sse' && isLegacy(incoming, issuedFor);
    return startsStream && TO_GET.has(status) ? wrongTransport('GET', status, FOR_HTTP) : undefined;
  }
  const isFirst =
    method === 'POST' && !endpoint && messages?.all.some((each) => each.method === 'initialize');
  if (!isFirst || !TO_POST.has(status)) return undefined;
  return wrongTransport('POST', status, issuedFor === 'sse' ? USE_SSE : FOR_SSE);
}

const FOR_HTTP = 'If it speaks Streamable HTTP, issue a URL with "transport": "http" for it.';
const FOR_SSE = 'If it speaks only HTTP+SSE, issue a URL with "transport": "sse" for it.';
const USE_SSE =
  'This URL was issued for HTTP+SSE ("transport": "sse"): use a client of that transport, perhaps with /mcp/sse in place of /mcp/mcp.';

const wrongTransport = (method: string, status: number, fix: string): Refusal => ({
  code: 'invalid_request',
  param: 'transport',
  message: `The MCP server answered ${status} to the ${method} that connects. ${fix}`,
  details: { status },
});

/**
 * A server's JSON-RPC error with a hint at the end of its message. Code and data are unchanged, because clients act on them. Undefined for
 * any other body.
 */
export function withHint(body: Buffer, hint: string): Buffer | undefined {
  const text = body.toString('utf8');
  const value = body.length <= HINTED_MAX_BYTES ? parseJson(text) : undefined;
  const error = isJsonObject(value) ? value.error : undefined;
  if (!isJsonObject(error) || typeof error.code !== 'number' || typeof error.message !== 'string')
    return undefined;
  // Parsers use the last of a repeated name.
  const place = membersOf(text, afterSpace(text, 0), 'error').at(-1);
  const message = place && membersOf(text, place.start, 'message').at(-1);
  if (!message) return undefined;
  return Buffer.from(
    withEdits(text, [{ ...message, text: JSON.stringify(`${error.message} (${hint})`.trimStart()) }]),
  );
}

const HINTED_MAX_BYTES = 64 * 1024;
