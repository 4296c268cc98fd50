import type { IncomingHttpHeaders } from 'node:http';
import type { Refusal } from '@presign/schema';
import type { Messages } from './messages.ts';

/**
 * Headers of revision 2026-07-28 that repeat what the body says (Streamable HTTP, "Standard Request Headers"): a
 * server may go by them, so they must say what is charged for here.
 */
export function checkHeaders(headers: IncomingHttpHeaders, { all, isBatch }: Messages): Refusal | undefined {
  const [method, name] = [headers['mcp-method'], headers['mcp-name']];
  if (method === undefined && name === undefined) return undefined;
  const [message] = all;
  if (isBatch) return mismatch('Mcp-Method');
  if (method !== undefined && method !== message?.method) return mismatch('Mcp-Method');
  if (name !== undefined && decode(String(name)) !== message?.name) return mismatch('Mcp-Name');
  return undefined;
}

function mismatch(param: string): Refusal {
  return { code: 'invalid_request', param, message: `${param}: the header says other than the body.` };
}

/** Names that do not fit into a header are written as `=?base64?…?=`. */
function decode(value: string): string {
  const encoded = /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/.exec(value)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8');
}
